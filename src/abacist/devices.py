"""Where a model runs."""

import torch

from abacist.errors import ConfigurationError

DEVICES = ("auto", "cpu", "cuda", "mps")
"""What may be asked for; `auto` is a GPU of CUDA's where there is one, and the CPU elsewhere."""


def find_device(name: str) -> torch.device:
    """The device of that name; `ConfigurationError` where this machine has none such."""
    if name not in DEVICES:
        raise ConfigurationError(f"device must be one of {', '.join(DEVICES)}, got {name!r}.")
    there = {
        "cpu": True,
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
    }
    if name == "auto":
        return torch.device("cuda" if there["cuda"] else "cpu")
    if not there[name]:
        raise ConfigurationError(
            f"device must be one that is here, got {name!r}, which torch does not find. "
            "Try --device cpu."
        )
    return torch.device(name)
