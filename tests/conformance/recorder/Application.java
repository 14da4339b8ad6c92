import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.*;
import org.apache.kafka.streams.state.Stores;

/** A case as a topology of the real library, with the types of its topics and the kinds of its named stores. */
@SuppressWarnings({"unchecked", "rawtypes"})
final class Application {
    final StreamsBuilder builder = new StreamsBuilder();
    final Map<String, String[]> inputs = new LinkedHashMap<>();
    final Map<String, String[]> outputs = new LinkedHashMap<>();
    final Map<String, String> stores = new LinkedHashMap<>();
    private final Map<String, Object> vars = new HashMap<>();

    Application(JsonNode nodes) {
        for (JsonNode node : nodes) {
            Object result = apply(node, vars.get(string(node, "in")), vars.get(string(node, "right")));
            if (node.has("id")) vars.put(string(node, "id"), result);
            if (node.has("store")) stores.put(string(node, "store"), kind(node));
        }
    }

    Topology build(Properties config) {
        return builder.build(config);
    }

    private static String kind(JsonNode node) {
        if (node.has("versioned_ms")) return "versioned";
        if (string(node, "op").equals("process")) return "plain";
        return node.has("windowed") ? string(node, "windowed") : "key_value";
    }

    static String string(JsonNode node, String field) {
        return node.hasNonNull(field) ? node.get(field).asText() : null;
    }

    private static long number(JsonNode node, String field) {
        return node.has(field) ? node.get(field).asLong() : 0;
    }

    private static Duration millis(JsonNode node, String field) {
        return Duration.ofMillis(number(node, field));
    }

    static Serde serde(String type) {
        return type == null ? null : type.equals("long") ? Serdes.Long() : Serdes.String();
    }

    private static Serde key(JsonNode node) {
        return serde(string(node, "kt"));
    }

    private static Serde value(JsonNode node) {
        return serde(string(node, "vt"));
    }

    private static Named named(JsonNode node) {
        return node.has("name") ? Named.as(string(node, "name")) : null;
    }

    /** Null where a case says nothing of types and stores. */
    private static Materialized materialized(JsonNode node) {
        Materialized found = null;
        if (node.has("versioned_ms")) {
            found = Materialized.as(Stores.persistentVersionedKeyValueStore(string(node, "store"), millis(node, "versioned_ms")));
        } else if (node.has("store")) {
            found = Materialized.as(string(node, "store"));
        }
        if (found == null && !node.has("kt") && !node.has("vt")) return null;
        Serde value = string(node, "op").equals("count") ? Serdes.Long() : value(node);
        found = found == null ? Materialized.with(key(node), value) : found.withKeySerde(key(node)).withValueSerde(value);
        if (node.has("retention_ms")) found = found.withRetention(millis(node, "retention_ms"));
        if (node.has("caching")) found = node.get("caching").asBoolean() ? found.withCachingEnabled() : found.withCachingDisabled();
        if (node.has("logging") && !node.get("logging").asBoolean()) found = found.withLoggingDisabled();
        return found;
    }

    private static Consumed consumed(JsonNode node) {
        Consumed found = Consumed.with(key(node), value(node));
        if (node.has("name")) found = found.withName(string(node, "name"));
        if (node.has("timestamp_extractor")) {
            found = found.withTimestampExtractor((record, partitionTime) ->
                Long.parseLong(Functions.text(record.value()).replaceAll("[^0-9-]", "")));
        }
        return found;
    }

