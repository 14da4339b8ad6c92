import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.processor.PunctuationType;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.ProcessorSupplier;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;

/** The processors that cases name: the same as in replay.py. */
final class Processors {
    private Processors() {}

    static ProcessorSupplier<Object, Object, Object, Object> supplier(String spec) {
        String[] parts = spec.split(":");
        return switch (parts[0]) {
            case "echo_later" -> () -> new EchoLater(Long.parseLong(parts[1]));
            case "distinct" -> Distinct::new;
            case "flush_stream_time" -> () -> new Flush(Long.parseLong(parts[1]), PunctuationType.STREAM_TIME);
            case "flush_wall_clock" -> () -> new Flush(Long.parseLong(parts[1]), PunctuationType.WALL_CLOCK_TIME);
            default -> throw new IllegalArgumentException(spec);
        };
    }

    private static final class EchoLater implements Processor<Object, Object, Object, Object> {
        private final long delayMs;
        private ProcessorContext<Object, Object> context;

        EchoLater(long delayMs) {
            this.delayMs = delayMs;
        }

        @Override
        public void init(ProcessorContext<Object, Object> context) {
            this.context = context;
        }

        @Override
        public void process(Record<Object, Object> record) {
            context.forward(record);
            context.forward(record.withTimestamp(record.timestamp() + delayMs)
                .withValue(Functions.text(record.value()) + "'"));
        }
    }

    private static final class Distinct implements Processor<Object, Object, Object, Object> {
        private ProcessorContext<Object, Object> context;
        private KeyValueStore<Object, Object> store;

        @Override
        public void init(ProcessorContext<Object, Object> context) {
            this.context = context;
            this.store = context.getStateStore("store");
        }

        @Override
        public void process(Record<Object, Object> record) {
            if (record.key() == null || record.value() == null || record.value().equals(store.get(record.key()))) return;
            store.put(record.key(), record.value());
            context.forward(record);
        }
    }

    private static final class Flush implements Processor<Object, Object, Object, Object> {
        private final long everyMs;
        private final PunctuationType kind;
        private ProcessorContext<Object, Object> context;
        private KeyValueStore<Object, Object> store;

        Flush(long everyMs, PunctuationType kind) {
            this.everyMs = everyMs;
            this.kind = kind;
        }

        @Override
        public void init(ProcessorContext<Object, Object> context) {
            this.context = context;
            this.store = context.getStateStore("store");
            context.schedule(Duration.ofMillis(everyMs), kind, this::flush);
        }

        private void flush(long nowMs) {
            List<KeyValue<Object, Object>> rows = new ArrayList<>();
            try (KeyValueIterator<Object, Object> all = store.all()) {
                all.forEachRemaining(rows::add);
            }
            for (var row : rows) context.forward(new Record<>(row.key, row.value + "@" + nowMs, nowMs));
            for (var row : rows) store.delete(row.key);
        }

        @Override
        public void process(Record<Object, Object> record) {
            if (record.key() != null && record.value() != null) store.put(record.key(), record.value());
        }
    }
}
