"""What formats share whose lines are a prompt, what has to be written behind it, and an end token."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor

from abacist.formats.annotated import AnnotatedTokens
from abacist.formats.lines import Piece, join, without_targets
from abacist.tasks.problems import Answer, Problems


class JoinedFormat(ABC):
    """Writes lines from the pieces that a notation is made of."""

    end_id: int
    enumeration: str | None = None

    def write(
        self, problems: Problems, answer: Answer, generator: torch.Generator | None = None
    ) -> AnnotatedTokens:
        """Whole lines, padded on the right with end tokens."""
        pieces = [*self._prompt_pieces(problems), self._target_piece(problems, answer)]
        return self.annotate(join(pieces, self.end_id, end=True))

    def prompt(
        self, problems: Problems, generator: torch.Generator | None = None
    ) -> AnnotatedTokens:
        """Lines up to and including `=`; whatever follows in the shorter ones is padding."""
        return without_targets(self.annotate(join(self._prompt_pieces(problems), self.end_id)))

    @abstractmethod
    def annotate(self, ids_BT: Tensor) -> AnnotatedTokens:
        """Place, row, field and target of every token, from the ids alone."""

    @abstractmethod
    def _prompt_pieces(self, problems: Problems) -> list[Piece]:
        """What stands before the answer, `=` included."""

    @abstractmethod
    def _target_piece(self, problems: Problems, answer: Answer) -> Piece:
        """What the model has to write, but for the end token."""
