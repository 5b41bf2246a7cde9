"""What every format can do, and which there are."""

from typing import Protocol

import torch
from torch import Tensor

from abacist.formats.annotated import AnnotatedTokens
from abacist.formats.carry_trace import CarryTraceFormat
from abacist.formats.config import (
    CarryTraceFormatConfig,
    FormatConfig,
    InsertionSortFormatConfig,
    LabelsFormatConfig,
    Layout,
    LongDivisionFormatConfig,
    LongMultiplicationFormatConfig,
    NonRestoringDivisionFormatConfig,
    ParallelFormatConfig,
    PartialProductsFormatConfig,
    PlainFormatConfig,
    RunningSumsFormatConfig,
    WorkedFormatConfig,
    check_writes,
)
from abacist.formats.insertion_sort import InsertionSortFormat
from abacist.formats.labels import LabelsFormat
from abacist.formats.long_division import LongDivisionFormat
from abacist.formats.long_multiplication import LongMultiplicationFormat
from abacist.formats.non_restoring_division import NonRestoringDivisionFormat
from abacist.formats.parallel import ParallelFormat
from abacist.formats.partial_products import PartialProductsFormat
from abacist.formats.plain import PlainFormat
from abacist.formats.residues import ResiduesFormat
from abacist.formats.running_sums import RunningSumsFormat
from abacist.formats.worked import WorkedFormat
from abacist.tasks.config import TaskConfig
from abacist.tasks.problems import Answer, Problems
from abacist.vocabulary import Vocabulary


class Format(Protocol):
    """Turns problems into annotated tokens and reads answers back."""

    vocabulary: Vocabulary

    @property
    def end_id(self) -> int | None:
        """The token behind an answer; None where all answers have one length."""

    @property
    def layout(self) -> Layout:
        """Which lines can share one row of coordinates."""

    def write(
        self, problems: Problems, answer: Answer, generator: torch.Generator | None = None
    ) -> AnnotatedTokens:
        """Whole lines. What a format leaves to chance is drawn from the generator, or a fixed one."""

    def prompt(
        self, problems: Problems, generator: torch.Generator | None = None
    ) -> AnnotatedTokens:
        """The same lines up to where the answer begins."""

    def annotate(self, ids_BT: Tensor) -> AnnotatedTokens:
        """Place, field and target of every token, from the ids alone.

        Behind the prompt a token's annotation depends on the prompt and on the tokens up to it,
        never on later ones: annotating a prefix that holds the prompt gives the prefix of the
        annotation. The one function serves training, evaluation and generation.
        """

    def read(self, ids_BT: Tensor) -> list[str | None]:
        """The answers of whole lines as `Answer.texts` gives them; None where one is malformed."""

    def target_lengths(self, problems: Problems) -> Tensor:
        """int64 (B,): how many tokens have to be predicted in each line, at most."""

    def token_id(self, field: int) -> int | None:
        """The id of the one token a field holds, or None for a field that holds several."""


def build_format(config: FormatConfig, task: TaskConfig) -> Format:
    """The format that a configuration describes, for a task.

    Raises `ConfigurationError`, naming the formats that can, where it cannot write the task.
    """
    check_writes(config, task)
    if isinstance(config, PlainFormatConfig):
        return PlainFormat(config, task)
    if isinstance(config, CarryTraceFormatConfig):
        return CarryTraceFormat(config, task)
    if isinstance(config, RunningSumsFormatConfig):
        return RunningSumsFormat(config, task)
    if isinstance(config, LongDivisionFormatConfig):
        return LongDivisionFormat(config, task)
    if isinstance(config, NonRestoringDivisionFormatConfig):
        return NonRestoringDivisionFormat(config, task)
    if isinstance(config, PartialProductsFormatConfig):
        return PartialProductsFormat(config, task)
    if isinstance(config, LongMultiplicationFormatConfig):
        return LongMultiplicationFormat(config, task)
    if isinstance(config, WorkedFormatConfig):
        return WorkedFormat(config, task)
    if isinstance(config, LabelsFormatConfig):
        return LabelsFormat(config, task)
    if isinstance(config, InsertionSortFormatConfig):
        return InsertionSortFormat(config, task)
    if isinstance(config, ParallelFormatConfig):
        return ParallelFormat(config, task)
    return ResiduesFormat(config, task)
