package agentgym.sciworld;

import java.io.OutputStream;
import java.io.PrintStream;

/** Takes what the simulator prints, a lot each step, and neither formats nor locks. */
final class Silence extends PrintStream {
    Silence() {
        super(OutputStream.nullOutputStream());
    }

    @Override
    public void print(String text) {}

    @Override
    public void print(Object value) {}

    @Override
    public void println() {}

    @Override
    public void println(String text) {}

    @Override
    public void println(Object value) {}
}
