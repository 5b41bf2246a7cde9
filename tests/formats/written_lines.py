"""Tasks and formats by name, and their lines as text, for the tests of this directory."""

import re
from dataclasses import dataclass
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
        """Some of all problems that the task draws."""
        return self.draw(40)

    @cached_property
    def lines(self) -> AnnotatedTokens:
        """Theirs, which tests may look at and not change."""
        return self.write(self.problems)

    @property
    def parallel(self) -> bool:
        return isinstance(self.format_config, ParallelFormatConfig)

    def draw(self, num_problems: int, seed: int = 0, alike: int = 1) -> Problems:
        """Random problems, `alike` of each shape."""
        generator = torch.Generator().manual_seed(seed)
        shapes = self.task.draw_shapes(num_problems // alike, generator)
        return self.task.draw(shapes.repeat_each(alike), generator)

    def write(self, problems: Problems) -> AnnotatedTokens:
        return self.format.write(problems, self.task.answer(problems))

    def read(self, lines: AnnotatedTokens) -> list[str | None]:
        """The answers of written lines: of an encoder's labels, or of what stands in the line."""
        if lines.labels is None:
            return self.format.read(lines.ids)
        pad = self.format.vocabulary.id("<pad>")
        width = int(lines.target.sum(dim=1).max()) if len(lines.ids) else 0
        written = torch.full((len(lines.ids), width), pad)
        for row, (labels, target) in enumerate(zip(lines.labels, lines.target, strict=True)):
            written[row, : int(target.sum())] = labels[target]
        return self.format.read(written)

    def typed(self, *expressions: str) -> list[str]:
        """The lines of typed problems, as text."""
        return texts(self.format, self.write(self.task.parse(list(expressions))))

    def read_texts(self, *lines: str) -> list[str | None]:
        """The answers of lines given as text, each read on its own."""
        return [self.format.read(ids_of(self.format, line))[0] for line in lines]


def texts(format: Format, lines: AnnotatedTokens) -> list[str]:
    """Every line without its padding."""
    return [
        format.vocabulary.text(ids[:length].tolist())
        for ids, length in zip(lines.ids, lines.lengths.tolist(), strict=True)
    ]


def ids_of(format: Format, text: str) -> Tensor:
    """The tokens of one line, (1, T)."""
    symbols = sorted(format.vocabulary.tokens, key=len, reverse=True)
    # `//` is a token of its own only where the format has one.
    tokens = re.findall("|".join(map(re.escape, symbols)), text)
    assert "".join(tokens) == text, f"{text!r} is not written in {format.vocabulary.tokens}"
    return torch.tensor([[format.vocabulary.id(token) for token in tokens]])
