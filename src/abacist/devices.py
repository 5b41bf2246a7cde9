"""Devices on which models run."""

import torch

from abacist.errors import ConfigurationError

DEVICES = ("auto", "cpu", "cuda", "mps")
"""Names of devices; `auto` stands for a CUDA GPU if there is one, and otherwise for the CPU."""


def check_device_name(name: str) -> None:
    """Raise `ConfigurationError` unless a name is one of `DEVICES`; this machine may lack the device."""
    if name not in DEVICES:
        raise ConfigurationError(f"device must be one of {', '.join(DEVICES)}, got {name!r}.")


def find_device(name: str) -> torch.device:
    """Return the device with a name from `DEVICES`.

    Raises:
        ConfigurationError: the name is unknown, or this machine does not have the device.
    """
    check_device_name(name)
    available = {
        "cpu": True,
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
    }
    if name == "auto":
        return torch.device("cuda" if available["cuda"] else "cpu")
    if not available[name]:
        raise ConfigurationError(
            f"device must be one of this machine's, got {name!r}, which torch does not find. "
            "Try --device cpu."
        )
    return torch.device(name)
