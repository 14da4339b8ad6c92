import com.google.protobuf.ByteString;
import com.google.protobuf.DescriptorProtos.FileDescriptorProto;
import com.google.protobuf.DescriptorProtos.FileDescriptorSet;
import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.Descriptors.FieldDescriptor;
import com.google.protobuf.Descriptors.FileDescriptor;
import com.google.protobuf.Descriptors.OneofDescriptor;
import com.google.protobuf.DynamicMessage;
import com.google.protobuf.Message;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Protocol buffers, by protobuf-java's dynamic messages; a schema is a file with a set of descriptors. */
final class ProtobufFormat extends Format {
    private final List<Version> versions;
    private final List<Descriptor> messages = new ArrayList<>();

    ProtobufFormat(List<Version> versions) throws Exception {
        this.versions = versions;
        for (Version version : versions) {
            messages.add(firstMessage(FileDescriptorSet.parseFrom(Files.readAllBytes(Path.of(version.schema())))));
        }
    }

    private static Descriptor firstMessage(FileDescriptorSet set) throws Exception {
        Map<String, FileDescriptor> files = new LinkedHashMap<>();
        FileDescriptor last = null;
        for (FileDescriptorProto file : set.getFileList()) {  // imports come first
            FileDescriptor[] imports = file.getDependencyList().stream().map(files::get).toArray(FileDescriptor[]::new);
            last = FileDescriptor.buildFrom(file, imports);
            files.put(file.getName(), last);
        }
        return last.getMessageTypes().get(0);
    }

    @Override
    int idOf(int version) {
        return versions.get(version).id();
    }

    @Override
    byte[] indexes() {
        return new byte[] {0};  // the first message of the file
    }

    @Override
    byte[] payload(int version, long number) {
        return message(messages.get(version), number, "").toByteArray();
    }

    @Override
    Object read(int version, byte[] framed, int from) throws Exception {
        if (framed[from] != 0) {
            throw new IllegalStateException("another message than the first");
        }
        Descriptor newest = messages.get(messages.size() - 1);
        ByteString payload = ByteString.copyFrom(framed, from + 1, framed.length - from - 1);
        Message.Builder builder = DynamicMessage.parseFrom(newest, payload).toBuilder();
        return builder.setUnknownFields(com.google.protobuf.UnknownFieldSet.getDefaultInstance()).build();
    }

    @Override
    Object marked(Object record) {
        Message message = (Message) record;
        FieldDescriptor note = message.getDescriptorForType().findFieldByName("note");
        return message.toBuilder().setField(note, "seen " + message.getField(note)).build();
    }

    @Override
    long number(Object record) {
        Message message = (Message) record;
        return (Long) message.getField(message.getDescriptorForType().findFieldByName("number"));
    }

    private Message message(Descriptor type, long number, String path) {
        DynamicMessage.Builder builder = DynamicMessage.newBuilder(type);
        if (type.getFullName().equals("google.protobuf.Timestamp")) {
            long chance = chance(number, path);
            builder.setField(type.findFieldByName("seconds"), chance);
            return builder.setField(type.findFieldByName("nanos"), (int) (chance % 1_000_000) * 1_000).build();
        }
        if (type.getFullName().equals("google.protobuf.Duration")) {
            long chance = chance(number, path);
            builder.setField(type.findFieldByName("seconds"), chance % 1_000_000);
            return builder.setField(type.findFieldByName("nanos"), (int) (chance % 1_000_000) * 1_000).build();
        }
        for (FieldDescriptor field : type.getFields()) {
            if (isSet(field, number, path)) {
                builder.setField(field, field(field, number, path + "/" + field.getName()));
            }
        }
        return builder.build();
    }

    /** Of a oneof one field; an optional field sometimes. */
    private static boolean isSet(FieldDescriptor field, long number, String path) {
        OneofDescriptor oneof = field.getRealContainingOneof();
        if (oneof != null) {
            return chance(number, path + "/" + oneof.getName()) % oneof.getFieldCount() == oneof.getFields().indexOf(field);
        }
        return !field.toProto().getProto3Optional() || chance(number, path + "/" + field.getName() + "?") % 2 == 1;
    }

    private Object field(FieldDescriptor field, long number, String path) {
        if (field.isMapField()) {
            return entries(field, number, path);
        }
        if (!field.isRepeated()) {
            return path.equals("/number") ? (Object) number : single(field, number, path);
        }
        List<Object> values = new ArrayList<>();
        for (int at = 0; at < chance(number, path) % 3; at++) {
            values.add(single(field, number, path + "/" + at));
        }
        return values;
    }

    private List<Message> entries(FieldDescriptor field, long number, String path) {
        Descriptor entry = field.getMessageType();
        List<Message> entries = new ArrayList<>();
        for (int at = 0; at < chance(number, path) % 3; at++) {
            DynamicMessage.Builder builder = DynamicMessage.newBuilder(entry);
            FieldDescriptor key = entry.findFieldByName("key");
            builder.setField(key, key.getJavaType() == FieldDescriptor.JavaType.STRING ? "k" + at : single(key, at, path));
            entries.add(builder.setField(entry.findFieldByName("value"), single(entry.findFieldByName("value"), number, path + "/" + at)).build());
        }
        return entries;
    }

    private Object single(FieldDescriptor field, long number, String path) {
        long chance = chance(number, path);
        return switch (field.getJavaType()) {
            case BOOLEAN -> chance % 2 == 1;
            case INT -> (int) chance;
            case LONG -> chance * 1_000_003L - (1L << 40);
            case FLOAT -> (chance % 100_000) / 8f;
            case DOUBLE -> chance / 1024.0;
            case STRING -> text(chance);
            case BYTE_STRING -> ByteString.copyFrom(ByteBuffer.allocate(4).putInt(0, (int) chance));
            case ENUM -> field.getEnumType().getValues().get((int) (chance % field.getEnumType().getValues().size()));
            case MESSAGE -> message(field.getMessageType(), number, path);
        };
    }
}
