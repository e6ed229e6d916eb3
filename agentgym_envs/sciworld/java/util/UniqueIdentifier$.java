package util;

import agentgym.sciworld.Context;

/** Stands in for the simulator's counter of object ids: each simulator counts its own. */
public final class UniqueIdentifier$ {
    public static final UniqueIdentifier$ MODULE$ = new UniqueIdentifier$();

    private UniqueIdentifier$() {}

    public long count() {
        return Context.current().lastId;
    }

    public void count_$eq(long count) {
        Context.current().lastId = count;
    }

    public long getNextID() {
        return ++Context.current().lastId;
    }

    public void reset() {
        Context.current().lastId = 0;
    }
}
