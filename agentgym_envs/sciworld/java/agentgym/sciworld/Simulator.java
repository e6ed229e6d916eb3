package agentgym.sciworld;

import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.List;
import java.util.Set;
import java.util.StringJoiner;
import java.util.function.Consumer;
import java.util.function.Supplier;
import language.model.ActionExpr;
import language.model.ActionExprOR;
import language.model.ActionRequestDef;
import main.scala.scienceworld.runtime.SimplifierProcessor$;
import scala.Option;
import scala.Tuple2;
import scala.collection.Iterable;
import scala.collection.Iterator;
import scala.collection.immutable.Map;
import scienceworld.actions.ActionInventory;
import scienceworld.actions.ActionLookAround;
import scienceworld.actions.PossibleAction;
import scienceworld.goldagent.PathFinder$;
import scienceworld.input.ActionDefinitions;
import scienceworld.input.InputMatch;
import scienceworld.input.InputParser;
import scienceworld.runtime.AgentInterface;
import scienceworld.runtime.pythonapi.PythonInterface;
import scienceworld.struct.EnvObject;
import scienceworld.tasks.goals.GoalSequence;

/** One world with a context of its own. Not for use by two threads at a time. */
final class Simulator {
    private static final String NO_MATCH = "No known action matches that input.";

    private final Context context = new Context();
    private final PythonInterface world;

    Simulator() {
        context.enter();
        world = new PythonInterface();
    }

    /** Build a world; what it looks like, and the task in words. */
    String[] load(String task, int variation, String simplifications) {
        context.enter();
        build(task, variation, simplifications, false);
        String description = agent().getTaskDescription();
        return new String[] {agent().step("look around")._1(), description};
    }

    /**
     * The gold actions of a task, from the simulator's own agent.
     *
     * <p>That agent keeps the ways through the first house it has seen from each room, for all worlds
     * of the virtual machine. Here it starts without any, one at a time.
     */
    String[] gold(String task, int variation, String simplifications) {
        synchronized (PathFinder$.MODULE$) {
            PathFinder$.MODULE$.precomputedExhaustivePaths().clear();
            context.enter();
            build(task, variation, simplifications, true);
            return world.getGoldActionSequence().toArray(new String[0]);
        }
    }

    /**
     * Do what a line of text says; a line that is not understood changes nothing.
     *
     * <p>Where the simulator has asked which of several actions was meant, a number answers it, and
     * any other line drops the question and is carried out.
     *
     * @return observation, score, whether the goal is reached, moves so far, whether the line was
     *     understood, among how many actions is to be chosen now, and the error that the world ran
     *     into, or ""
     */
    String[] step(String line) {
        context.enter();
        InputParser parser = agent().inputParser();
        Option<InputMatch[]> question = parser.lastAmbiguousMatches();
        long draws = context.draws.state();
        if (!isNumber(line)) {
            parser.lastAmbiguousMatches_$eq(Option.empty());
        }
        String observation = agent().step(line)._1();
        if (observation.equals(NO_MATCH)) {
            parser.lastAmbiguousMatches_$eq(question);
            context.draws.restore(draws);
        }
        return outcome(observation);
    }

    /** The same as the official interface does it: any line answers a question, "help" helps. */
    String[] say(String line) {
        context.enter();
        return outcome(world.step(line));
    }

    private String[] outcome(String observation) {
        AgentInterface agent = agent();
        GoalSequence goals = agent.task().goalSequence();
        return new String[] {
            observation,
            Double.toString(goals.score()),
            Boolean.toString(goals.isCompleted()),
            Integer.toString(agent.getCurIterations()),
            Boolean.toString(!observation.equals(NO_MATCH)),
            Integer.toString(agent.getValidActionsAmbiguousState().length),
            forgottenError(agent),
        };
    }

