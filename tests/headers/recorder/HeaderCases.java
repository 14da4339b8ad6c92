import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.kstream.*;
import org.apache.kafka.streams.processor.PunctuationType;
import org.apache.kafka.streams.processor.api.ContextualFixedKeyProcessor;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.FixedKeyRecord;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.AggregationWithHeaders;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.SessionStoreWithHeaders;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.TimestampedKeyValueStoreWithHeaders;
import org.apache.kafka.streams.state.TimestampedWindowStoreWithHeaders;
import org.apache.kafka.streams.state.ValueTimestampHeaders;
import org.apache.kafka.streams.test.TestRecord;

/** Runs small topologies in the real Kafka Streams and prints, as JSON lines, the records and headers that come out. */
public class HeaderCases {
    static final Map<String, Consumer<StreamsBuilder>> CASES = new LinkedHashMap<>();

    /** What every case reads: topic, key, value, time, header. */
    static final Object[][] INPUT = {
        {"a", "k1", "v1", 0L, "a0"},
        {"b", "k1", "w1", 1_000L, "b0"},
        {"a", "k1", "v2", 2_000L, "a1"},
        {"b", "k2", "w2", 3_000L, null},
        {"a", "k2", "v3", 4_000L, "a2"},
        {"a", "k1", "v5", 1_500L, "a3"},
        {"b", "k1", "w3", 4_500L, "b1"},
        {"a", "k1", null, 5_000L, "a4"},
        {"b", "k1", null, 6_000L, "b2"},
        {"a", "k3", "v4", 50_000L, "a5"},
        {"b", "k3", "w4", 51_000L, "b3"},
        {"a", "k1", "v6", 120_000L, null},
        {"b", "k9", "w9", 200_000L, "b4"},
        {"a", "k9", "v9", 201_000L, "a6"},
    };

    static KStream<String, String> a(StreamsBuilder builder) {
        return builder.stream("a");
    }

    static KStream<String, String> b(StreamsBuilder builder) {
        return builder.stream("b");
    }

    static void out(KStream<String, String> stream) {
        stream.to("out");
    }

    static <V> void outTable(KTable<String, V> table) {
        out(table.toStream().mapValues(value -> value == null ? null : value.toString()));
    }

    static <V> void outWindows(KTable<Windowed<String>, V> table) {
        out(table.toStream((key, value) -> key.key() + "@" + key.window().start() + "-" + key.window().end())
            .mapValues(value -> value == null ? null : value.toString()));
    }

    static String joined(String left, String right) {
        return left + "+" + right;
    }

    static Headers header(String value) {
        RecordHeaders headers = new RecordHeaders();
        if (value != null) {
            headers.add("h", value.getBytes());
        }
        return headers;
    }

