import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CountDownLatch;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.kafka.common.serialization.Deserializer;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.GlobalKTable;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.processor.WallclockTimestampExtractor;

/** Queries of Nexmark on Kafka Streams; prints `half` when half of the events are read. See kstreams_program.py. */
public class Nexmark {
    record Person(long id, String name, String emailAddress, String creditCard, String city, String state,
                  long dateTime, String extra) {}
    record Auction(long id, String itemName, String description, long initialBid, long reserve, long dateTime,
                   long expires, long seller, long category, String extra) {}
    record Bid(long auction, long bidder, long price, String channel, String url, long dateTime, String extra) {}
    record Event(int event_type, Person person, Auction auction, Bid bid) {}
    record Offer(Auction auction, Bid bid) {}
    record BidOfPerson(Bid bid, Person person) {}
    record BidOfSeller(Bid bid, Person person, Auction auction) {}

    record Passed(long auction, long bidder, long price, long dateTime, String extra) {}
    record Converted(long auction, long bidder, double price, long dateTime, String extra) {}
    record Price(long auction, long price) {}
    record LocalItem(long id, String name, String city, String state) {}
    record Categorized(long category, long price) {}
    record SumAndCount(long category, long sum, long count) {}
    record CategoryMean(long category, @com.fasterxml.jackson.annotation.JsonProperty("final") double mean) {}
    record AuctionCount(long auction, long num) {}
    record HotItems(long num, Set<Long> auctions) {}
    record NewUser(long id, String name, long starttime) {}
    record Session(long bidder, long bid_count, long starttime, long endtime) {}
    record BidderCount(long bidder, long bid_count) {}
    record WithSideInput(long auction, long bidder, long price, long dateTime, String value) {}
    record Calculated(long auction, long bidder, double price, String bidTimeType, long dateTime, String extra,
                      long c_counts) {}
    record Prices(long auction, long total_bids, long rank1_bids, long rank2_bids, long rank3_bids, long min_price,
                  long max_price, double avg_price, long sum_price) {}
    record BidderAndAuction(long bidder, long auction) {}
    record ChannelDay(String channel, long day) {}
    record WithChannel(long auction, long bidder, long price, String channel, String channel_id) {}
    record WithFolders(long auction, long bidder, long price, String channel, String dir1, String dir2, String dir3) {}

    /** Distinct values and numbers of bids, by rank of prices. */
    public static class Statistics {
        public String channel;
        public long minute;
        public long[] bids = new long[4];
        public List<Set<Long>> bidders = List.of(new HashSet<>(), new HashSet<>(), new HashSet<>(), new HashSet<>());
        public List<Set<Long>> auctions = List.of(new HashSet<>(), new HashSet<>(), new HashSet<>(), new HashSet<>());

        Statistics add(Bid bid) {
            channel = bid.channel();
            minute = Math.max(minute, bid.dateTime() % DAY_MS / 60_000);
            for (int rank : new int[] {0, rank(bid)}) {
                bids[rank]++;
                bidders.get(rank).add(bid.bidder());
                auctions.get(rank).add(bid.auction());
            }
            return this;
        }

        Map<String, Object> shown() {
            Map<String, Object> fields = new java.util.LinkedHashMap<>();
            fields.put("channel", channel);
            fields.put("minute", minute);
            String[] ranks = {"total", "rank1", "rank2", "rank3"};
            for (int rank = 0; rank < 4; rank++) {
                fields.put(ranks[rank] + "_bids", bids[rank]);
                fields.put(ranks[rank] + "_bidders", bidders.get(rank).size());
                fields.put(ranks[rank] + "_auctions", auctions.get(rank).size());
            }
            return fields;
        }
    }

