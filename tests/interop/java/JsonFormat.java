import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.List;

/** JSON with a schema, by Jackson's trees; of a schema it looks at types, properties, items and defaults. */
final class JsonFormat extends Format {
    private static final ObjectMapper MAPPER = new ObjectMapper();
    private static final JsonNodeFactory NODES = JsonNodeFactory.instance;

    private final List<Version> versions;
    private final List<JsonNode> schemas = new ArrayList<>();

    JsonFormat(List<Version> versions) throws Exception {
        this.versions = versions;
        for (Version version : versions) {
            schemas.add(MAPPER.readTree(version.schema()));
        }
    }

    @Override
    int idOf(int version) {
        return versions.get(version).id();
    }

    @Override
    byte[] payload(int version, long number) throws Exception {
        return MAPPER.writeValueAsBytes(value(schemas.get(version), number, ""));
    }

    @Override
    Object read(int version, byte[] framed, int from) throws Exception {
        JsonNode record = MAPPER.readTree(framed, from, framed.length - from);
        ObjectNode known = NODES.objectNode();
        schemas.get(schemas.size() - 1).get("properties").properties().forEach(property -> {
            JsonNode value = record.get(property.getKey());
            known.set(property.getKey(), value == null ? property.getValue().get("default") : value);
        });
        return known;
    }

    @Override
    Object marked(Object record) {
        ObjectNode marked = ((ObjectNode) record).deepCopy();
        return marked.put("note", "seen " + marked.get("note").asText());
    }

    @Override
    long number(Object record) {
        return ((ObjectNode) record).get("number").asLong();
    }

    private JsonNode value(JsonNode schema, long number, String path) {
        if (path.equals("/number")) {
            return NODES.numberNode(number);
        }
        long chance = chance(number, path);
        return switch (schema.get("type").asText()) {
            case "boolean" -> NODES.booleanNode(chance % 2 == 1);
            case "integer" -> NODES.numberNode(chance * 1_000_003L - (1L << 40));
            case "number" -> NODES.numberNode(chance / 1024.0 + 0.5 / 1024);
            case "string" -> NODES.textNode(text(chance));
            case "array" -> {
                ArrayNode array = NODES.arrayNode();
                for (int at = 0; at < chance % 3; at++) {
                    array.add(value(schema.get("items"), number, path + "/" + at));
                }
                yield array;
            }
            default -> object(schema, number, path);
        };
    }

    private JsonNode object(JsonNode schema, long number, String path) {
        ObjectNode object = NODES.objectNode();
        schema.get("properties").properties().forEach(
            property -> object.set(property.getKey(), value(property.getValue(), number, path + "/" + property.getKey())));
        return object;
    }
}
