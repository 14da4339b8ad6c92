import java.io.ByteArrayOutputStream;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.apache.avro.LogicalType;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.io.BinaryDecoder;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.DecoderFactory;
import org.apache.avro.io.EncoderFactory;
import org.apache.avro.util.Utf8;

/** Plain Avro, by Apache Avro's generic records. */
final class AvroFormat extends Format {
    private final List<Version> versions;
    private final List<Schema> schemas = new ArrayList<>();

    AvroFormat(List<Version> versions) {
        this.versions = versions;
        for (Version version : versions) {
            schemas.add(new Schema.Parser().parse(version.schema()));
        }
    }

    @Override
    int idOf(int version) {
        return versions.get(version).id();
    }

    @Override
    byte[] payload(int version, long number) throws Exception {
        Schema schema = schemas.get(version);
        return encoded(schema, value(schema, number, ""));
    }

    static byte[] encoded(Schema schema, Object value) throws Exception {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        BinaryEncoder encoder = EncoderFactory.get().binaryEncoder(out, null);
        new GenericDatumWriter<>(schema).write(value, encoder);
        encoder.flush();
        return out.toByteArray();
    }

    @Override
    Object read(int version, byte[] framed, int from) throws Exception {
        BinaryDecoder decoder = DecoderFactory.get().binaryDecoder(framed, from, framed.length - from, null);
        Object record = new GenericDatumReader<>(schemas.get(version), newest()).read(null, decoder);
        if (!decoder.isEnd()) {
            throw new IllegalStateException("bytes behind the record");
        }
        return record;
    }

    private Schema newest() {
        return schemas.get(schemas.size() - 1);
    }

    @Override
    Object marked(Object record) {
        GenericData.Record marked = new GenericData.Record((GenericData.Record) record, true);
        marked.put("note", new Utf8("seen " + marked.get("note")));
        return marked;
    }

    @Override
    long number(Object record) {
        return (Long) ((GenericData.Record) record).get("number");
    }

    private Object value(Schema schema, long number, String path) {
        if (path.equals("/number")) {
            return number;
        }
        long chance = chance(number, path);
        LogicalType logical = schema.getLogicalType();
        String name = logical == null ? "" : logical.getName();
        return switch (schema.getType()) {
            case NULL -> null;
            case BOOLEAN -> chance % 2 == 1;
            case INT -> switch (name) {
                case "date" -> (int) (chance % 40_000);
                case "time-millis" -> (int) (chance % 86_400_000);
                default -> (int) chance;
            };
            case LONG -> switch (name) {
                case "timestamp-millis", "local-timestamp-millis" -> chance * 1_000 % 4_102_444_800_000L + chance % 1_000;
                case "timestamp-micros", "local-timestamp-micros" -> chance * 1_000_000 % 4_102_444_800_000_000L + chance % 1_000_000;
                case "time-micros" -> chance * 20 % 86_400_000_000L;
                default -> chance * 1_000_003L - (1L << 40);
            };
            case FLOAT -> (chance % 100_000) / 8f;
            case DOUBLE -> chance / 1024.0;
            case STRING -> name.equals("uuid") ? new UUID(chance * 31, chance * 17).toString() : text(chance);
            case BYTES -> name.equals("decimal")
                ? ByteBuffer.wrap(BigInteger.valueOf(chance - (1L << 31)).toByteArray())
                : ByteBuffer.allocate(4).putInt(0, (int) chance);
            case FIXED -> new GenericData.Fixed(schema, fixed(schema.getFixedSize(), name, chance));
            case ENUM -> new GenericData.EnumSymbol(schema, schema.getEnumSymbols().get((int) (chance % schema.getEnumSymbols().size())));
            case ARRAY -> array(schema, number, path, (int) (chance % 3));
            case MAP -> map(schema, number, path, (int) (chance % 3));
            case UNION -> {
                int branch = (int) (chance % schema.getTypes().size());
                yield value(schema.getTypes().get(branch), number, path + "/" + branch);
            }
            case RECORD -> record(schema, number, path);
        };
    }

    private static byte[] fixed(int size, String name, long chance) {
        if (name.equals("duration")) {
            ByteBuffer parts = ByteBuffer.allocate(12).order(ByteOrder.LITTLE_ENDIAN);
            return parts.putInt((int) (chance % 1_200)).putInt((int) (chance % 365)).putInt((int) (chance % 86_400_000)).array();
        }
        byte[] bytes = new byte[size];
        if (name.equals("decimal")) {
            byte[] digits = BigInteger.valueOf(chance - (1L << 31)).toByteArray();
            Arrays.fill(bytes, (byte) (digits[0] < 0 ? -1 : 0));
            System.arraycopy(digits, 0, bytes, size - digits.length, digits.length);
        } else {
            for (int at = 0; at < size; at++) {
                bytes[at] = (byte) (chance >> (8 * (at % 4)));
            }
        }
        return bytes;
    }

    private Object array(Schema schema, long number, String path, int size) {
        GenericData.Array<Object> array = new GenericData.Array<>(size, schema);
        for (int at = 0; at < size; at++) {
            array.add(value(schema.getElementType(), number, path + "/" + at));
        }
        return array;
    }

    private Object map(Schema schema, long number, String path, int size) {
        Map<Object, Object> map = new LinkedHashMap<>();
        for (int at = 0; at < size; at++) {
            map.put("k" + at, value(schema.getValueType(), number, path + "/" + at));
        }
        return map;
    }

    private Object record(Schema schema, long number, String path) {
        GenericData.Record record = new GenericData.Record(schema);
        for (Schema.Field field : schema.getFields()) {
            record.put(field.pos(), value(field.schema(), number, path + "/" + field.name()));
        }
        return record;
    }
}
