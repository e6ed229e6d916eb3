"""What the command line does: one module a command.

Each has ``configure(parser)``, which adds its arguments, and ``run(options)``, which returns the
figures that are printed; figures with ``"passed": False`` make exit code 1. A command whose
``options`` hold ``settings`` gets there whatever its own arguments leave over.
"""