    private Object apply(JsonNode node, Object x, Object y) {
        String fn = string(node, "fn");
        return switch (string(node, "op")) {
            case "stream" -> stream(node);
            case "table" -> table(node);
            case "global_table" -> globalTable(node);
            case "filter" -> filter(node, x, fn);
            case "filter_not" -> filterNot(node, x, fn);
            case "map" -> ((KStream) x).map(Functions.mapper(fn));
            case "map_values" -> mapValues(node, x, fn);
            case "flat_map" -> ((KStream) x).flatMap(Functions.flatMapper(fn));
            case "flat_map_values" -> ((KStream) x).flatMapValues(Functions.flatValueMapper(fn));
            case "select_key" -> ((KStream) x).selectKey(Functions.keyMapper(fn));
            case "peek" -> ((KStream) x).peek((k, v) -> {});
            case "merge" -> ((KStream) x).merge((KStream) y);
            case "split" -> split(node, (KStream) x);
            case "repartition" -> repartition(node, (KStream) x);
            case "to" -> to(node, (KStream) x);
            case "to_table" -> ((KStream) x).toTable(materialized(node));
            case "process" -> process(node, (KStream) x, fn);
            case "group_by_key" -> ((KStream) x).groupByKey(grouped(node));
            case "group_by" -> groupBy(node, x, fn);
            case "cogroup" -> y == null
                ? ((KGroupedStream) x).cogroup(Functions.aggregator(fn))
                : ((CogroupedKStream) x).cogroup((KGroupedStream) y, Functions.aggregator(fn));
            case "windowed_by" -> windowedBy(node, x);
            case "emit_strategy" -> emit(x, fn.equals("on_window_close") ? EmitStrategy.onWindowClose() : EmitStrategy.onWindowUpdate());
            case "count" -> count(node, x);
            case "reduce" -> reduce(node, x, fn);
            case "aggregate" -> aggregate(node, x, fn);
            case "join", "left_join", "outer_join" -> join(node, x, y);
            case "foreign_key_join", "foreign_key_left_join" -> foreignKeyJoin(node, (KTable) x, (KTable) y, fn);
            case "to_stream" -> toStream(node, (KTable) x);
            case "suppress" -> ((KTable) x).suppress(suppressed(node));
            default -> throw new IllegalArgumentException(node.toString());
        };
    }

    private Object stream(JsonNode node) {
        List<String> topics = new ArrayList<>();
        node.get("topics").forEach(topic -> topics.add(topic.asText()));
        for (String topic : topics) inputs.put(topic, types(node));
        return builder.stream(topics, consumed(node));
    }

    private Object table(JsonNode node) {
        inputs.put(string(node, "topic"), types(node));
        return builder.table(string(node, "topic"), consumed(node), materialized(node));
    }

    private Object globalTable(JsonNode node) {
        inputs.put(string(node, "topic"), types(node));
        if (!node.has("store")) return builder.globalTable(string(node, "topic"), consumed(node));
        return builder.globalTable(string(node, "topic"), consumed(node), materialized(node));
    }

    private static String[] types(JsonNode node) {
        return new String[] {string(node, "kt"), string(node, "vt")};
    }

    private static Object filter(JsonNode node, Object x, String fn) {
        Named named = named(node);
        Predicate predicate = Functions.predicate(fn);
        if (x instanceof KStream stream) return named == null ? stream.filter(predicate) : stream.filter(predicate, named);
        KTable table = (KTable) x;
        if (!node.has("store")) return named == null ? table.filter(predicate) : table.filter(predicate, named);
        return named == null ? table.filter(predicate, materialized(node)) : table.filter(predicate, named, materialized(node));
    }

    private static Object filterNot(JsonNode node, Object x, String fn) {
        Named named = named(node);
        Predicate predicate = Functions.predicate(fn);
        if (x instanceof KStream stream) return named == null ? stream.filterNot(predicate) : stream.filterNot(predicate, named);
        KTable table = (KTable) x;
        if (!node.has("store")) return named == null ? table.filterNot(predicate) : table.filterNot(predicate, named);
        return named == null ? table.filterNot(predicate, materialized(node)) : table.filterNot(predicate, named, materialized(node));
    }

    private static Object mapValues(JsonNode node, Object x, String fn) {
        Named named = named(node);
        ValueMapperWithKey mapper = Functions.valueMapper(fn);
        if (x instanceof KStream stream) return named == null ? stream.mapValues(mapper) : stream.mapValues(mapper, named);
        KTable table = (KTable) x;
        if (!node.has("store")) return named == null ? table.mapValues(mapper) : table.mapValues(mapper, named);
        return named == null ? table.mapValues(mapper, materialized(node)) : table.mapValues(mapper, named, materialized(node));
    }

    private Object split(JsonNode node, KStream x) {
        Named named = named(node);
        BranchedKStream split = named == null ? x.split() : x.split(named);
        for (JsonNode branch : node.get("branches")) {
            String id = string(branch, "id");
            split = split.branch(Functions.predicate(string(branch, "fn")), Branched.withConsumer(s -> vars.put(id, s)));
        }
        String other = string(node, "default");
        return other == null ? split.noDefaultBranch() : split.defaultBranch(Branched.withConsumer(s -> vars.put(other, s)));
    }

