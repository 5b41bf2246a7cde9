"""Every recipe on a pretended GPU, in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path


def test_recipes_on_a_pretended_gpu():
    # The autograd engine knows only the devices that exist when a process first takes a gradient.
    cases = Path(__file__).with_name("recipes_on_a_pretended_gpu.py")
    environment = {key: value for key, value in os.environ.items() if "XDIST" not in key}
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rf", "-p", "no:cacheprovider", str(cases)],
        capture_output=True,
        text=True,
        timeout=900,
        env=environment,
    )
    assert result.returncode == 0, result.stdout[-4_000:] + result.stderr[-1_000:]
