"""`python -m abacist.cli` is `python -m abacist`."""

import sys

from abacist.cli import main

sys.exit(main())
