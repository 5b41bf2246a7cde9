"""`python -m abacist.cli` is the command `abacist`."""

import sys

from abacist.cli import main

sys.exit(main())
