package agentgym.sciworld;

import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReadWriteLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.function.Supplier;
import java.util.stream.Stream;
import scienceworld.runtime.pythonapi.PythonInterface;

/**
 * Hosts simulators for the process that started it, over stdin and stdout; see `Message`.
 *
 * <p>A request is the name of what to do, and arguments. Requests of one simulator are done in
 * order, those of others at the same time, by a fixed number of threads. The server ends with its
 * owner.
 */
public final class Server {
    private static final int LOADS_A_COLLECTION = 16;
    private static final long LOAD_BYTES = 24L << 20; // of which most are garbage at its end
    private static final long MOST_SPARE_BYTES = 64L << 20; // more than the young generation
    private static final long STACK_BYTES = 16L << 20;

    private final Map<Integer, Lane> lanes = new ConcurrentHashMap<>();
    private final Map<Integer, Simulator> simulators = new ConcurrentHashMap<>();
    private final Set<Integer> dropped = ConcurrentHashMap.newKeySet();
    private final Set<Work> running = ConcurrentHashMap.newKeySet();
    private final AtomicInteger loads = new AtomicInteger();
    private final ReadWriteLock loading = new ReentrantReadWriteLock();
    private final int numThreads;
    private final Executor threads;
    private final OutputStream replies;

    private Server(int numThreads, OutputStream replies) {
        this.replies = replies;
        this.numThreads = numThreads;
        threads =
                Executors.newFixedThreadPool(
                        numThreads, work -> new Thread(null, work, "simulators", STACK_BYTES));
    }

    /** One request of a message. */
    private record Work(Message message, int index) {
        int simulator() {
            return message.simulators[index];
        }

        String[] texts() {
            return message.requests[index];
        }
    }

    /**
     * Serve until stdin ends.
     *
     * @param arguments number of threads, and process id of the owner
     */
    public static void main(String[] arguments) throws IOException {
        OutputStream replies = new FileOutputStream(FileDescriptor.out);
        System.setOut(new Silence());
        System.setErr(new Silence());
        ProcessHandle.of(Long.parseLong(arguments[1]))
                .ifPresent(owner -> owner.onExit().thenRun(() -> Runtime.getRuntime().halt(0)));
        Server server = new Server(Integer.parseInt(arguments[0]), replies);
        try {
            server.serve(new DataInputStream(new BufferedInputStream(System.in)));
        } finally { // the owner is gone, or a message was larger than the heap
            Runtime.getRuntime().halt(0);
        }
    }

    private void serve(DataInputStream requests) throws IOException {
        while (true) {
            Message message = Message.read(requests);
            for (int index = 0; index < message.requests.length; index++) {
                Work work = new Work(message, index);
                switch (work.texts()[0]) {
                    case "hello" -> finish(work, false);
                    case "running" -> finish(work, false, inProgress());
                    case "drop" -> {
                        dropped.add(work.simulator());
                        lane(work.simulator()).execute(() -> drop(work));
                    }
                    default -> lane(work.simulator()).execute(() -> answer(work));
                }
            }
        }
    }

    private Lane lane(int simulator) {
        return lanes.computeIfAbsent(simulator, key -> new Lane(threads));
    }

    /** The requests that threads work on now. */
    private String[] inProgress() {
        return running.stream().map(work -> String.join(" ", work.texts())).toArray(String[]::new);
    }

    /** Let go of a simulator, once what it is doing is done. */
    private void drop(Work work) {
        simulators.remove(work.simulator());
        lanes.remove(work.simulator());
        dropped.remove(work.simulator());
        finish(work, false);
    }

    private void answer(Work work) {
        if (dropped.contains(work.simulator())) { // nobody waits for it any more
            finish(work, true, "this simulator was let go of");
            return;
        }
        running.add(work);
        boolean isError = false;
        String[] texts;
        try {
            texts = run(work.simulator(), work.texts());
        } catch (Throwable error) { // also when memory or stack is exhausted: the owner must know
            isError = true;
            texts = new String[] {error.toString()};
        }
        running.remove(work);
        finish(work, isError, texts);
    }