    private static Object repartition(JsonNode node, KStream x) {
        Repartitioned how = Repartitioned.with(key(node), value(node));
        return x.repartition(node.has("name") ? how.withName(string(node, "name")) : how);
    }

    private Object to(JsonNode node, KStream x) {
        outputs.put(string(node, "topic"), types(node));
        x.to(string(node, "topic"), Produced.with(key(node), value(node)));
        return null;
    }

    private Object process(JsonNode node, KStream x, String fn) {
        if (!node.has("store")) return x.process(Processors.supplier(fn));
        String store = string(node, "store");
        builder.addStateStore(Stores.keyValueStoreBuilder(Stores.persistentKeyValueStore(store), key(node), value(node)));
        return x.process(Processors.supplier(fn), store);
    }

    private static Grouped grouped(JsonNode node) {
        Grouped how = Grouped.with(key(node), value(node));
        return node.has("name") ? how.withName(string(node, "name")) : how;
    }

    private static Object groupBy(JsonNode node, Object x, String fn) {
        KeyValueMapper select = Functions.keyMapper(fn);
        if (x instanceof KStream stream) return stream.groupBy(select, grouped(node));
        return ((KTable) x).groupBy((k, v) -> KeyValue.pair(select.apply(k, v), v), grouped(node));
    }

    private static Object windowedBy(JsonNode node, Object x) {
        Duration grace = millis(node, "grace_ms");
        return switch (string(node, "kind")) {
            case "session" -> {
                SessionWindows windows = SessionWindows.ofInactivityGapAndGrace(millis(node, "gap_ms"), grace);
                yield x instanceof KGroupedStream stream ? stream.windowedBy(windows) : ((CogroupedKStream) x).windowedBy(windows);
            }
            case "sliding" -> {
                SlidingWindows windows = SlidingWindows.ofTimeDifferenceAndGrace(millis(node, "size_ms"), grace);
                yield x instanceof KGroupedStream stream ? stream.windowedBy(windows) : ((CogroupedKStream) x).windowedBy(windows);
            }
            default -> {
                TimeWindows windows = TimeWindows.ofSizeAndGrace(millis(node, "size_ms"), grace);
                if (string(node, "kind").equals("hopping")) windows = windows.advanceBy(millis(node, "advance_ms"));
                yield x instanceof KGroupedStream stream ? stream.windowedBy(windows) : ((CogroupedKStream) x).windowedBy(windows);
            }
        };
    }

    private static Object emit(Object x, EmitStrategy when) {
        return x instanceof TimeWindowedKStream stream ? stream.emitStrategy(when) : ((SessionWindowedKStream) x).emitStrategy(when);
    }

    private static Object count(JsonNode node, Object x) {
        Materialized store = materialized(node);
        if (x instanceof KGroupedStream stream) return stream.count(store);
        if (x instanceof KGroupedTable table) return table.count(store);
        if (x instanceof TimeWindowedKStream stream) return stream.count(store);
        return ((SessionWindowedKStream) x).count(store);
    }

    private static Object reduce(JsonNode node, Object x, String fn) {
        Materialized store = materialized(node);
        Reducer adder = Functions.reducer(fn);
        if (x instanceof KGroupedStream stream) return store == null ? stream.reduce(adder) : stream.reduce(adder, store);
        if (x instanceof KGroupedTable table) return table.reduce(adder, Functions.reducer(string(node, "subtractor")), store);
        if (x instanceof TimeWindowedKStream stream) return stream.reduce(adder, store);
        return ((SessionWindowedKStream) x).reduce(adder, store);
    }

    private static Object aggregate(JsonNode node, Object x, String fn) {
        Materialized store = materialized(node);
        Initializer initial = Functions.initializer(string(node, "initializer"));
        Merger merger = node.has("merger") ? Functions.merger(string(node, "merger")) : null;
        if (x instanceof CogroupedKStream stream) return stream.aggregate(initial, store);
        if (x instanceof TimeWindowedCogroupedKStream stream) return stream.aggregate(initial, store);
        if (x instanceof SessionWindowedCogroupedKStream stream) return stream.aggregate(initial, merger, store);
        Aggregator add = Functions.aggregator(fn);
        if (x instanceof KGroupedStream stream) return stream.aggregate(initial, add, store);
        if (x instanceof TimeWindowedKStream stream) return stream.aggregate(initial, add, store);
        if (x instanceof SessionWindowedKStream stream) return stream.aggregate(initial, add, merger, store);
        return ((KGroupedTable) x).aggregate(initial, add, Functions.aggregator(string(node, "subtractor")), store);
    }

