import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.TestOutputTopic;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.state.VersionedRecord;
import org.apache.kafka.streams.test.TestRecord;

/** Reads cases (name, topology, input, config), a line of JSON each, and writes them with what Kafka Streams puts out. */
@SuppressWarnings({"unchecked", "rawtypes"})
public final class Recorder {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static String stateDir;
    private static int runs;

    private Recorder() {}

    public static void main(String[] arguments) throws Exception {
        stateDir = java.nio.file.Files.createTempDirectory("recorder").toString(); // recorders may run side by side
        var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        var out = new java.io.PrintStream(System.out, true, StandardCharsets.UTF_8);
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            ObjectNode found = (ObjectNode) JSON.readTree(line);
            try {
                found.set("expected", record(found));
            } catch (Exception error) {
                found.put("error", String.valueOf(error));
            }
            out.println(JSON.writeValueAsString(found));
        }
    }

    private static ObjectNode record(JsonNode found) {
        ObjectNode expected = run(found, false);
        ObjectNode uncached = run(found, true);
        for (String part : new String[] {"output", "stores"}) {
            if (!uncached.get(part).equals(expected.get(part))) expected.set(part + "_uncached", uncached.get(part));
        }
        return expected;
    }

    private static ObjectNode run(JsonNode found, boolean uncached) {
        Properties config = new Properties();
        config.put("application.id", "app");
        config.put("bootstrap.servers", "nowhere:1");
        config.put("state.dir", stateDir + "/" + runs++); // one that is refused leaves its stores open
        if (found.hasNonNull("config")) {
            found.get("config").fields().forEachRemaining(e -> config.put(e.getKey(), e.getValue().asText()));
        }
        if (uncached) config.put("statestore.cache.max.bytes", "0");
        // Stream time alone decides when windows close: no throttle by the wall clock.
        config.put("__emit.interval.ms.kstreams.windowed.aggregation__", 0L);
        config.put("__emit.interval.ms.kstreams.outer.join.spurious.results.fix__", 0L);
        Application app = new Application(found.get("topology"));
        Topology topology = app.build(config);
        ObjectNode expected = JSON.createObjectNode();
        expected.put("description", topology.describe().toString());
        try (var driver = new TopologyTestDriver(topology, config, Instant.ofEpochMilli(0))) {
            expected.set("output", feed(app, driver, found));
            expected.set("stores", stores(app, driver));
        }
        return expected;
    }

    private static ArrayNode feed(Application app, TopologyTestDriver driver, JsonNode found) {
        Map<String, TestInputTopic> inputs = new HashMap<>();
        app.inputs.forEach((topic, types) -> inputs.put(topic, driver.createInputTopic(
            topic, serde(types[0]).serializer(), serde(types[1]).serializer())));
        Map<String, TestOutputTopic> outputs = new HashMap<>();
        app.outputs.forEach((topic, types) -> outputs.put(topic, driver.createOutputTopic(
            topic, serde(types[0]).deserializer(), serde(types[1]).deserializer())));
        ArrayNode rows = JSON.createArrayNode();
        int step = 0;
        for (JsonNode item : found.get("input")) {
            if (item.has("advance_ms")) {
                driver.advanceWallClockTime(Duration.ofMillis(item.get("advance_ms").asLong()));
            } else {
                String topic = item.get("topic").asText();
                String[] types = app.inputs.get(topic);
                RecordHeaders headers = new RecordHeaders();
                if (item.has("headers")) {
                    item.get("headers").forEach(h -> headers.add(h.get(0).asText(), h.get(1).asText().getBytes(StandardCharsets.UTF_8)));
                }
                inputs.get(topic).pipeInput(new TestRecord<>(
                    value(item.get("key"), types[0]), value(item.get("value"), types[1]), headers, item.get("ts").asLong()));
            }
            for (String topic : app.outputs.keySet()) drain(outputs.get(topic), topic, step, rows);
            step++;
        }
        return rows;
    }

    private static Serde serde(String type) {
        return Application.serde(type);
    }

    private static Object value(JsonNode node, String type) {
        if (node == null || node.isNull()) return null;
        return type.equals("long") ? (Object) node.asLong() : node.asText();
    }

    private static void drain(TestOutputTopic topic, String name, int step, ArrayNode rows) {
        while (!topic.isEmpty()) {
            TestRecord<Object, Object> record = topic.readRecord();
            ArrayNode row = rows.addArray();
            row.add(step).add(name).addPOJO(record.key()).addPOJO(record.value()).add(record.timestamp());
            ArrayNode headers = row.addArray();
            for (Header header : record.headers()) {
                headers.addArray().add(header.key()).add(header.value() == null ? null : new String(header.value(), StandardCharsets.UTF_8));
            }
        }
    }

    private static ObjectNode stores(Application app, TopologyTestDriver driver) {
        ObjectNode found = JSON.createObjectNode();
        app.stores.forEach((name, kind) -> {
            if (driver.getAllStateStores().containsKey(name)) contents(driver, name, kind, found.putArray(name));
        });
        return found;
    }

    private static void contents(TopologyTestDriver driver, String name, String kind, ArrayNode rows) {
        switch (kind) {
            case "plain" -> driver.getKeyValueStore(name).all()
                .forEachRemaining(e -> rows.addArray().addPOJO(e.key).addPOJO(e.value));
            case "window" -> driver.getTimestampedWindowStore(name).all()
                .forEachRemaining(e -> rows.addArray().add(window(e.key)).addPOJO(e.value.value()).add(e.value.timestamp()));
            case "session" -> driver.getSessionStore(name).fetch(null, null)
                .forEachRemaining(e -> rows.addArray().add(window(e.key)).addPOJO(e.value));
            case "versioned" -> {
                for (String key : "abcd".split("")) {
                    VersionedRecord<Object> record = driver.getVersionedKeyValueStore(name).get(key);
                    if (record != null) rows.addArray().add(key).addPOJO(record.value()).add(record.timestamp());
                }
            }
            default -> driver.getTimestampedKeyValueStore(name).all()
                .forEachRemaining(e -> rows.addArray().addPOJO(e.key).addPOJO(e.value.value()).add(e.value.timestamp()));
        }
    }

    private static String window(Windowed<?> windowed) {
        return Functions.text(windowed.key()) + "@" + windowed.window().start() + "/" + windowed.window().end();
    }
}
