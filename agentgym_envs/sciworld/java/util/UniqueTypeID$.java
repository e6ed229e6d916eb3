package util;

import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Collectors;

/**
 * Stands in for the simulator's table of object types, which it reads from the working directory
 * and writes back to it. Types are numbered as they come; the numbers decide nothing in a world.
 */
public final class UniqueTypeID$ {
    public static final UniqueTypeID$ MODULE$ = new UniqueTypeID$();

    private final Map<String, Long> ids = new ConcurrentHashMap<>();

    private UniqueTypeID$() {}

    public long getID(String type) {
        Long known = ids.get(type);
        return known != null ? known : add(type);
    }

    public synchronized long add(String type) {
        return ids.computeIfAbsent(type, key -> (long) ids.size());
    }

    public String getTypeStr(long id) {
        return ids.entrySet().stream()
                .filter(entry -> entry.getValue() == id)
                .map(Map.Entry::getKey)
                .findFirst()
                .orElse("");
    }

    public String toJSON() {
        return new TreeMap<>(ids).entrySet().stream()
                .map(entry -> "\"" + entry.getKey() + "\":" + entry.getValue())
                .collect(Collectors.joining(", ", "{", "}"));
    }
}
