"""Playing episodes: the collector, and demonstrations by oracles."""
