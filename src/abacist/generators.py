"""One generator for every purpose, from one seed.

    >>> generator(0, "train", 12)      # block 12 of the training stream of seed 0

Streams are named rather than split off one another, so drawing more for one purpose never
changes what another sees, and any of them can be entered without replaying those before it.
"""

import hashlib

import torch


def generator(seed: int, *purpose: str | int) -> torch.Generator:
    """A fresh CPU generator, a function of the arguments alone."""
    # torch's Mersenne Twister uses 32 bits of its seed, so they must all count.
    name = "/".join(map(str, (seed, *purpose)))
    digest = hashlib.blake2b(name.encode(), digest_size=4).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest, "little"))