    static final long DAY_MS = 24 * 60 * 60 * 1000L;
    static final Duration GRACE = Duration.ofHours(1);
    static final Duration LONGEST_AUCTION = Duration.ofMinutes(5);
    static final TimeWindows TEN_SECONDS = TimeWindows.ofSizeAndGrace(Duration.ofSeconds(10), GRACE);
    static final JoinWindows ALL_OF_HISTORY = JoinWindows.ofTimeDifferenceAndGrace(GRACE, Duration.ZERO);
    static final ObjectMapper JSON =
        new ObjectMapper().configure(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES, false);
    static final Pattern CHANNEL_ID = Pattern.compile("[&^]channel_id=([^&]*)");
    static final Map<String, String> CHANNELS = Map.of("apple", "0", "google", "1", "facebook", "2", "baidu", "3");
    static final Serde<Bid> BID = json(new TypeReference<>() {});
    static final Serde<Auction> AUCTION = json(new TypeReference<>() {});
    static final Serde<Person> PERSON = json(new TypeReference<>() {});
    static final Serde<Offer> OFFER = json(new TypeReference<>() {});

    static long seen = 0; // by one stream thread

    final StreamsBuilder builder = new StreamsBuilder();
    final String query;
    final KStream<byte[], Event> events;

    Nexmark(String query, long half) {
        this.query = query;
        Serde<Event> plain = json(new TypeReference<>() {});
        Deserializer<Event> counting = (topic, bytes) -> {
            if (++seen == half) {
                System.out.println("half");
                System.out.flush();
            }
            return plain.deserializer().deserialize(topic, bytes);
        };
        Consumed<byte[], Event> consumed =
            Consumed.with(Serdes.ByteArray(), Serdes.serdeFrom(plain.serializer(), counting));
        if (query.equals("q12")) consumed = consumed.withTimestampExtractor(new WallclockTimestampExtractor());
        events = builder.stream("nexmark", consumed);
    }

    KStream<byte[], Person> persons() {
        return events.filter((key, event) -> event.event_type() == 0).mapValues(Event::person);
    }

    KStream<byte[], Auction> auctions() {
        return events.filter((key, event) -> event.event_type() == 1).mapValues(Event::auction);
    }

    KStream<byte[], Bid> bids() {
        return events.filter((key, event) -> event.event_type() == 2).mapValues(Event::bid);
    }

    KTable<Long, Offer> winningOffers() {
        JoinWindows windows = JoinWindows.ofTimeDifferenceAndGrace(Duration.ZERO, GRACE).before(LONGEST_AUCTION);
        return bids().selectKey((key, bid) -> bid.auction())
            .join(auctions().selectKey((key, auction) -> auction.id()), (bid, auction) -> new Offer(auction, bid),
                windows, StreamJoined.with(Serdes.Long(), BID, AUCTION))
            .filter((key, offer) -> offer.bid().dateTime() <= offer.auction().expires())
            .groupByKey(Grouped.with(Serdes.Long(), OFFER))
            .reduce((best, offer) -> BETTER.compare(best, offer) >= 0 ? best : offer);
    }

    static final Comparator<Offer> BETTER = Comparator.<Offer>comparingLong(offer -> offer.bid().price())
        .thenComparing(Comparator.<Offer>comparingLong(offer -> offer.bid().dateTime()).reversed());

    static int rank(Bid bid) {
        return bid.price() < 10_000 ? 1 : bid.price() < 1_000_000 ? 2 : 3;
    }

    static String timeType(long time) {
        long hour = time % DAY_MS / 3_600_000;
        return hour >= 8 && hour <= 18 ? "dayTime" : hour <= 6 || hour >= 20 ? "nightTime" : "otherTime";
    }

