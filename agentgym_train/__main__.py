"""``python -m agentgym_train``."""

import sys

from agentgym_train.cli import main

sys.exit(main())
