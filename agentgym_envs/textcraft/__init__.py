"""TextCraft: items to fetch and to craft until the goal is made; see `TextCraftEnv`."""
