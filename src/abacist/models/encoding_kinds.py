"""The position encodings by name: what each adds to the model, and what it depends on.

    >>> ENCODINGS["alibi"].adds, ENCODINGS["alibi"].depends_on
    ('bias', 'differences')

An extension adds to the table with `encodings.position_encoding`. Imports no torch: the class of an
encoding is imported only when a model is built.
"""

import importlib
from dataclasses import dataclass
from typing import Any, Literal

from abacist.extensions import Registry


@dataclass(frozen=True)
class EncodingKind:
    """One position encoding, without its numbers."""

    adds: Literal["vector", "rotation", "bias"]
    """A vector for each token, a rotation of queries and keys, or a bias on attention scores."""
    depends_on: Literal["coordinates", "differences"]
    """Whether attention depends on the coordinates of two tokens, or only on their difference."""
    implementation: str | type[Any]
    """The class, or its name in `abacist.models.encodings`; for a rotation, the name of a function."""
    settings: tuple[str, ...] = ()
    """Settings of a position scheme that belong to some encodings only, and to this one."""
    is_bounded: bool = False
    """Whether biases are known to be bounded from above without a window."""

    def find_class(self) -> type[Any]:
        """Return the class of the encoding."""
        if not isinstance(self.implementation, str):
            return self.implementation
        cls: type[Any] = getattr(
            importlib.import_module("abacist.models.encodings"), self.implementation
        )
        return cls


ENCODINGS: Registry[EncodingKind] = Registry(
    "position encoding",
    {
        "learned": EncodingKind("vector", "coordinates", "LearnedEncoding", ("init_std",)),
        "sinusoidal": EncodingKind("vector", "coordinates", "SinusoidalEncoding"),
        "rotary": EncodingKind("rotation", "differences", "rotation"),
        "alibi": EncodingKind("bias", "differences", "AlibiBias", ("slope",), is_bounded=True),
        "fire": EncodingKind("bias", "coordinates", "FireBias"),
        "relative": EncodingKind(
            "bias", "differences", "RelativeBias", ("init_std", "num_buckets"), is_bounded=True
        ),
    },
)
"""Every position encoding by name."""
