"""Lines, coordinates and small models with random weights, for the tests of this directory."""

import re

import torch
from torch import Tensor

from abacist.formats.annotated import AnnotatedTokens
from abacist.formats.config import PlainFormatConfig
from abacist.formats.plain import PlainFormat
from abacist.models.config import POSITIONS, ModelConfig, PositionScheme
from abacist.models.coordinates import Coordinates
from abacist.models.transformer import Transformer
from abacist.tasks.arithmetic import Arithmetic
from abacist.tasks.config import ArithmeticConfig
from abacist.tasks.problems import Problems, Shapes

TASK = Arithmetic(ArithmeticConfig())
FORMAT = PlainFormat(PlainFormatConfig(), ArithmeticConfig())
NAMED = {
    name: schemes
    for name, schemes in POSITIONS.items()
    if all(scheme.coordinate in ("index", "place") for scheme in schemes)
}
"""Schemes over coordinates that sums have; rows and steps are for longer calculations."""
SCHEME_NAMES = list(NAMED)


def place_window(low: int, high: int) -> tuple[PositionScheme, ...]:
    return (PositionScheme(encoding="relative", coordinate="place", window=(low, high)),)


def random_model(
    positions: str | tuple[PositionScheme, ...] = "place-relative",
    seed: int = 0,
    dtype: torch.dtype = torch.float64,
    vocabulary_size: int = len(FORMAT.vocabulary),
    **settings: object,
) -> Transformer:
    """A model none of whose parameters is 0 or 1, as biases and norms are at the start."""
    torch.manual_seed(seed)
    schemes = POSITIONS[positions] if isinstance(positions, str) else positions
    sizes = {"width": 12, "num_heads": 2, "mlp_width": 20, "positions": schemes, **settings}
    model = Transformer(ModelConfig(**sizes), vocabulary_size).to(dtype)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.3 * torch.randn_like(parameter)
    return model.eval()


def random_problems(lengths: list[tuple[int, int]], seed: int = 0) -> Problems:
    return TASK.draw(Shapes.of(torch.tensor(lengths), "+"), torch.Generator().manual_seed(seed))


def write(problems: Problems) -> AnnotatedTokens:
    return FORMAT.write(problems, TASK.answer(problems))


def ids_of(text: str) -> Tensor:
    """The ids of one line, (1, T), from its text."""
    tokens = re.findall(r"<\w+>|.", text)
    return torch.tensor([[FORMAT.vocabulary.id(token) for token in tokens]])


def coordinates_of_places(places: list[list[int]]) -> Coordinates:
    """Coordinates of unpadded lines whose tokens have these places."""
    place = torch.tensor(places)
    return Coordinates(torch.arange(place.shape[1]).expand_as(place), place)
