"""What every format can do, and which there are."""

from typing import Protocol

import torch
from torch import Tensor

from abacist.formats.annotated import AnnotatedTokens
from abacist.formats.config import Layout
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

    @property
    def enumeration(self) -> str | None:
        """Name of the enumeration that can prove a model of this format right; None where none exists.

        "column-addition", "long-multiplication", "non-restoring-division" or "insertion-sort". A
        format that names one also has `roles`, which that enumeration reads.
        """

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