    void build() {
        switch (query) {
            case "q0" -> write(bids().mapValues(
                bid -> new Passed(bid.auction(), bid.bidder(), bid.price(), bid.dateTime(), bid.extra())));
            case "q1" -> write(bids().mapValues(bid -> new Converted(
                bid.auction(), bid.bidder(), bid.price() * 0.908, bid.dateTime(), bid.extra())));
            case "q2" -> write(bids().filter((key, bid) -> bid.auction() % 123 == 0)
                .mapValues(bid -> new Price(bid.auction(), bid.price())));
            case "q3" -> {
                KTable<Long, Auction> items = auctions().filter((key, auction) -> auction.category() == 10)
                    .selectKey((key, auction) -> auction.id())
                    .toTable(Materialized.with(Serdes.Long(), AUCTION));
                KTable<Long, Person> sellers = persons()
                    .filter((key, person) -> Set.of("OR", "ID", "CA").contains(person.state()))
                    .selectKey((key, person) -> person.id())
                    .toTable(Materialized.with(Serdes.Long(), PERSON));
                writeTable(items.join(sellers, Auction::seller,
                    (item, seller) -> new LocalItem(item.id(), seller.name(), seller.city(), seller.state()),
                    Materialized.with(Serdes.Long(), json(new TypeReference<>() {}))).toStream());
            }
            case "q4" -> {
                Serde<Categorized> categorized = json(new TypeReference<>() {});
                writeTable(winningOffers()
                    .mapValues(offer -> new Categorized(offer.auction().category(), offer.bid().price()),
                        Materialized.with(Serdes.Long(), categorized))
                    .groupBy((key, one) -> KeyValue.pair(one.category(), one), Grouped.with(Serdes.Long(), categorized))
                    .aggregate(() -> new SumAndCount(0, 0, 0),
                        (key, one, sums) -> new SumAndCount(key, sums.sum() + one.price(), sums.count() + 1),
                        (key, one, sums) -> new SumAndCount(key, sums.sum() - one.price(), sums.count() - 1),
                        Materialized.with(Serdes.Long(), json(new TypeReference<SumAndCount>() {})))
                    .toStream()
                    .filter((key, sums) -> sums.count() > 0)
                    .mapValues(sums -> new CategoryMean(sums.category(), (double) sums.sum() / sums.count())));
            }
            case "q5" -> {
                TimeWindows windows = TEN_SECONDS.advanceBy(Duration.ofSeconds(2));
                writeTable(bids().groupBy((key, bid) -> bid.auction(), Grouped.with(Serdes.Long(), BID))
                    .windowedBy(windows)
                    .count()
                    .toStream()
                    .map((key, num) -> KeyValue.pair(key.window().start(), new AuctionCount(key.key(), num)))
                    .groupByKey(Grouped.with(Serdes.Long(), json(new TypeReference<>() {})))
                    .aggregate(() -> new HotItems(0, Set.of()), (key, item, hot) -> {
                        if (item.num() < hot.num()) return hot;
                        Set<Long> auctions = new TreeSet<>(item.num() == hot.num() ? hot.auctions() : Set.of());
                        auctions.add(item.auction());
                        return new HotItems(item.num(), auctions);
                    }, Materialized.with(Serdes.Long(), json(new TypeReference<HotItems>() {})))
                    .toStream());
            }
            case "q7" -> write(bids().groupBy((key, bid) -> "all", Grouped.with(Serdes.String(), BID))
                .windowedBy(TEN_SECONDS)
                .aggregate(List::<Bid>of, (key, bid, best) -> {
                    if (!best.isEmpty() && best.get(0).price() > bid.price()) return best;
                    List<Bid> bids = new ArrayList<>();
                    if (!best.isEmpty() && best.get(0).price() == bid.price()) bids.addAll(best);
                    bids.add(bid);
                    return bids;
                }, Materialized.with(Serdes.String(), json(new TypeReference<List<Bid>>() {})))
                .toStream((key, best) -> bytes(key.toString())));
            case "q8" -> {
                var persons = persons().groupBy((key, person) -> person.id(), Grouped.with(Serdes.Long(), PERSON))
                    .windowedBy(TEN_SECONDS).reduce((first, other) -> first);
                var sellers = auctions().groupBy((key, auction) -> auction.seller(), Grouped.with(Serdes.Long(), AUCTION))
                    .windowedBy(TEN_SECONDS).count();
                write(persons.join(sellers, (person, count) -> person).toStream()
                    .map((key, person) -> KeyValue.pair(bytes(key.toString()), person == null ? null
                        : new NewUser(person.id(), person.name(), key.window().start()))));
            }
            case "q9" -> writeTable(winningOffers().toStream());
            case "q11" -> write(bids().groupBy((key, bid) -> bid.bidder(), Grouped.with(Serdes.Long(), BID))
                .windowedBy(SessionWindows.ofInactivityGapAndGrace(Duration.ofSeconds(10), GRACE))
                .count()
                .toStream()
                .map((key, count) -> KeyValue.pair(bytes(key.toString()), count == null ? null
                    : new Session(key.key(), count, key.window().start(), key.window().end()))));
            case "q12" -> write(bids().groupBy((key, bid) -> bid.bidder(), Grouped.with(Serdes.Long(), BID))
                .windowedBy(TEN_SECONDS)
                .count()
                .toStream()
                .map((key, count) -> KeyValue.pair(bytes(key.toString()), new BidderCount(key.key(), count))));
            case "q13" -> {
                GlobalKTable<Long, String> side =
                    builder.globalTable("nexmark-side-input", Consumed.with(Serdes.Long(), Serdes.String()));
                write(bids().join(side, (key, bid) -> bid.auction() % 10_000, (bid, value) ->
                    new WithSideInput(bid.auction(), bid.bidder(), bid.price(), bid.dateTime(), value)));
            }
            case "q14" -> write(bids()
                .filter((key, bid) -> bid.price() * 0.908 > 1_000_000 && bid.price() * 0.908 < 50_000_000)
                .mapValues(bid -> new Calculated(bid.auction(), bid.bidder(), bid.price() * 0.908,
                    timeType(bid.dateTime()), bid.dateTime(), bid.extra(),
                    bid.extra().chars().filter(letter -> letter == 'c').count())));
            case "q15" -> writeTable(bids()
                .groupBy((key, bid) -> bid.dateTime() / DAY_MS, Grouped.with(Serdes.Long(), BID))
                .aggregate(Statistics::new, (key, bid, statistics) -> statistics.add(bid),
                    Materialized.with(Serdes.Long(), json(new TypeReference<Statistics>() {})))
                .toStream().mapValues(Statistics::shown));
            case "q16" -> {
                Serde<ChannelDay> channel = json(new TypeReference<>() {});
                write(bids()
                    .groupBy((key, bid) -> new ChannelDay(bid.channel(), bid.dateTime() / DAY_MS),
                        Grouped.with(channel, BID))
                    .aggregate(Statistics::new, (key, bid, statistics) -> statistics.add(bid),
                        Materialized.with(channel, json(new TypeReference<Statistics>() {})))
                    .toStream().map((key, one) -> KeyValue.pair(bytes(key.toString()), one.shown())));
            }
            case "q17" -> {
                Serde<BidderAndAuction> group = json(new TypeReference<>() {});
                write(bids()
                    .groupBy((key, bid) -> new BidderAndAuction(bid.dateTime() / DAY_MS, bid.auction()),
                        Grouped.with(group, BID))
                    .aggregate(() -> new Prices(0, 0, 0, 0, 0, Long.MAX_VALUE, 0, 0, 0), (key, bid, sums) -> {
                        long[] ranks = {0, sums.rank1_bids(), sums.rank2_bids(), sums.rank3_bids()};
                        ranks[rank(bid)]++;
                        long count = sums.total_bids() + 1;
                        long sum = sums.sum_price() + bid.price();
                        return new Prices(bid.auction(), count, ranks[1], ranks[2], ranks[3],
                            Math.min(sums.min_price(), bid.price()), Math.max(sums.max_price(), bid.price()),
                            (double) sum / count, sum);
                    }, Materialized.with(group, json(new TypeReference<Prices>() {})))
                    .toStream((key, prices) -> bytes(key.toString())));
            }
            case "q18" -> write(bids()
                .groupBy((key, bid) -> new BidderAndAuction(bid.bidder(), bid.auction()),
                    Grouped.with(json(new TypeReference<>() {}), BID))
                .reduce((last, bid) -> bid.dateTime() >= last.dateTime() ? bid : last)
                .toStream((key, bid) -> bytes(key.toString())));
            case "q19" -> writeTable(bids().groupBy((key, bid) -> bid.auction(), Grouped.with(Serdes.Long(), BID))
                .aggregate(List::<Bid>of, (key, bid, best) -> {
                    List<Bid> bids = new ArrayList<>(best);
                    bids.add(bid);
                    bids.sort(Comparator.comparingLong(Bid::price).reversed());
                    return bids.size() > 10 ? bids.subList(0, 10) : bids;
                }, Materialized.with(Serdes.Long(), json(new TypeReference<List<Bid>>() {})))
                .toStream());
            case "q20" -> writeTable(bids().selectKey((key, bid) -> bid.auction())
                .join(auctions().filter((key, auction) -> auction.category() == 10)
                        .selectKey((key, auction) -> auction.id()),
                    (bid, auction) -> new Offer(auction, bid), ALL_OF_HISTORY,
                    StreamJoined.with(Serdes.Long(), BID, AUCTION)));
            case "q21" -> write(bids().flatMapValues(bid -> {
                String number = CHANNELS.get(bid.channel().toLowerCase());
                Matcher matcher = CHANNEL_ID.matcher(bid.url());
                if (number == null && matcher.find()) number = matcher.group(1);
                return number == null ? List.of()
                    : List.of(new WithChannel(bid.auction(), bid.bidder(), bid.price(), bid.channel(), number));
            }));
            case "q22" -> write(bids().mapValues(bid -> {
                String[] parts = bid.url().split("/");
                return new WithFolders(bid.auction(), bid.bidder(), bid.price(), bid.channel(), parts[3], parts[4],
                    parts[5]);
            }));
            case "q23" -> writeTable(bids().selectKey((key, bid) -> bid.bidder())
                .join(persons().selectKey((key, person) -> person.id()), BidOfPerson::new, ALL_OF_HISTORY,
                    StreamJoined.with(Serdes.Long(), BID, PERSON))
                .join(auctions().selectKey((key, auction) -> auction.seller()),
                    (one, auction) -> new BidOfSeller(one.bid(), one.person(), auction), ALL_OF_HISTORY,
                    StreamJoined.with(Serdes.Long(), json(new TypeReference<BidOfPerson>() {}), AUCTION)));
            default -> throw new IllegalArgumentException(query);
        }
    }

