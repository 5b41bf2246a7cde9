"""The interface of all formats, and the format that a configuration describes."""

from typing import Protocol

import torch
from torch import Tensor

from abacist.formats.annotated import AnnotatedTokens
from abacist.formats.config import Layout
from abacist.tasks.problems import Answer, Problems
from abacist.vocabulary import Vocabulary


class Format(Protocol):
    """Turns problems into annotated tokens and reads answers back.

    A format may also have a method `continuation(prompt, max_new_tokens)`, which returns a
    `Continuation`: the coordinates of generated tokens, each in constant time. The lines of other
    formats are annotated again for every generated token.
    """

    vocabulary: Vocabulary

    @property
    def end_id(self) -> int | None:
        """The id of the token after an answer; None if all answers have one length."""

    @property
    def layout(self) -> Layout:
        """Which lines can share one row of coordinates; see `Layout`."""

    @property
    def enumeration(self) -> str | None:
        """Name of the enumeration that can prove a model of this format right; None if there is none.

        One of "column-addition", "long-multiplication", "non-restoring-division", "insertion-sort",
        "signed-addition" and, for sums, products and divisions in one model, "calculator". A format
        that names one has a method `roles`, which the enumeration reads.
        """

    def write(
        self, problems: Problems, answer: Answer, generator: torch.Generator | None = None
    ) -> AnnotatedTokens:
        """Return whole lines.

        Random choices of a format, such as spaces, are drawn from `generator`; without one, from a
        generator with a fixed seed. Raises `ProblemError` if the format has no room for a number.
        """

    def prompt(
        self, problems: Problems, generator: torch.Generator | None = None
    ) -> AnnotatedTokens:
        """Return the lines of `write` up to where the answer begins, padded on the right."""

    def annotate(self, ids_BT: Tensor) -> AnnotatedTokens:
        """Return coordinates, field and target of every token, from the ids alone.

        The annotation of a token after the prompt depends on the prompt and on the tokens before it.
        So annotating the first tokens of a line, prompt included, gives the first annotations of
        that line, and one function serves training, scoring and generation.
        """

    def read(self, ids_BT: Tensor) -> list[str | None]:
        """Return the answers of whole lines, written as in `Answer.texts`; None for a malformed line."""

    def target_lengths(self, problems: Problems) -> Tensor:
        """Return the largest possible number of tokens to predict in each line, int64 (B,)."""

    def token_id(self, field: int) -> int | None:
        """Return the id of the one token that a field can hold, or None if it can hold several."""