    /** The error that an action ran into, or ""; it must not break all actions that follow. */
    private static String forgottenError(AgentInterface agent) {
        if (!agent.isInErrorState()) {
            return "";
        }
        String error = agent.getErrorStateMessage();
        if (error.contains("OutOfMemoryError")) { // which is not of this world
            throw new OutOfMemoryError(error);
        }
        agent.errorState_$eq(false);
        agent.errorMessage_$eq("");
        return error;
    }

    private static boolean isNumber(String line) {
        return line.chars().allMatch(Character::isDigit);
    }

    /**
     * All commands that the world would carry out now, sorted and each once.
     *
     * <p>The simulator's own list names things that its parser does not reach, such as those in a
     * closed cupboard, up to a third of a list; here it is made from what can be reached.
     */
    String[] validActions() {
        return query(
                () -> {
                    AgentInterface agent = agent();
                    InputParser parser = agent.inputParser();
                    if (parser.isInAmbiguousState()) {
                        return agent.getValidActionsAmbiguousState();
                    }
                    EnvObject room = room();
                    EnvObject[] near = reachable(room);
                    boolean needsAll = canTeleport();
                    EnvObject[] all =
                            needsAll
                                    ? array(InputParser.collectObjects(agent.universe(), true))
                                    : new EnvObject[0];
                    PossibleAction[] actions =
                            ActionDefinitions.mkPossibleActions(
                                    agent.agent(),
                                    near,
                                    all,
                                    parser.getAllUniqueReferentsLUTObjList(near, room, true, true),
                                    parser.getAllUniqueReferentsLUTObjList(all, room, true, true));
                    return Arrays.stream(actions)
                            .map(PossibleAction::mkHumanReadableStr)
                            .distinct()
                            .sorted()
                            .toArray(String[]::new);
                });
    }

    private static boolean canTeleport() {
        SimplifierProcessor$ simplifications = SimplifierProcessor$.MODULE$;
        return simplifications.isSimplificationEnabled(
                simplifications.SIMPLIFICATION_TELEPORT_ACTION());
    }

    private EnvObject room() {
        return agent().getAgentVisibleObjects(false)._2();
    }

    /** The visible objects that the parser finds, in the room and on the agent. */
    private EnvObject[] reachable(EnvObject room) {
        Set<EnvObject> found = new HashSet<>();
        forEach(InputParser.collectAccessibleObjects(room, true), found::add);
        forEach(InputParser.collectAccessibleObjects(agent().agent(), true), found::add);
        EnvObject[] visible = array(InputParser.collectObjects(room, false));
        return Arrays.stream(visible).filter(found::contains).toArray(EnvObject[]::new);
    }

    private static EnvObject[] array(Iterable<EnvObject> objects) {
        return byId(objects).toArray(new EnvObject[0]);
    }

    String[] objectTree() {
        return query(() -> new String[] {agent().universe().toJSON()});
    }

    String[] goalProgress() {
        return query(() -> new String[] {agent().getGoalProgressStr()});
    }

    String[] look() {
        return query(() -> new String[] {new ActionLookAround(noRequest(), myself()).runAction()._1()});
    }

    String[] inventory() {
        return query(() -> new String[] {new ActionInventory(noRequest(), myself()).runAction()._1()});
    }

    /** A hash of objects, focus, progress and the open question, if any. */
    String[] stateKey() {
        return query(
                () -> {
                    MessageDigest digest = sha256();
                    AgentInterface agent = agent();
                    for (EnvObject object : byId(everything())) {
                        add(digest, described(object));
                    }
                    for (EnvObject object : byId(agent.objMonitor().getMonitoredObjects())) {
                        add(digest, "focus " + object.uuid());
                    }
                    GoalSequence goals = agent.task().goalSequence();
                    add(digest, goals.getProgressString() + goals.isFailed());
                    add(digest, String.join("\n", agent.getValidActionsAmbiguousState()));
                    return new String[] {HexFormat.of().formatHex(digest.digest())};
                });
    }

    private Iterable<EnvObject> everything() {
        return agent().universe().getContainedObjectsAndPortalsRecursive(true, true);
    }

