"""``python -m agentgym_envs``, see `agentgym_envs.cli`."""

import signal
import sys

from agentgym_envs.cli import main

signal.signal(signal.SIGTERM, signal.default_int_handler)  # clean up as after Ctrl-C
sys.exit(main())
