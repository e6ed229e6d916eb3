"""Looking at a run after or while it goes on."""
