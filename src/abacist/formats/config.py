"""Settings of the formats. Imports no torch."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class ReversedFormatConfig:
    """`<start>` operands `=` answer `<end>`, every number least significant digit first, unpadded."""

    start_token: bool = True
    """Write a first token that stands in every column, so that windowed attention can see it."""
