"""The versions, machine and commit under which a result was made."""

import importlib.metadata
import os
import platform
import re
import subprocess
from pathlib import Path
from typing import Any

import torch

import abacist

_DRIVER = Path("/proc/driver/nvidia/version")
"""Where NVIDIA's kernel driver states its version."""


def circumstances() -> dict[str, Any]:
    """Return what a reader needs, beside the settings, to repeat a result.

    That is the versions of all libraries, the processor, the GPU if there is one, and the commit.
    """
    return {
        "abacist": abacist.__version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "machine": _processor(),
        "cores": os.cpu_count(),
        "gpu": _gpu(),
        "libraries": _libraries(),
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


def _gpu() -> dict[str, Any] | None:
    """Return name, memory in bytes, driver and CUDA version of the first CUDA GPU; None without one."""
    if not torch.cuda.is_available():
        return None
    properties = torch.cuda.get_device_properties(0)
    return {
        "name": properties.name,
        "memory_bytes": properties.total_memory,
        "driver": _driver(),
        "cuda": torch.version.cuda,
    }


def _driver() -> str | None:
    """Return the version of NVIDIA's kernel driver; None where it cannot be read."""
    try:
        text = _DRIVER.read_text()
    except OSError:
        return None
    match = re.search(r"Kernel Module\D*([\d.]+)", text)
    return match and match[1]


def _libraries() -> dict[str, str]:
    """Return the version of each library that abacist requires, by name; torch has its own entry."""
    required = importlib.metadata.requires("abacist") or []
    names = [re.split(r"[^\w-]", line)[0] for line in required if "extra ==" not in line]
    return {name: importlib.metadata.version(name) for name in names if name != "torch"}


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
