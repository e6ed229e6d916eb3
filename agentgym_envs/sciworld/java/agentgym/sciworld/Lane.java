package agentgym.sciworld;

import java.util.ArrayDeque;
import java.util.Queue;
import java.util.concurrent.Executor;

/** Does the work of one simulator in order, on whatever thread is free. */
final class Lane implements Executor {
    private final Executor threads;
    private final Queue<Runnable> waiting = new ArrayDeque<>();
    private boolean isBusy;

    Lane(Executor threads) {
        this.threads = threads;
    }

    @Override
    public synchronized void execute(Runnable work) {
        if (isBusy) {
            waiting.add(work);
        } else {
            isBusy = true;
            threads.execute(() -> run(work));
        }
    }

    private void run(Runnable work) {
        try {
            work.run();
        } finally {
            goOn();
        }
    }

    private synchronized void goOn() {
        Runnable next = waiting.poll();
        if (next == null) {
            isBusy = false;
        } else {
            threads.execute(() -> run(next));
        }
    }
}