    private static List<EnvObject> byId(Iterable<EnvObject> objects) {
        List<EnvObject> sorted = new ArrayList<>();
        forEach(objects, sorted::add);
        sorted.sort(Comparator.comparingLong(EnvObject::uuid));
        return sorted;
    }

    /** An object's own properties and where it is. */
    private static String described(EnvObject object) {
        StringJoiner text = new StringJoiner("\n");
        text.add(object.uuid() + object.name() + object.objType() + object.isDeleted());
        text.add(object.getContainer().isEmpty() ? "" : "in " + object.getContainer().get().uuid());
        ifThere(object.propMaterial(), it -> text.add(it.toJSON()));
        ifThere(object.propEdibility(), it -> text.add(it.toJSON()));
        ifThere(object.propContainer(), it -> text.add(it.toJSON()));
        ifThere(object.propDevice(), it -> text.add(it.toJSON()));
        ifThere(object.propHeatSource(), it -> text.add(it.toJSON()));
        ifThere(object.propCoolingSource(), it -> text.add(it.toJSON()));
        ifThere(object.propPortal(), it -> text.add(it.toJSON()));
        ifThere(object.propElectricalConnection(), it -> text.add(it.toJSON()));
        ifThere(object.propLife(), it -> text.add(it.toJSON()));
        return text.toString();
    }

    private static <T> void ifThere(Option<T> value, Consumer<T> action) {
        if (value.isDefined()) {
            action.accept(value.get());
        }
    }

    /** How every action may be written: {@code (activate|turn on) OBJ}, a line each. */
    String[] templates() {
        List<String> lines = new ArrayList<>();
        for (ActionRequestDef action : agent().actionHandler().getActions()) {
            forEach(
                    action.triggers(),
                    trigger -> {
                        StringJoiner line = new StringJoiner(" ");
                        forEach(trigger.pattern(), part -> line.add(written(part)));
                        lines.add(line.toString());
                    });
        }
        return lines.toArray(new String[0]);
    }

    private static String written(ActionExpr part) {
        return part instanceof ActionExprOR choice ? choice.orElements().mkString("(", "|", ")") : "OBJ";
    }

    private AgentInterface agent() {
        return world.agentInterface().get();
    }

    private void build(String task, int variation, String simplifications, boolean withGold) {
        String error = world.load(task, variation, simplifications, withGold);
        world.taskMaker_$eq(null); // all tasks there are, with their things; made anew by a load
        if (!error.isEmpty()) {
            throw new IllegalArgumentException(error);
        }
    }

    /** What `ask` returns, leaving random state and ids as they were. */
    private String[] query(Supplier<String[]> ask) {
        context.enter();
        long draws = context.draws.state();
        long lastId = context.lastId;
        try {
            return ask.get();
        } finally {
            context.draws.restore(draws);
            context.lastId = lastId;
        }
    }

    private static ActionRequestDef noRequest() {
        return ActionRequestDef.mkBlank();
    }

    @SuppressWarnings("unchecked")
    private Map<String, EnvObject> myself() {
        Tuple2<String, EnvObject> entry = new Tuple2<>("agent", agent().agent());
        Map<String, EnvObject> none = (Map<String, EnvObject>) (Map<?, ?>) scala.Predef$.MODULE$.Map().empty();
        return none.$plus(entry);
    }

    /** Go through a collection of Scala. */
    private static <T> void forEach(Iterable<T> elements, Consumer<T> action) {
        Iterator<T> iterator = elements.iterator();
        while (iterator.hasNext()) {
            action.accept(iterator.next());
        }
    }

    private static void add(MessageDigest digest, String text) {
        digest.update(text.getBytes(StandardCharsets.UTF_8));
        digest.update((byte) 0);
    }

    private static MessageDigest sha256() {
        try {
            return MessageDigest.getInstance("SHA-256");
        } catch (NoSuchAlgorithmException impossible) {
            throw new IllegalStateException(impossible);
        }
    }
}
