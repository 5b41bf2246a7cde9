"""Formats whose lines join pieces: a prompt, the tokens that the model must write, and an end token."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor

from abacist.formats.annotated import AnnotatedTokens
from abacist.formats.pieces import Piece, join, without_targets
from abacist.tasks.problems import Answer, Problems


class PiecewiseFormat(ABC):
    """Writes lines from the pieces of a notation."""

    end_id: int
    enumeration: str | None = None

    def write(
        self, problems: Problems, answer: Answer, generator: torch.Generator | None = None
    ) -> AnnotatedTokens:
        """Return whole lines, padded on the right with end tokens."""
        return self.annotate(self.line_ids(problems, answer))

    def prompt(
        self, problems: Problems, generator: torch.Generator | None = None
    ) -> AnnotatedTokens:
        """Return the lines up to and including `=`, padded on the right."""
        return without_targets(self.annotate(self.line_ids(problems)))

    def line_ids(self, problems: Problems, answer: Answer | None = None) -> Tensor:
        """Return the tokens of whole lines, uint8 (B, T), or without an answer those of prompts."""
        pieces = self._prompt_pieces(problems)
        if answer is None:
            return join(pieces, self.end_id)
        return join([*pieces, self._target_piece(problems, answer)], self.end_id, end=True)

    @abstractmethod
    def annotate(self, ids_BT: Tensor) -> AnnotatedTokens:
        """Return coordinates, field and target of every token, from the ids alone."""

    @abstractmethod
    def _prompt_pieces(self, problems: Problems) -> list[Piece]:
        """Return the pieces before the answer, `=` included."""

    @abstractmethod
    def _target_piece(self, problems: Problems, answer: Answer) -> Piece:
        """Return the tokens that the model must write, without the end token."""
