import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.util.zip.CRC32;

/** A format of records: what is written for a number, and what a reader of the newest schema takes from bytes. */
abstract class Format {
    /** One version of a schema and the id that a registry gave it. */
    record Version(int id, String schema) {}

    /** The bytes of the record of a number, without the frame. */
    abstract byte[] payload(int version, long number) throws Exception;

    /** What a reader of the newest version takes from the bytes of a record that was written with one. */
    abstract Object read(int version, byte[] framed, int from) throws Exception;

    /** The same record as an application hands it on: its note is marked, unless it is so already. */
    abstract Object marked(Object record);

    abstract long number(Object record);

    abstract int idOf(int version);

    /** What stands between the id and the payload. */
    byte[] indexes() {
        return new byte[0];
    }

    byte[] framed(int version, byte[] payload) throws Exception {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        out.write(0);
        out.write(ByteBuffer.allocate(4).putInt(idOf(version)).array());
        out.write(indexes());
        out.write(payload);
        return out.toByteArray();
    }

    /** A number that looks random, the same for everybody: the CRC-32 of the record's number and a path in it. */
    static long chance(long number, String path) {
        CRC32 crc = new CRC32();
        crc.update((number + path).getBytes(java.nio.charset.StandardCharsets.UTF_8));
        return crc.getValue();
    }

    /** Without characters beyond 16 bits: Jackson escapes them, so that keys of JSON would have other bytes than ours. */
    static String text(long chance) {
        return "s" + chance + (chance % 7 == 0 ? "é" : "");
    }
}
