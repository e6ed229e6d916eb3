package scala.util;

import agentgym.sciworld.Context;

/** Stands in for the library's shared generator: each simulator draws from its own. */
public final class Random$ extends Random {
    private static final long serialVersionUID = 1;

    public static final Random$ MODULE$ = new Random$();

    private Random$() {}

    @Override
    public java.util.Random self() {
        return Context.current().draws;
    }

    private Object readResolve() {
        return MODULE$;
    }
}
