"""`python -m emulator` is the command `rankwire`."""

import sys

from emulator.cli import main

sys.exit(main())
