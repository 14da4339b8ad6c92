import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * What Java's clients write and read: `write JOB` fills a topic with records of all versions of a schema in turn, `read JOB`
 * compares a topic with what an application makes of them, and prints how many differ.
 *
 * A job is a JSON file: {"servers", "topic", "format", "count", "keys": how many, "key": VERSION,
 * "values": [VERSION, ...]}, where VERSION is {"id", "schema"}; the last value is the newest.
 */
public final class Interop {
    private final JsonNode job;
    private final Format values;
    private final Format keys;

    private Interop(JsonNode job) throws Exception {
        this.job = job;
        this.values = format(job.get("values"));
        this.keys = format(new ObjectMapper().createArrayNode().add(job.get("key")));
    }

    public static void main(String[] args) throws Exception {
        Interop interop = new Interop(new ObjectMapper().readTree(Path.of(args[1]).toFile()));
        if (args[0].equals("write")) {
            interop.write();
        } else {
            System.out.println(interop.differences());
        }
    }

    private Format format(JsonNode versions) throws Exception {
        List<Format.Version> all = new ArrayList<>();
        versions.forEach(version -> all.add(new Format.Version(version.get("id").asInt(), version.get("schema").asText())));
        return switch (job.get("format").asText()) {
            case "AVRO" -> new AvroFormat(all);
            case "PROTOBUF" -> new ProtobufFormat(all);
            default -> new JsonFormat(all);
        };
    }

    private void write() throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", job.get("servers").asText());
        try (var producer = new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
            for (long number = 0; number < job.get("count").asLong(); number++) {
                producer.send(new ProducerRecord<>(job.get("topic").asText(), key(number), value(number)));
            }
        }
    }

    /** The key of a record: there are fewer keys than records. */
    private byte[] key(long number) throws Exception {
        return keys.framed(0, keys.payload(0, number % job.get("keys").asLong()));
    }

    private byte[] value(long number) throws Exception {
        int version = version(number);
        return values.framed(version, values.payload(version, number));
    }

    private int version(long number) {
        return (int) (number % job.get("values").size());
    }

    /** How many records are missing, are there twice, or are not those that were written, with their notes marked. */
    private long differences() throws Exception {
        Map<Long, Integer> seen = new HashMap<>();
        long different = 0;
        for (ConsumerRecord<byte[], byte[]> record : records()) {
            Object value = values.read(newest(record.value()), record.value(), 5);
            long number = values.number(value);
            int version = version(number);
            Object written = values.marked(values.read(version, value(number), 5));
            boolean isFirst = seen.merge(number, 1, Integer::sum) == 1;
            if (!isFirst || !written.equals(value) || !java.util.Arrays.equals(record.key(), key(number))) {
                different++;
                System.err.println("is " + value + "\nnot " + written);
            }
        }
        return different + Math.abs(job.get("count").asLong() - seen.size());
    }

    /** The newest version, which is the one that is written; its id stands before the record. */
    private int newest(byte[] framed) {
        int newest = job.get("values").size() - 1;
        int id = ByteBuffer.wrap(framed, 1, 4).getInt();
        if (framed[0] != 0 || id != values.idOf(newest)) {
            throw new IllegalStateException("written with the schema " + id);
        }
        return newest;
    }

    private List<ConsumerRecord<byte[], byte[]>> records() {
        Map<String, Object> settings = Map.of("bootstrap.servers", job.get("servers").asText(), "isolation.level", "read_committed");
        List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
        try (var consumer = new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            List<TopicPartition> partitions = consumer.partitionsFor(job.get("topic").asText()).stream()
                .map(info -> new TopicPartition(info.topic(), info.partition())).toList();
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
            while (partitions.stream().anyMatch(partition -> consumer.position(partition) < ends.get(partition))) {
                consumer.poll(Duration.ofMillis(200)).forEach(records::add);
            }
        }
        return records;
    }
}
