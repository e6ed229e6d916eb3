"""``python -m agentgym_train``."""

import signal
import sys

from agentgym_train.cli import main

signal.signal(signal.SIGTERM, signal.default_int_handler)  # clean up as after Ctrl-C
sys.exit(main())
