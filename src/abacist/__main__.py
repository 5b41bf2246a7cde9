"""`python -m abacist` is the command `abacist`."""

import sys

from abacist.cli import main

sys.exit(main())
