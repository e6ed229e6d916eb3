package agentgym.sciworld;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import main.scala.scienceworld.runtime.Simplification;

/**
 * What belongs to one simulator but is kept by the simulator's singletons: random state, object ids
 * and simplifications.
 *
 * <p>The classes of this folder that stand in for those singletons read the context that the
 * current thread has entered. A worker enters the context of a simulator for as long as it runs a
 * request of that simulator.
 */
public final class Context {
    private static final ThreadLocal<Context> CURRENT = ThreadLocal.withInitial(Context::new);

    public final Draws draws = new Draws();
    public final List<Simplification> simplifications = new ArrayList<>();
    public long lastId;

    /** The context that the current thread is in; one of its own if it has entered none. */
    public static Context current() {
        return CURRENT.get();
    }

    /** Make this the context of the current thread. */
    public void enter() {
        CURRENT.set(this);
    }

    /** A generator whose state can be read and put back, so that a query leaves no trace. */
    public static final class Draws extends Random {
        private static final long serialVersionUID = 1;
        private static final long MULTIPLIER = 0x5DEECE66DL;
        private static final long MASK = (1L << 48) - 1;

        private long state;

        Draws() {
            super(0);
        }

        @Override
        public synchronized void setSeed(long seed) {
            super.setSeed(seed); // forgets the second of a pair of normal draws
            state = (seed ^ MULTIPLIER) & MASK;
        }

        @Override
        protected int next(int bits) {
            state = (state * MULTIPLIER + 0xBL) & MASK;
            return (int) (state >>> (48 - bits));
        }

        public long state() {
            return state;
        }

        public void restore(long saved) {
            state = saved;
        }
    }
}
