"""Modular addition with one token per residue, as in the papers on grokking.

>>> format.text(problem)  # 95+30 modulo 113
'95+30=12'

The line has five tokens: `95`, `+`, `30`, `=` and `12` (Power et al. 2022, arXiv 2201.02177 §3).
"""

import torch
from torch import Tensor

from abacist.formats.annotated import ANCHOR, NO_PLACE, AnnotatedTokens, Field
from abacist.formats.config import Layout, ResiduesFormatConfig
from abacist.formats.continuation import Continuation, PlannedContinuation
from abacist.formats.pieces import without_targets
from abacist.tasks.config import ModularAdditionConfig, TaskConfig
from abacist.tasks.modular_addition import residues_of
from abacist.tasks.problems import Answer, Numbers, Problems
from abacist.vocabulary import Vocabulary

_PLACE = (NO_PLACE, NO_PLACE, NO_PLACE, ANCHOR, NO_PLACE)
_FIELD = (Field.OPERAND, Field.OPERATOR, Field.OPERAND + 1, Field.EQUALS, Field.ANSWER)


class ResiduesFormat:
    """Writes, annotates and reads sums of residues."""

    end_id = None
    layout: Layout = "constant"
    enumeration = None

    def __init__(self, config: ResiduesFormatConfig, task: TaskConfig) -> None:
        assert isinstance(task, ModularAdditionConfig)
        self.config = config
        self.modulus = task.modulus
        self.vocabulary = Vocabulary((*map(str, range(task.modulus)), "+", "="))
        self.operator_id, self.equals_id = self.vocabulary.id("+"), self.vocabulary.id("=")

    def write(
        self, problems: Problems, answer: Answer, generator: torch.Generator | None = None
    ) -> AnnotatedTokens:
        """Return whole lines of five tokens."""
        assert isinstance(answer, Numbers)
        powers = 10 ** torch.arange(answer.digits_BW.shape[1], device=answer.digits_BW.device)
        residue = (answer.digits_BW.long() * powers).sum(dim=1, keepdim=True)
        return self.annotate(torch.cat([self._prompt(problems), residue], dim=1))

    def prompt(
        self, problems: Problems, generator: torch.Generator | None = None
    ) -> AnnotatedTokens:
        """Return the lines up to and including `=`."""
        return without_targets(self.annotate(self._prompt(problems)))

    def annotate(self, ids_BT: Tensor) -> AnnotatedTokens:
        """Return place, field and target of every token, which depend on its position only."""
        ids = ids_BT.int()
        place, field, target = (
            torch.tensor(row[: ids.shape[1]], device=ids.device).expand(ids.shape)
            for row in (_PLACE, list(map(int, _FIELD)), (False,) * 4 + (True,))
        )
        return AnnotatedTokens(ids, place.int(), field.to(torch.uint8), target)

    def continuation(self, prompt: AnnotatedTokens, max_new_tokens: int) -> Continuation:
        """Return the coordinates of new tokens, which follow from the prompt alone."""
        return PlannedContinuation(self.annotate, prompt, max_new_tokens, {"place": 0})

    def read(self, ids_BT: Tensor) -> list[str | None]:
        """Return the answers of whole lines; None for a line that does not end in a residue."""
        if ids_BT.shape[1] != len(_PLACE):
            return [None] * len(ids_BT)
        return [str(token) if token < self.modulus else None for token in ids_BT[:, -1].tolist()]

    def target_lengths(self, problems: Problems) -> Tensor:
        """Return the number of tokens after `=`, int64 (B,)."""
        return torch.ones(len(problems), dtype=torch.int64)

    def token_id(self, field: int) -> int | None:
        """Return the id of the one token that a field can hold, or None if it can hold several."""
        ids = {int(Field.OPERATOR): self.operator_id, int(Field.EQUALS): self.equals_id}
        return ids.get(field)

    def _prompt(self, problems: Problems) -> Tensor:
        residues = residues_of(problems)
        symbols = torch.tensor([[self.operator_id, self.equals_id]], device=residues.device)
        symbols = symbols.expand(len(problems), 2)
        return torch.stack([residues, symbols], dim=2).flatten(1)
