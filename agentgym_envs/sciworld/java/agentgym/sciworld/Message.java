package agentgym.sciworld;

import java.io.DataInputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Requests that came together, and their answers, which go back together.
 *
 * <p>On the wire a message is a length and that many bytes: its number, how many requests there
 * are, and for each the number of a simulator and texts. A reply is the same with answers: 0 or, for
 * an error, 1, and texts. Texts are their number and each a length and that many bytes of UTF-8. All
 * lengths and numbers have 32 bits, big-endian.
 */
final class Message {
    final int number;
    final int[] simulators;
    final String[][] requests;

    private final byte[][] answers;
    private final AtomicInteger numOpen;

    private Message(ByteBuffer bytes) {
        number = bytes.getInt();
        int count = bytes.getInt();
        simulators = new int[count];
        requests = new String[count][];
        answers = new byte[count][];
        numOpen = new AtomicInteger(count);
        for (int index = 0; index < count; index++) {
            simulators[index] = bytes.getInt();
            requests[index] = texts(bytes);
        }
    }

    /** The next message, after waiting for it. */
    static Message read(DataInputStream in) throws IOException {
        byte[] bytes = new byte[in.readInt()];
        in.readFully(bytes);
        return new Message(ByteBuffer.wrap(bytes));
    }

    /** Keep the answer to a request; whether it was the last one. */
    boolean answer(int index, boolean isError, String... texts) {
        answers[index] = encoded(isError, texts);
        return numOpen.decrementAndGet() == 0;
    }

    /** All answers, for the wire. */
    byte[] reply() {
        int length = 8;
        for (byte[] answer : answers) {
            length += answer.length;
        }
        ByteBuffer reply = ByteBuffer.allocate(4 + length);
        reply.putInt(length).putInt(number).putInt(answers.length);
        for (byte[] answer : answers) {
            reply.put(answer);
        }
        return reply.array();
    }

    private static String[] texts(ByteBuffer bytes) {
        String[] texts = new String[bytes.getInt()];
        for (int number = 0; number < texts.length; number++) {
            byte[] text = new byte[bytes.getInt()];
            bytes.get(text);
            texts[number] = new String(text, StandardCharsets.UTF_8);
        }
        return texts;
    }

    private static byte[] encoded(boolean isError, String[] texts) {
        byte[][] parts = new byte[texts.length][];
        int length = 8;
        for (int number = 0; number < texts.length; number++) {
            parts[number] = texts[number].getBytes(StandardCharsets.UTF_8);
            length += 4 + parts[number].length;
        }
        ByteBuffer bytes = ByteBuffer.allocate(length);
        bytes.putInt(isError ? 1 : 0).putInt(parts.length);
        for (byte[] part : parts) {
            bytes.putInt(part.length).put(part);
        }
        return bytes.array();
    }
}
