import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.time.Duration;
import java.time.Instant;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.processor.Cancellable;
import org.apache.kafka.streams.processor.PunctuationType;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;

/** Reads scenarios of punctuators, a line of JSON each; writes which of them Kafka Streams calls, and with which time. */
public final class PunctuationOrder {
    private static final ObjectMapper JSON = new ObjectMapper();

    private final JsonNode scenario;
    private final ArrayNode called = JSON.createArrayNode();
    private final Map<String, Cancellable> schedules = new HashMap<>();
    private final Map<String, Integer> calls = new HashMap<>();

    private PunctuationOrder(JsonNode scenario) {
        this.scenario = scenario;
    }

    public static void main(String[] arguments) throws Exception {
        var lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            System.out.println(new PunctuationOrder(JSON.readTree(line)).run());
        }
    }

    private ArrayNode run() throws Exception {
        Properties config = new Properties();
        config.put("application.id", "app");
        config.put("bootstrap.servers", "nowhere:1");
        config.put("state.dir", Files.createTempDirectory("punctuation").toString());
        Topology topology = new Topology().addSource("source", new StringDeserializer(), new StringDeserializer(), "in");
        topology.addProcessor("first", () -> new Scheduling("first"), "source");
        topology.addProcessor("second", () -> new Scheduling("second"), "first");
        boolean byRecords = scenario.get("kind").asText().equals("stream-time");
        try (var driver = new TopologyTestDriver(topology, config, Instant.ofEpochMilli(0))) {
            var topic = driver.createInputTopic("in", new StringSerializer(), new StringSerializer());
            long before = 0;
            for (JsonNode move : scenario.get("moves")) {
                if (byRecords) topic.pipeInput("k", "v", move.asLong());
                else driver.advanceWallClockTime(Duration.ofMillis(move.asLong() - before));
                before = move.asLong();
            }
        }
        return called;
    }

    private final class Scheduling extends ContextualProcessor<String, String, String, String> {
        private final String node;

        Scheduling(String node) {
            this.node = node;
        }

        @Override
        public void init(ProcessorContext<String, String> context) {
            super.init(context);
            for (JsonNode each : scenario.get("punctuators")) {
                if (each.get(0).asText().equals(node)) schedule(each.get(1).asText(), each.get(2).asLong());
            }
        }

        private void schedule(String name, long everyMs) {
            PunctuationType type = scenario.get("kind").asText().equals("stream-time")
                ? PunctuationType.STREAM_TIME : PunctuationType.WALL_CLOCK_TIME;
            schedules.put(name, context().schedule(Duration.ofMillis(everyMs), type, now -> call(name, now)));
        }

        private void call(String name, long now) {
            called.addArray().add(name).add(now);
            int number = calls.merge(name, 1, Integer::sum);
            for (JsonNode act : scenario.get("acts")) {
                if (act.get(0).asText().equals(name) && act.get(1).asInt() == number) act(act.get(2).asText(), act.get(3));
            }
        }

        private void act(String other, JsonNode everyMs) {
            if (everyMs.isNull()) {
                if (schedules.containsKey(other)) schedules.get(other).cancel();
            } else schedule(other, everyMs.asLong());
        }

        @Override
        public void process(Record<String, String> record) {
            context().forward(record);
        }
    }
}
