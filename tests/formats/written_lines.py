"""Tasks and formats by name, and their lines as text, for the tests of this directory."""

import re
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from abacist.formats.annotated import AnnotatedTokens
from abacist.formats.config import FormatConfig, ParallelFormatConfig
from abacist.formats.format import Format
from abacist.tasks.config import TaskConfig
from abacist.tasks.problems import Problems
from abacist.tasks.task import Task

ANNOTATIONS = ("place", "field", "target", "row", "step")


@dataclass(frozen=True)
class Pair:
    """A task and a format that can write it."""

    name: str
    task_config: TaskConfig
    format_config: FormatConfig

    @cached_property
    def task(self) -> Task:
        return self.task_config.build()

    @cached_property
    def format(self) -> Format:
        return self.format_config.build(self.task_config)

    @cached_property
    def problems(self) -> Problems:
        """Forty random problems of the task."""
        return self.draw(40)

    @cached_property
    def lines(self) -> AnnotatedTokens:
        """The lines of `problems`; tests must not change them."""
        return self.write(self.problems)

    @property
    def parallel(self) -> bool:
        return isinstance(self.format_config, ParallelFormatConfig)

    def draw(self, num_problems: int, seed: int = 0, alike: int = 1) -> Problems:
        """Random problems, `alike` of each shape."""
        generator = torch.Generator().manual_seed(seed)
        shapes = self.task.draw_shapes(num_problems // alike, generator)
        return self.task.draw(shapes.repeat_each(alike), generator)

    def draw_equal_digits(self) -> Problems:
        """Random problems whose operands consist of one digit: the largest one, 0 or 1.

        Numbers of zeros begin with a 1, since a divisor must not be 0.
        """
        problems = self.draw(6)
        problems = problems[torch.arange(18) % 6]
        column, lengths = torch.arange(problems.digits_BNW.shape[2]), problems.lengths_BN[..., None]
        largest = getattr(self.task, "base", 10) - 1
        digit = torch.tensor([largest, 0, 1], dtype=torch.uint8).repeat_interleave(6).view(-1, 1, 1)
        digits = digit * (column < lengths)
        is_leading = (column == lengths - 1) & (lengths > 0)
        digits[is_leading] = digits[is_leading].clamp(min=1)
        return replace(problems, digits_BNW=digits)

    def write(self, problems: Problems) -> AnnotatedTokens:
        return self.format.write(problems, self.task.answer(problems))

    def read(self, lines: AnnotatedTokens) -> list[str | None]:
        """Read the answers of written lines, or for an encoder those of their labels."""
        if lines.labels is None:
            return self.format.read(lines.ids)
        pad = self.format.vocabulary.id("<pad>")
        width = int(lines.target.sum(dim=1).max()) if len(lines.ids) else 0
        written = torch.full((len(lines.ids), width), pad)
        for row, (labels, target) in enumerate(zip(lines.labels, lines.target, strict=True)):
            written[row, : int(target.sum())] = labels[target]
        return self.format.read(written)

    def typed(self, *expressions: str) -> list[str]:
        """Return the lines of typed problems, as text."""
        return texts(self.format, self.write(self.task.parse(list(expressions))))

    def read_texts(self, *lines: str) -> list[str | None]:
        """Read the answers of lines of text, each on its own."""
        return [self.format.read(ids_of(self.format, line))[0] for line in lines]


def texts(format: Format, lines: AnnotatedTokens) -> list[str]:
    """Return the text of each line without its padding."""
    return [
        format.vocabulary.decode(ids[:length].tolist())
        for ids, length in zip(lines.ids, lines.lengths.tolist(), strict=True)
    ]


def ids_of(format: Format, text: str) -> Tensor:
    """Return the tokens of one line of text, (1, T)."""
    symbols = sorted(format.vocabulary.tokens, key=len, reverse=True)
    # `//` is a token of its own only where the format has one.
    tokens = re.findall("|".join(map(re.escape, symbols)), text)
    assert "".join(tokens) == text, f"{text!r} is not written in {format.vocabulary.tokens}"
    return torch.tensor([[format.vocabulary.id(token) for token in tokens]])