    private void finish(Work work, boolean isError, String... texts) {
        if (!work.message().answer(work.index(), isError, texts)) {
            return;
        }
        byte[] reply = work.message().reply();
        synchronized (replies) {
            try {
                replies.write(reply);
            } catch (IOException ownerIsGone) {
                Runtime.getRuntime().halt(0);
            }
        }
    }

    private String[] run(int number, String[] texts) {
        switch (texts[0]) {
            case "tasks" -> {
                return tasks();
            }
            case "gold" -> {
                int variation = Integer.parseInt(texts[2]);
                return withRoom(true, () -> new Simulator().gold(texts[1], variation, texts[3]));
            }
            case "load" -> {
                boolean isNew = !simulators.containsKey(number);
                return withRoom(isNew, () -> ask(simulator(number), texts));
            }
            default -> {
                return ask(simulator(number), texts);
            }
        }
    }

    private Simulator simulator(int number) {
        return simulators.computeIfAbsent(number, key -> new Simulator());
    }

    /**
     * Load where the heap has room for it.
     *
     * <p>Every load makes all tasks there are, some twenty megabytes that are garbage at its end and
     * may have grown old by then. The heap would grow to its limit before they are looked for. What
     * lives on is little, so looking for them now and then costs a load about a millisecond.
     *
     * <p>Where there is no room for a load of every thread, they load in turn, each in a heap without
     * garbage. The serial collector does not give up when a heap is full: it goes on to collect, for
     * minutes. So a new world is refused while there is still room for those that exist.
     */
    private String[] withRoom(boolean isNew, Supplier<String[]> load) {
        if (loads.incrementAndGet() % LOADS_A_COLLECTION == 0) {
            System.gc();
        }
        boolean isTight = freeBytes() < Math.max(numThreads * LOAD_BYTES, spareBytes());
        Lock turn = isTight ? loading.writeLock() : loading.readLock();
        turn.lock();
        try {
            if (isTight) {
                System.gc();
                if (isNew && freeBytes() < spareBytes()) {
                    throw new OutOfMemoryError("no room for another world");
                }
            }
            return load.get();
        } finally {
            turn.unlock();
        }
    }

    /** What may still be allocated, counting garbage as taken. */
    private static long freeBytes() {
        Runtime runtime = Runtime.getRuntime();
        return runtime.maxMemory() - (runtime.totalMemory() - runtime.freeMemory());
    }

    /** What worlds must leave free, to load them anew and to step them without many collections. */
    private static long spareBytes() {
        long half = Runtime.getRuntime().maxMemory() / 2;
        return Math.max(LOAD_BYTES, Math.min(MOST_SPARE_BYTES, half));
    }

    private static String[] ask(Simulator simulator, String[] texts) {
        return switch (texts[0]) {
            case "load" -> simulator.load(texts[1], Integer.parseInt(texts[2]), texts[3]);
            case "step" -> simulator.step(texts[1]);
            case "say" -> simulator.say(texts[1]);
            case "valid" -> simulator.validActions();
            case "tree" -> simulator.objectTree();
            case "progress" -> simulator.goalProgress();
            case "look" -> simulator.look();
            case "inventory" -> simulator.inventory();
            case "state" -> simulator.stateKey();
            case "templates" -> simulator.templates();
            default -> throw new IllegalArgumentException("no such request: " + texts[0]);
        };
    }

    /** Name and number of variations of every task, in turn. */
    private static String[] tasks() {
        new Context().enter();
        PythonInterface world = new PythonInterface();
        return world.getTaskNames().stream()
                .flatMap(name -> Stream.of(name, "" + world.getTaskMaxVariations(name)))
                .toArray(String[]::new);
    }
}
