import java.time.Duration;
import java.util.Arrays;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.Repartitioned;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.WindowedSerdes;

/** The application of `test_peer.py` on Kafka Streams: runs until its standard input ends. */
public final class Peer {
    private static final Serde<String> TEXT = Serdes.String();

    /** Arguments: bootstrap servers, application id, state directory. */
    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, arguments[0]);
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, arguments[1]);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, arguments[2]);
        settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 100);
        settings.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
        settings.put("repartition.purge.interval.ms", 3_600_000);
        settings.put(StreamsConfig.consumerPrefix("auto.offset.reset"), "earliest");
        settings.put(StreamsConfig.consumerPrefix("session.timeout.ms"), 1_500);  // it does not leave its group at the end
        settings.put(StreamsConfig.consumerPrefix("heartbeat.interval.ms"), 300);
        KafkaStreams streams = new KafkaStreams(topology(arguments[1]).build(), settings);
        streams.start();
        while (System.in.read() >= 0) {
        }
        streams.close(Duration.ofSeconds(30));
    }

    private static StreamsBuilder topology(String id) {
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream("keys", Consumed.with(TEXT, TEXT)).to("keys-" + id, Produced.with(TEXT, TEXT));
        KStream<String, String> words = builder.stream("lines", Consumed.with(TEXT, TEXT))
            .flatMapValues(line -> Arrays.asList(line.split(" ")))
            .selectKey((key, word) -> word)
            .repartition(Repartitioned.with(TEXT, TEXT).withName("words").withNumberOfPartitions(3));
        words.groupByKey().count(Materialized.as("counts"))
            .toStream().to("counts-" + id, Produced.with(TEXT, Serdes.Long()));
        words.groupByKey().windowedBy(TimeWindows.ofSizeAndGrace(Duration.ofMinutes(1), Duration.ofMinutes(5)))
            .count(Materialized.as("windows"))
            .toStream().to("windows-" + id,
                Produced.with(WindowedSerdes.timeWindowedSerdeFrom(String.class, 60_000), Serdes.Long()));
        words.groupByKey().windowedBy(SessionWindows.ofInactivityGapAndGrace(Duration.ofSeconds(5), Duration.ofMinutes(5)))
            .count(Materialized.as("sessions"))
            .toStream().to("sessions-" + id,
                Produced.with(WindowedSerdes.sessionWindowedSerdeFrom(String.class), Serdes.Long()));
        builder.table("people", Consumed.with(TEXT, TEXT), Materialized.as("people"))
            .groupBy((name, city) -> KeyValue.pair(city, name), Grouped.with("cities", TEXT, TEXT))
            .count(Materialized.as("cities"))
            .toStream().to("cities-" + id, Produced.with(TEXT, Serdes.Long()));
        return builder;
    }
}