    static {
        CASES.put("filter", s -> out(a(s).filter((k, v) -> v != null)));
        CASES.put("map", s -> out(a(s).map((k, v) -> KeyValue.pair(k + "!", v))));
        CASES.put("map_values", s -> out(a(s).mapValues(v -> v + "!")));
        CASES.put("flat_map", s -> out(a(s).flatMap((k, v) -> List.of(KeyValue.pair(k, "1"), KeyValue.pair(k, "2")))));
        CASES.put("flat_map_values", s -> out(a(s).flatMapValues(v -> List.of("1", "2"))));
        CASES.put("select_key", s -> out(a(s).selectKey((k, v) -> "x")));
        CASES.put("merge", s -> out(a(s).merge(b(s))));
        CASES.put("repartition", s -> out(a(s).selectKey((k, v) -> "x").repartition()));
        CASES.put("split", s -> a(s).split().branch((k, v) -> v != null, Branched.withConsumer(HeaderCases::out)));
        CASES.put("process", s -> out(a(s).process(Adding::new)));
        CASES.put("process_values", s -> out(a(s).processValues(AddingValues::new)));
        CASES.put("process_beside", s -> {
            KStream<String, String> stream = a(s);
            out(stream.process(Adding::new));
            out(stream.mapValues(v -> v + " beside"));
        });
        CASES.put("process_store", s -> {
            s.addStateStore(Stores.keyValueStoreBuilder(
                Stores.inMemoryKeyValueStore("last"), Serdes.String(), Serdes.String()));
            out(a(s).process(Last::new, "last"));
        });
        CASES.put("punctuate", s -> out(a(s).process(Punctual::new)));
        CASES.put("to_table", s -> outTable(a(s).toTable()));
        CASES.put("to_table_stored", s -> outTable(a(s).toTable(Materialized.as("t"))));
        CASES.put("table", s -> outTable(s.<String, String>table("a")));
        CASES.put("table_stored", s -> outTable(s.<String, String>table("a", Materialized.as("t"))));
        CASES.put("table_filter", s -> outTable(
            s.<String, String>table("a", Materialized.as("t")).filter((k, v) -> !v.equals("v2"))));
        CASES.put("table_map_values", s -> outTable(
            s.<String, String>table("a", Materialized.as("t")).mapValues(v -> v + "!", Materialized.as("m"))));
        CASES.put("table_group_count", s -> outTable(
            s.<String, String>table("a").groupBy((k, v) -> KeyValue.pair("g", v)).count()));
        CASES.put("table_group_reduce", s -> outTable(
            s.<String, String>table("a").groupBy((k, v) -> KeyValue.pair("g", v)).reduce((x, y) -> x + y, (x, y) -> x)));
        CASES.put("count", s -> outTable(a(s).groupByKey().count()));
        CASES.put("reduce", s -> outTable(a(s).groupByKey().reduce((x, y) -> x + y)));
        CASES.put("aggregate", s -> outTable(a(s).groupByKey().aggregate(() -> "", (k, v, agg) -> agg + v)));
        CASES.put("group_by_count", s -> outTable(a(s).groupBy((k, v) -> "g").count()));
        CASES.put("cogroup", s -> outTable(
            a(s).groupByKey().<String>cogroup((k, v, agg) -> agg + v)
                .cogroup(b(s).groupByKey(), (k, v, agg) -> agg + v).aggregate(() -> "")));
        TimeWindows tumbling = TimeWindows.ofSizeAndGrace(Duration.ofSeconds(3), Duration.ofSeconds(10));
        CASES.put("tumbling", s -> outWindows(a(s).groupByKey().windowedBy(tumbling).count()));
        CASES.put("hopping", s -> outWindows(
            a(s).groupByKey().windowedBy(tumbling.advanceBy(Duration.ofSeconds(1))).count()));
        CASES.put("sliding", s -> outWindows(a(s).groupByKey().windowedBy(
            SlidingWindows.ofTimeDifferenceAndGrace(Duration.ofSeconds(3), Duration.ofSeconds(10))).count()));
        SessionWindows sessions = SessionWindows.ofInactivityGapAndGrace(Duration.ofSeconds(3), Duration.ofSeconds(10));
        CASES.put("session", s -> outWindows(a(s).groupByKey().windowedBy(sessions).count()));
        CASES.put("tumbling_final", s -> outWindows(
            a(s).groupByKey().windowedBy(tumbling).emitStrategy(EmitStrategy.onWindowClose()).count()));
        CASES.put("session_final", s -> outWindows(
            a(s).groupByKey().windowedBy(sessions).emitStrategy(EmitStrategy.onWindowClose()).count()));
        CASES.put("suppress_time", s -> outTable(a(s).groupByKey().count().suppress(
            Suppressed.untilTimeLimit(Duration.ofSeconds(2), Suppressed.BufferConfig.unbounded()))));
        CASES.put("suppress_windows", s -> outWindows(a(s).groupByKey().windowedBy(tumbling)
            .count(Materialized.with(Serdes.String(), Serdes.Long())).suppress(
            Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded()))));
        CASES.put("suppress_sessions", s -> outWindows(a(s).groupByKey().windowedBy(sessions)
            .count(Materialized.with(Serdes.String(), Serdes.Long())).suppress(
            Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded()))));
        JoinWindows within = JoinWindows.ofTimeDifferenceAndGrace(Duration.ofSeconds(2), Duration.ofSeconds(1));
        CASES.put("stream_join", s -> out(a(s).join(b(s), HeaderCases::joined, within)));
        CASES.put("stream_left_join", s -> out(a(s).leftJoin(b(s), HeaderCases::joined, within)));
        CASES.put("stream_outer_join", s -> out(a(s).outerJoin(b(s), HeaderCases::joined, within)));
        CASES.put("stream_table_join", s -> out(a(s).join(s.<String, String>table("b"), HeaderCases::joined)));
        CASES.put("stream_table_left_join", s -> out(a(s).leftJoin(s.<String, String>table("b"), HeaderCases::joined)));
        CASES.put("global_table_join", s -> out(
            a(s).join(s.<String, String>globalTable("b"), (k, v) -> k, HeaderCases::joined)));
        CASES.put("table_join", s -> outTable(
            s.<String, String>table("a").join(s.<String, String>table("b"), HeaderCases::joined)));
        CASES.put("table_left_join", s -> outTable(
            s.<String, String>table("a").leftJoin(s.<String, String>table("b"), HeaderCases::joined)));
        CASES.put("table_outer_join", s -> outTable(
            s.<String, String>table("a").outerJoin(s.<String, String>table("b"), HeaderCases::joined)));
        CASES.put("foreign_key_join", s -> outTable(s.<String, String>table("a").join(
            s.<String, String>table("b"), v -> "k" + v.charAt(1), HeaderCases::joined)));
        CASES.put("foreign_key_left_join", s -> outTable(s.<String, String>table("a").leftJoin(
            s.<String, String>table("b"), v -> "k" + v.charAt(1), HeaderCases::joined)));
    }

    static {
        CASES.put("process_twice", s -> out(a(s).process(Twice::new)));
        CASES.put("process_held", s -> out(a(s).process(Holding::new)));
        CASES.put("process_cleared", s -> out(a(s).process(Clearing::new).mapValues(v -> v + "!")));
        CASES.put("table_transform_values", s -> outTable(
            s.<String, String>table("a", Materialized.as("t")).transformValues(Exclaiming::new)));
        CASES.put("unlimited", s -> outWindows(a(s).groupByKey().windowedBy(UnlimitedWindows.of()).count()));
        CASES.put("to_table_versioned", s -> outTable(a(s).toTable(
            Materialized.as(Stores.persistentVersionedKeyValueStore("t", Duration.ofSeconds(300))))));
        CASES.put("stream_table_grace_join", s -> out(a(s).join(
            s.<String, String>table("b", Materialized.as(
                Stores.persistentVersionedKeyValueStore("t", Duration.ofSeconds(300)))),
            HeaderCases::joined, Joined.<String, String, String>as("j").withGracePeriod(Duration.ofSeconds(2)))));
        CASES.put("self_join", s -> {
            KStream<String, String> stream = a(s);
            out(stream.join(stream, HeaderCases::joined,
                JoinWindows.ofTimeDifferenceAndGrace(Duration.ofSeconds(2), Duration.ofSeconds(1))));
        });
        CASES.put("to_table_to_stream_processed", s -> out(a(s).toTable().toStream().process(Adding::new)));
        CASES.put("repartition_count", s -> outTable(
            a(s).process(Adding::new).selectKey((k, v) -> "g").groupByKey().count()));
    }

    static {
        CASES.put("kept_headers", s -> {
            s.addStateStore(Stores.timestampedKeyValueStoreWithHeadersBuilder(
                Stores.inMemoryKeyValueStore("kept"), Serdes.String(), Serdes.String()));
            out(a(s).process(KeptHeaders::new, "kept"));
        });
        CASES.put("kept_headers_rocksdb_cached", s -> {
            s.addStateStore(Stores.timestampedKeyValueStoreWithHeadersBuilder(
                Stores.persistentTimestampedKeyValueStoreWithHeaders("kept"), Serdes.String(), Serdes.String())
                .withCachingEnabled());
            out(a(s).process(KeptHeaders::new, "kept"));
        });
        CASES.put("kept_headers_of_windows", s -> {
            s.addStateStore(Stores.timestampedWindowStoreWithHeadersBuilder(Stores.inMemoryWindowStore(
                "kept", Duration.ofSeconds(100), Duration.ofSeconds(3), false), Serdes.String(), Serdes.String()));
            out(a(s).process(KeptHeadersOfWindows::new, "kept"));
        });
        CASES.put("kept_headers_of_sessions", s -> {
            s.addStateStore(Stores.sessionStoreWithHeadersBuilder(
                Stores.inMemorySessionStore("kept", Duration.ofSeconds(100)), Serdes.String(), Serdes.String()));
            out(a(s).process(KeptHeadersOfSessions::new, "kept"));
        });
    }

    static Headers oneMore(Headers headers) {
        return new RecordHeaders(headers).add("more", "1".getBytes());
    }

    /** Forwards what the store has for the key, all of it, under its headers, and keeps the record with one more. */
    static class KeptHeaders extends ContextualProcessor<String, String, String, String> {
        private TimestampedKeyValueStoreWithHeaders<String, String> store;

        @Override
        public void init(ProcessorContext<String, String> context) {
            super.init(context);
            store = context.getStateStore("kept");
        }

        @Override
        public void process(Record<String, String> record) {
            forward(store.get(record.key()));
            ValueTimestampHeaders<String> row =
                ValueTimestampHeaders.makeAllowNullable(record.value(), record.timestamp(), oneMore(record.headers()));
            forward(store.putIfAbsent("first", row));
            store.put(record.key(), row);
            row.headers().add("late", "1".getBytes());
            try (var rows = store.all()) {
                rows.forEachRemaining(each -> forward(each.value));
            }
        }

        private void forward(ValueTimestampHeaders<String> row) {
            context().forward(row == null ? new Record<>("none", "none", 0L)
                : new Record<>("some", row.value(), row.timestamp(), row.headers()));
        }
    }

    /** The same of windows of three seconds. */
    static class KeptHeadersOfWindows extends ContextualProcessor<String, String, String, String> {
        private TimestampedWindowStoreWithHeaders<String, String> store;

        @Override
        public void init(ProcessorContext<String, String> context) {
            super.init(context);
            store = context.getStateStore("kept");
        }

        @Override
        public void process(Record<String, String> record) {
            store.put(record.key(), ValueTimestampHeaders.make(
                record.value(), record.timestamp(), oneMore(record.headers())), record.timestamp() / 3000 * 3000);
            try (var rows = store.all()) {
                rows.forEachRemaining(each -> context().forward(new Record<>(
                    each.key.key() + "@" + each.key.window().start(), each.value.value(), each.value.timestamp(),
                    each.value.headers())));
            }
        }
    }

    /** The same of sessions of one second. */
    static class KeptHeadersOfSessions extends ContextualProcessor<String, String, String, String> {
        private SessionStoreWithHeaders<String, String> store;

        @Override
        public void init(ProcessorContext<String, String> context) {
            super.init(context);
            store = context.getStateStore("kept");
        }

        @Override
        public void process(Record<String, String> record) {
            Window window = new org.apache.kafka.streams.kstream.internals.SessionWindow(
                record.timestamp(), record.timestamp() + 1000);
            store.put(new Windowed<>(record.key(), window),
                AggregationWithHeaders.make(record.value(), oneMore(record.headers())));
            try (var rows = store.findSessions(record.key(), 0, Long.MAX_VALUE)) {
                rows.forEachRemaining(each -> context().forward(new Record<>(
                    each.key.key() + "@" + each.key.window().start(), each.value.aggregation(),
                    each.key.window().end(), each.value.headers())));
            }
        }
    }

    /** The value with a mark, of a table. */
    static class Exclaiming implements ValueTransformerWithKey<String, String, String> {
        @Override
        public void init(org.apache.kafka.streams.processor.ProcessorContext context) {
        }

        @Override
        public String transform(String key, String value) {
            return value == null ? null : value + "!";
        }

        @Override
        public void close() {
        }
    }

    /** Forwards each record with one more header, and then as it was. */
    static class Twice extends ContextualProcessor<String, String, String, String> {
        @Override
        public void process(Record<String, String> record) {
            RecordHeaders headers = new RecordHeaders(record.headers());
            headers.add("more", "1".getBytes());
            context().forward(record.withHeaders(headers));
            context().forward(record);
        }
    }

    /** Forwards each record when the next one comes. */
    static class Holding extends ContextualProcessor<String, String, String, String> {
        private Record<String, String> held;

        @Override
        public void process(Record<String, String> record) {
            if (held != null) {
                context().forward(held);
            }
            held = record;
        }
    }

    /** Forwards each record without headers. */
    static class Clearing extends ContextualProcessor<String, String, String, String> {
        @Override
        public void process(Record<String, String> record) {
            context().forward(record.withHeaders(new RecordHeaders()));
        }
    }

    /** Forwards each record with one more header. */
    static class Adding extends ContextualProcessor<String, String, String, String> {
        @Override
        public void process(Record<String, String> record) {
            RecordHeaders headers = new RecordHeaders(record.headers());
            headers.add("more", "1".getBytes());
            context().forward(record.withHeaders(headers));
        }
    }

    /** The same for values. */
    static class AddingValues extends ContextualFixedKeyProcessor<String, String, String> {
        @Override
        public void process(FixedKeyRecord<String, String> record) {
            RecordHeaders headers = new RecordHeaders(record.headers());
            headers.add("more", "1".getBytes());
            context().forward(record.withHeaders(headers));
        }
    }

    /** Forwards the value that the key had before, which a store keeps, as the current record. */
    static class Last extends ContextualProcessor<String, String, String, String> {
        private KeyValueStore<String, String> store;

        @Override
        public void init(ProcessorContext<String, String> context) {
            super.init(context);
            store = context.getStateStore("last");
        }

        @Override
        public void process(Record<String, String> record) {
            context().forward(record.withValue(String.valueOf(store.get(record.key()))));
            store.put(record.key(), record.value());
        }
    }

    /** Forwards from a punctuator of stream time alone, a new record at the time of the punctuation. */
    static class Punctual extends ContextualProcessor<String, String, String, String> {
        @Override
        public void init(ProcessorContext<String, String> context) {
            super.init(context);
            context.schedule(Duration.ofSeconds(50), PunctuationType.STREAM_TIME,
                time -> context.forward(new Record<>("tick", "t", time)));
        }

        @Override
        public void process(Record<String, String> record) {
        }
    }

    public static void main(String[] arguments) {
        for (String format : new String[] {"default", "headers"}) {
            for (String cache : new String[] {"0", "1000000"}) {
                for (String name : CASES.keySet()) {
                    System.out.println(run(name, format, cache));
                }
            }
        }
    }

    static String run(String name, String format, String cache) {
        StreamsBuilder builder = new StreamsBuilder();
        Properties properties = new Properties();
        properties.put(StreamsConfig.APPLICATION_ID_CONFIG, "headers-" + name);
        properties.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "none:1");
        properties.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class.getName());
        properties.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class.getName());
        properties.put("statestore.cache.max.bytes", cache);
        properties.put("__emit.interval.ms.kstreams.windowed.aggregation__", 0L);
        properties.put("__emit.interval.ms.kstreams.outer.join.spurious.results.fix__", 0L);
        properties.put("state.dir", System.getProperty("java.io.tmpdir") + "/header-cases-" + ProcessHandle.current().pid());
        if (!format.equals("default")) {
            properties.put("dsl.store.format", format.toUpperCase());
        }
        builder = new StreamsBuilder(new org.apache.kafka.streams.TopologyConfig(new StreamsConfig(properties)));
        CASES.get(name).accept(builder);
        List<String> rows = new ArrayList<>();
        List<String> changelog = new ArrayList<>();
        try (TopologyTestDriver driver = new TopologyTestDriver(builder.build(properties), properties, Instant.ofEpochMilli(1_000_000))) {
            var output = driver.createOutputTopic("out", new StringDeserializer(), new StringDeserializer());
            for (Object[] row : INPUT) {
                TestInputTopic<String, String> input;
                try {
                    input = driver.createInputTopic((String) row[0], new StringSerializer(), new StringSerializer());
                    input.pipeInput(new TestRecord<>((String) row[1], (String) row[2], header((String) row[4]),
                        Instant.ofEpochMilli((Long) row[3])));
                } catch (IllegalArgumentException unknown) {
                    continue; // a topic that this case does not read
                }
                while (!output.isEmpty()) {
                    rows.add(shown(output.readRecord()));
                }
            }
            if (name.startsWith("kept_headers")) {
                changelog = changelogOf(driver, "headers-" + name + "-kept-changelog");
            }
        }
        return "{\"case\":\"" + name + "\",\"format\":\"" + format + "\",\"cache\":" + cache + ",\"rows\":["
            + String.join(",", rows) + "]"
            + (changelog.isEmpty() ? "" : ",\"changelog\":[" + String.join(",", changelog) + "]") + "}";
    }

    /** What it holds but for deletions; keys in hexadecimal digits. */
    static List<String> changelogOf(TopologyTestDriver driver, String topic) {
        List<String> rows = new ArrayList<>();
        var output = driver.createOutputTopic(topic, new ByteArrayDeserializer(), new StringDeserializer());
        while (!output.isEmpty()) {
            TestRecord<byte[], String> record = output.readRecord();
            if (record.value() != null) {
                rows.add(shown(new TestRecord<>(HexFormat.of().formatHex(record.key()), record.value(),
                    record.headers(), record.timestamp())));
            }
        }
        return rows;
    }

    static String shown(TestRecord<String, String> record) {
        List<String> headers = new ArrayList<>();
        for (Header header : record.headers()) {
            headers.add("[" + quoted(header.key()) + "," + quoted(new String(header.value())) + "]");
        }
        return "[" + quoted(record.key()) + "," + quoted(record.value()) + "," + record.timestamp() + ",["
            + headers.stream().collect(Collectors.joining(",")) + "]]";
    }

    static String quoted(String text) {
        return text == null ? "null" : "\"" + text + "\"";
    }
}
