package main.scala.scienceworld.runtime;

import agentgym.sciworld.Context;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import scala.Tuple2;
import scienceworld.objects.agent.Agent;
import scienceworld.struct.EnvObject;

/**
 * Stands in for the simulator's object of this name, which keeps one list of chosen simplifications
 * for the whole virtual machine, so that the world that was loaded last would decide for all. Here
 * each simulator has its own list, in its {@link Context}.
 *
 * <p>It has the methods that the simulator's other classes call, by the names they call; what is in
 * them is ours. What each simplification does stays in the simulator's own classes.
 */
public final class SimplifierProcessor$ {
    public static final SimplifierProcessor$ MODULE$ = new SimplifierProcessor$();

    private SimplifierProcessor$() {}

    public String SIMPLIFICATION_TELEPORT_ACTION() {
        return "teleportAction";
    }

    public String SIMPLIFICATION_NO_ELECTRICAL_ACTION() {
        return "noElectricalAction";
    }

    public String SIMPLIFICATION_OPEN_DOORS() {
        return "openDoors";
    }

    public String SIMPLIFICATION_OPEN_CONTAINERS() {
        return "openContainers";
    }

    public String SIMPLIFICATION_SELF_WATERING_FLOWER_POTS() {
        return "selfWateringFlowerPots";
    }

    /** Choose those of a list with commas; whether all of them exist, and if not, an error. */
    public Tuple2<Object, String> parseSimplificationStr(String labels) {
        List<Simplification> wanted = new ArrayList<>();
        for (String label : labels.isBlank() ? new String[0] : labels.split(",")) {
            List<Simplification> named =
                    all().stream().filter(each -> isCalled(each, label.trim())).toList();
            if (named.isEmpty()) {
                return new Tuple2<>(false, "there is no simplification " + label);
            }
            wanted.addAll(named);
        }
        chosen().clear();
        chosen().addAll(wanted);
        return new Tuple2<>(true, "");
    }

    public boolean isSimplificationEnabled(String label) {
        return chosen().stream().anyMatch(each -> isCalled(each, label));
    }

    public String getSimplificationsUsed() {
        return labels(chosen());
    }

    public String getPossibleSimplifications() {
        return labels(all());
    }

    public boolean runSimplificationsInitialization(EnvObject universe, Agent agent) {
        return run(Simplification::runAtInitialization, universe, agent);
    }

    public boolean runSimplificationsEachTick(EnvObject universe, Agent agent) {
        return run(Simplification::runEachTick, universe, agent);
    }

    private static boolean run(Predicate<Simplification> when, EnvObject universe, Agent agent) {
        boolean success = true;
        for (Simplification each : chosen()) {
            if (when.test(each)) {
                success &= each.runSimplification(universe, agent);
            }
        }
        return success;
    }

    private static List<Simplification> chosen() {
        return Context.current().simplifications;
    }

    private static List<Simplification> all() {
        return List.of(
                new SimplificationOpenDoors(),
                new SimplificationOpenContainers(),
                new SimplificationTeleportAction(),
                new SimplificationNoElectricalActions(),
                new SimplificationSelfWateringFlowerPots());
    }

    private static boolean isCalled(Simplification simplification, String label) {
        return simplification.label().equalsIgnoreCase(label);
    }

    private static String labels(List<Simplification> simplifications) {
        return simplifications.stream()
                .map(Simplification::label)
                .sorted()
                .collect(Collectors.joining(", "));
    }
}
