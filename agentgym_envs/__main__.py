"""``python -m agentgym_envs``, see `agentgym_envs.cli`."""

import sys

from agentgym_envs.cli import main

sys.exit(main())