    <V> void write(KStream<byte[], V> results) {
        results.to(query, Produced.with(Serdes.ByteArray(), Nexmark.<V>json(new TypeReference<>() {})));
    }

    <V> void writeTable(KStream<Long, V> results) {
        results.to(query, Produced.with(Serdes.Long(), Nexmark.<V>json(new TypeReference<>() {})));
    }

    static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    static <T> Serde<T> json(TypeReference<T> type) {
        return Serdes.serdeFrom((topic, value) -> {
            try {
                return value == null ? null : JSON.writeValueAsBytes(value);
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }, (topic, bytes) -> {
            try {
                return bytes == null ? null : JSON.readValue(bytes, type);
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        });
    }

    public static void main(String[] arguments) throws Exception {
        Map<String, String> environment = System.getenv();
        Nexmark nexmark = new Nexmark(environment.get("QUERY"), Long.parseLong(environment.get("EVENTS")) / 2);
        nexmark.build();
        Properties config = new Properties();
        config.put(StreamsConfig.APPLICATION_ID_CONFIG, environment.get("ID"));
        config.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, environment.get("BOOTSTRAP"));
        config.put(StreamsConfig.STATE_DIR_CONFIG, environment.get("STATE"));
        config.put("auto.offset.reset", "earliest");
        JSON.readTree(environment.get("SETTINGS")).fields()
            .forEachRemaining(field -> config.put(field.getKey(), field.getValue().asText()));
        KafkaStreams streams = new KafkaStreams(nexmark.builder.build(), config);
        CountDownLatch ended = new CountDownLatch(1);
        streams.setStateListener((now, before) -> {
            if (now == KafkaStreams.State.ERROR || now == KafkaStreams.State.NOT_RUNNING) ended.countDown();
        });
        Runtime.getRuntime().addShutdownHook(new Thread(streams::close));
        streams.start();
        ended.await();
        System.exit(1);
    }
}