    private static Object join(JsonNode node, Object x, Object y) {
        String op = string(node, "op");
        ValueJoinerWithKey joiner = Functions.joiner(string(node, "joiner"));
        if (x instanceof KTable left) return joinTables(node, op, left, (KTable) y, joiner);
        KStream stream = (KStream) x;
        if (y instanceof GlobalKTable table) {
            KeyValueMapper select = Functions.keyMapper(string(node, "fn"));
            return op.equals("join") ? stream.join(table, select, joiner) : stream.leftJoin(table, select, joiner);
        }
        if (y instanceof KTable table) {
            Joined how = Joined.with(key(node), serde(string(node, "lt")), serde(string(node, "rt")));
            if (node.has("name")) how = how.withName(string(node, "name"));
            if (node.has("grace_ms")) how = how.withGracePeriod(millis(node, "grace_ms"));
            return op.equals("join") ? stream.join(table, joiner, how) : stream.leftJoin(table, joiner, how);
        }
        return joinStreams(node, op, stream, (KStream) y, joiner);
    }

    private static Object joinTables(JsonNode node, String op, KTable left, KTable right, ValueJoinerWithKey joiner) {
        ValueJoiner plain = (l, r) -> joiner.apply(null, l, r);
        if (!node.has("store")) {
            return switch (op) {
                case "join" -> left.join(right, plain);
                case "left_join" -> left.leftJoin(right, plain);
                default -> left.outerJoin(right, plain);
            };
        }
        return switch (op) {
            case "join" -> left.join(right, plain, materialized(node));
            case "left_join" -> left.leftJoin(right, plain, materialized(node));
            default -> left.outerJoin(right, plain, materialized(node));
        };
    }

    private static Object joinStreams(JsonNode node, String op, KStream left, KStream right, ValueJoinerWithKey joiner) {
        StreamJoined how = StreamJoined.with(key(node), serde(string(node, "lt")), serde(string(node, "rt")));
        if (node.has("name")) how = how.withName(string(node, "name"));
        if (node.has("store")) how = how.withStoreName(string(node, "store"));
        Duration before = millis(node, "before_ms");
        JoinWindows windows = JoinWindows.ofTimeDifferenceAndGrace(before, millis(node, "grace_ms")).after(millis(node, "after_ms"));
        return switch (op) {
            case "join" -> left.join(right, joiner, windows, how);
            case "left_join" -> left.leftJoin(right, joiner, windows, how);
            default -> left.outerJoin(right, joiner, windows, how);
        };
    }

    private static Object foreignKeyJoin(JsonNode node, KTable left, KTable right, String fn) {
        ValueJoinerWithKey joiner = Functions.joiner(string(node, "joiner"));
        ValueJoiner plain = (l, r) -> joiner.apply(null, l, r);
        java.util.function.Function<Object, Object> key = Functions.foreignKey(fn);
        Materialized store = materialized(node);
        if (string(node, "op").equals("foreign_key_join")) {
            return store == null ? left.join(right, key, plain) : left.join(right, key, plain, store);
        }
        return store == null ? left.leftJoin(right, key, plain) : left.leftJoin(right, key, plain, store);
    }

    private static Object toStream(JsonNode node, KTable x) {
        if (!"windowed".equals(string(node, "key"))) return x.toStream();
        return x.toStream((k, v) -> {
            Windowed windowed = (Windowed) k;
            return Functions.text(windowed.key()) + "@" + windowed.window().start() + "/" + windowed.window().end();
        });
    }

    private static Suppressed suppressed(JsonNode node) {
        if (string(node, "until").equals("window_closes")) {
            return Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded());
        }
        Suppressed.BufferConfig buffer = node.has("max_records")
            ? Suppressed.BufferConfig.maxRecords(number(node, "max_records")).emitEarlyWhenFull()
            : Suppressed.BufferConfig.unbounded();
        return Suppressed.untilTimeLimit(millis(node, "time_ms"), buffer);
    }
}
