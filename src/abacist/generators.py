"""Random generators: one for each purpose, all derived from one seed.

    >>> generator(0, "train", 12)      # block 12 of the training stream of seed 0

A generator is identified by its name instead of its order, so drawing more numbers for one purpose
never changes the numbers of another, and each can be created without replaying earlier ones.
"""

import hashlib

import torch


def generator(seed: int, *purpose: str | int) -> torch.Generator:
    """Return a new CPU generator whose state depends on the arguments alone."""
    # torch's Mersenne Twister uses only 32 bits of its seed, so the digest has exactly these.
    name = "/".join(map(str, (seed, *purpose)))
    digest = hashlib.blake2b(name.encode(), digest_size=4).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest, "little"))
