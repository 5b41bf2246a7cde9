"""The versions, machine and commit under which a result was made."""

import os
import platform
import subprocess
from pathlib import Path
from typing import Any

import torch

import abacist


def circumstances() -> dict[str, Any]:
    """Return what a reader needs, beside the settings, to repeat a result: versions, machine, commit."""
    return {
        "abacist": abacist.__version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "machine": _processor(),
        "cores": os.cpu_count(),
        "commit": _commit(),
    }


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _commit() -> str | None:
    """Return the commit of the source tree that abacist runs from; None if it is installed elsewhere."""
    root = Path(__file__).resolve().parents[3]
    if not (root / ".git").exists():
        return None
    try:
        result = subprocess.run(
            ["git", "-C", str(root), "rev-parse", "HEAD"], capture_output=True, text=True, timeout=5
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return result.stdout.strip() or None
