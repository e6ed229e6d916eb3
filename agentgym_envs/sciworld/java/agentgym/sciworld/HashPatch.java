package agentgym.sciworld;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.lang.instrument.ClassFileTransformer;
import java.lang.instrument.Instrumentation;
import java.nio.ByteBuffer;
import java.security.ProtectionDomain;

/**
 * A Java agent that gives the simulator's objects a hash code: their id.
 *
 * <p>The simulator keeps objects in hash sets without one, so that the order in which it goes
 * through them follows the virtual machine's identity hash, which depends on all that the machine
 * has done before. The method {@code int hashCode() { return (int) uuid(); }} is added while the
 * class is loaded; nothing is written to disk.
 */
public final class HashPatch implements ClassFileTransformer {
    private static final String OBJECT = "scienceworld/struct/EnvObject";
    private static final int MAGIC_AND_VERSION = 8;

    public static void premain(String arguments, Instrumentation instrumentation) {
        instrumentation.addTransformer(new HashPatch());
    }

    @Override
    public byte[] transform(
            ClassLoader loader, String name, Class<?> redefined, ProtectionDomain domain, byte[] file) {
        return OBJECT.equals(name) ? withHashCode(file) : null;
    }

    /** The class file with the method appended to its constants and methods. */
    static byte[] withHashCode(byte[] file) {
        try {
            ByteBuffer in = ByteBuffer.wrap(file);
            int numConstants = in.getShort(MAGIC_AND_VERSION);
            int endOfConstants = skipConstants(in, numConstants);
            int thisClass = in.getShort(endOfConstants + 2);
            int methods = skipFields(in, endOfConstants + 6);

            ByteArrayOutputStream bytes = new ByteArrayOutputStream(file.length + 200);
            DataOutputStream out = new DataOutputStream(bytes);
            out.write(file, 0, MAGIC_AND_VERSION);
            out.writeShort(numConstants + 7);
            out.write(file, MAGIC_AND_VERSION + 2, endOfConstants - MAGIC_AND_VERSION - 2);
            writeConstants(out, numConstants, thisClass);
            out.write(file, endOfConstants, methods - endOfConstants);
            out.writeShort(in.getShort(methods) + 1);
            writeMethod(out, numConstants);
            out.write(file, methods + 2, file.length - methods - 2);
            return bytes.toByteArray();
        } catch (IOException impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    private static void writeConstants(DataOutputStream out, int first, int thisClass)
            throws IOException {
        for (String text : new String[] {"hashCode", "()I", "Code", "uuid", "()J"}) {
            out.writeByte(1);
            out.writeUTF(text);
        }
        out.writeByte(12); // name and type: uuid ()J
        out.writeShort(first + 3);
        out.writeShort(first + 4);
        out.writeByte(10); // method of this class
        out.writeShort(thisClass);
        out.writeShort(first + 5);
    }

    private static void writeMethod(DataOutputStream out, int first) throws IOException {
        out.writeShort(1); // public
        out.writeShort(first);
        out.writeShort(first + 1);
        out.writeShort(1); // one attribute: the code
        out.writeShort(first + 2);
        out.writeInt(2 + 2 + 4 + 6 + 2 + 2);
        out.writeShort(2); // stack
        out.writeShort(1); // locals
        out.writeInt(6);
        out.writeByte(0x2A); // aload_0
        out.writeByte(0xB6); // invokevirtual
        out.writeShort(first + 6);
        out.writeByte(0x88); // l2i
        out.writeByte(0xAC); // ireturn
        out.writeShort(0); // exceptions
        out.writeShort(0); // attributes
    }

    private static int skipConstants(ByteBuffer in, int count) {
        int at = MAGIC_AND_VERSION + 2;
        for (int index = 1; index < count; index++) {
            int tag = in.get(at);
            switch (tag) {
                case 1 -> at += 3 + Short.toUnsignedInt(in.getShort(at + 1));
                case 7, 8, 16, 19, 20 -> at += 3;
                case 15 -> at += 4;
                case 5, 6 -> {
                    at += 9;
                    index++; // takes two places
                }
                default -> at += 5;
            }
        }
        return at;
    }

    /** From the number of interfaces to the number of methods. */
    private static int skipFields(ByteBuffer in, int interfaces) {
        int at = interfaces + 2 + 2 * in.getShort(interfaces);
        int numFields = in.getShort(at);
        at += 2;
        for (int field = 0; field < numFields; field++) {
            int numAttributes = in.getShort(at + 6);
            at += 8;
            for (int attribute = 0; attribute < numAttributes; attribute++) {
                at += 6 + in.getInt(at + 2);
            }
        }
        return at;
    }
}
