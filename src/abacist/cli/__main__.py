"""`python -m abacist.cli`, which scripts of earlier versions call, is `python -m abacist`."""

import sys

from abacist.cli import main

sys.exit(main())
