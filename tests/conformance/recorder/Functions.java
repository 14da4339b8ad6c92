import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.kstream.Aggregator;
import org.apache.kafka.streams.kstream.Initializer;
import org.apache.kafka.streams.kstream.KeyValueMapper;
import org.apache.kafka.streams.kstream.Merger;
import org.apache.kafka.streams.kstream.Predicate;
import org.apache.kafka.streams.kstream.Reducer;
import org.apache.kafka.streams.kstream.ValueJoinerWithKey;
import org.apache.kafka.streams.kstream.ValueMapperWithKey;

/** The functions that cases name, as "name" or "name:argument": the same as in replay.py. */
final class Functions {
    private Functions() {}

    static String text(Object value) {
        return value == null ? "null" : String.valueOf(value);
    }

    private static String name(String spec) {
        return spec.split(":", 2)[0];
    }

    private static String argument(String spec) {
        return spec.contains(":") ? spec.split(":", 2)[1] : "";
    }

    static Predicate<Object, Object> predicate(String spec) {
        String a = argument(spec);
        return switch (name(spec)) {
            case "true" -> (k, v) -> true;
            case "false" -> (k, v) -> false;
            case "length_gt" -> (k, v) -> v != null && ((String) v).length() > Integer.parseInt(a);
            case "starts_with" -> (k, v) -> v != null && ((String) v).startsWith(a);
            case "contains" -> (k, v) -> v != null && ((String) v).contains(a);
            case "key_is" -> (k, v) -> a.equals(k);
            case "even" -> (k, v) -> v != null && (Long) v % 2 == 0;
            case "gt" -> (k, v) -> v != null && (Long) v > Long.parseLong(a);
            default -> throw new IllegalArgumentException(spec);
        };
    }

    static ValueMapperWithKey<Object, Object, Object> valueMapper(String spec) {
        String a = argument(spec);
        return switch (name(spec)) {
            case "identity" -> (k, v) -> v;
            case "upper" -> (k, v) -> v == null ? null : ((String) v).toUpperCase();
            case "append" -> (k, v) -> text(v) + a;
            case "prepend_key" -> (k, v) -> text(k) + ":" + text(v);
            case "length" -> (k, v) -> v == null ? null : (Object) (long) ((String) v).length();
            case "to_string" -> (k, v) -> v == null ? null : String.valueOf(v);
            case "add" -> (k, v) -> v == null ? null : (Object) ((Long) v + Long.parseLong(a));
            case "null_if" -> (k, v) -> v == null || String.valueOf(v).equals(a) ? null : v;
            default -> throw new IllegalArgumentException(spec);
        };
    }

    static ValueMapperWithKey<Object, Object, Iterable<Object>> flatValueMapper(String spec) {
        return switch (name(spec)) {
            case "split" -> (k, v) -> v == null ? List.of() : new ArrayList<>(List.of(((String) v).split(" ")));
            case "twice" -> (k, v) -> {
                List<Object> both = new ArrayList<>();
                both.add(v);
                both.add(v);
                return both;
            };
            case "none" -> (k, v) -> List.of();
            default -> throw new IllegalArgumentException(spec);
        };
    }

    static KeyValueMapper<Object, Object, Object> keyMapper(String spec) {
        String a = argument(spec);
        return switch (name(spec)) {
            case "key" -> (k, v) -> k;
            case "value" -> (k, v) -> v == null ? null : String.valueOf(v);
            case "first_char" -> (k, v) ->
                v == null || String.valueOf(v).isEmpty() ? null : String.valueOf(v).substring(0, 1);
            case "const" -> (k, v) -> a;
            case "key_append" -> (k, v) -> text(k) + a;
            default -> throw new IllegalArgumentException(spec);
        };
    }

    static KeyValueMapper<Object, Object, KeyValue<Object, Object>> mapper(String spec) {
        return switch (name(spec)) {
            case "swap" -> (k, v) -> KeyValue.pair(v, k);
            case "key_to_value" -> (k, v) -> KeyValue.pair(k, k);
            case "value_to_key" -> (k, v) -> KeyValue.pair(v, v);
            default -> throw new IllegalArgumentException(spec);
        };
    }

    static KeyValueMapper<Object, Object, Iterable<KeyValue<Object, Object>>> flatMapper(String spec) {
        return switch (name(spec)) {
            case "words" -> (k, v) -> {
                List<KeyValue<Object, Object>> found = new ArrayList<>();
                if (v != null) for (String word : ((String) v).split(" ")) found.add(KeyValue.pair(word, k));
                return found;
            };
            case "both_ways" -> (k, v) -> List.of(KeyValue.pair(k, v), KeyValue.pair(v, k));
            default -> throw new IllegalArgumentException(spec);
        };
    }

    static ValueJoinerWithKey<Object, Object, Object, Object> joiner(String spec) {
        return switch (name(spec)) {
            case "concat" -> (k, left, right) -> text(left) + "+" + text(right);
            case "with_key" -> (k, left, right) -> text(k) + "=" + text(left) + "+" + text(right);
            case "left" -> (k, left, right) -> left;
            case "null_if_right_missing" -> (k, left, right) -> right == null ? null : text(left) + "+" + right;
            default -> throw new IllegalArgumentException(spec);
        };
    }

    static Reducer<Object> reducer(String spec) {
        return switch (name(spec)) {
            case "concat" -> (x, y) -> text(x) + "," + text(y);
            case "remove" -> (x, y) -> text(x) + "-" + text(y);
            case "sum" -> (x, y) -> (Long) x + (Long) y;
            case "difference" -> (x, y) -> (Long) x - (Long) y;
            case "max" -> (x, y) -> Math.max((Long) x, (Long) y);
            case "last" -> (x, y) -> y;
            default -> throw new IllegalArgumentException(spec);
        };
    }

    static Initializer<Object> initializer(String spec) {
        String a = argument(spec);
        return switch (name(spec)) {
            case "empty" -> () -> "";
            case "zero" -> () -> 0L;
            case "const" -> () -> a;
            default -> throw new IllegalArgumentException(spec);
        };
    }

    static Aggregator<Object, Object, Object> aggregator(String spec) {
        return switch (name(spec)) {
            case "trace_add" -> (k, v, agg) -> text(agg) + "+" + text(v);
            case "trace_remove" -> (k, v, agg) -> text(agg) + "-" + text(v);
            case "sum_length" -> (k, v, agg) -> (Long) agg + (v == null ? 0 : String.valueOf(v).length());
            case "subtract_length" -> (k, v, agg) -> (Long) agg - (v == null ? 0 : String.valueOf(v).length());
            case "null_at_three" -> (k, v, agg) -> {
                String trace = (agg == null ? "" : agg) + "+" + text(v);
                return trace.chars().filter(c -> c == '+').count() >= 3 ? null : trace;
            };
            default -> throw new IllegalArgumentException(spec);
        };
    }

    static Merger<Object, Object> merger(String spec) {
        return switch (name(spec)) {
            case "trace" -> (k, x, y) -> "(" + text(x) + "|" + text(y) + ")";
            case "sum" -> (k, x, y) -> (Long) x + (Long) y;
            default -> throw new IllegalArgumentException(spec);
        };
    }

    static java.util.function.Function<Object, Object> foreignKey(String spec) {
        return switch (name(spec)) {
            case "first_char" -> v -> ((String) v).isEmpty() ? null : ((String) v).substring(0, 1);
            case "value" -> v -> v;
            case "before_dash" -> v ->
                ((String) v).contains("-") ? ((String) v).substring(0, ((String) v).indexOf('-')) : null;
            default -> throw new IllegalArgumentException(spec);
        };
    }
}
