"""Loss, token accuracy and exact match from one teacher-forced pass, in all and by operation.

>>> measure(trained_model, problems)["all"].token_accuracy
Proportion(successes=6871, n=7204)
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from abacist.models.teacher_forcing import IGNORED
from abacist.scoring.exact_match import scored_batches
from abacist.scoring.records import Measures
from abacist.scoring.trained_model import TrainedModel
from abacist.tasks.problems import OPERATIONS, Problems

ALL = "all"
"""Key of the measures of all problems together."""


@dataclass(frozen=True)
class ProblemMeasures:
    """What one pass says about each of B problems, in float64."""

    loss_B: Tensor
    """Sum of the cross entropies of the targets, in nats."""
    num_targets_B: Tensor
    """Number of targets."""
    num_right_B: Tensor
    """Number of targets that are predicted correctly."""
    line_B: Tensor
    """1 if every target is right, else 0."""
    answer_B: Tensor
    """1 if every target outside of scratch work is right, given right scratch work, else 0."""

    @property
    def perplexity_B(self) -> Tensor:
        """Perplexity of the right answer: e to the mean cross entropy of its tokens."""
        return (self.loss_B / self.num_targets_B).exp()

    def of(self, rows_B: Tensor) -> Measures:
        """Return the measures of some problems together; `rows_B` is bool."""

        def count(values_B: Tensor) -> int:
            return int(values_B[rows_B].sum())

        n, num_targets = int(rows_B.sum()), count(self.num_targets_B)
        return Measures.of_counts(
            loss=float(self.loss_B[rows_B].sum()) / max(1, num_targets),
            tokens=(count(self.num_right_B), num_targets),
            lines=(count(self.line_B), n),
            answers=(count(self.answer_B), n),
        )


def measure_each(trained_model: TrainedModel, problems: Problems) -> ProblemMeasures:
    """Measure every problem on its own."""
    columns = torch.zeros(5, len(problems), dtype=torch.float64)
    for batch in scored_batches(trained_model, problems):
        labels_BA, logits_BAV = batch.predictions.labels, batch.predictions.logits
        is_target = labels_BA != IGNORED
        loss_BA = torch.nn.functional.cross_entropy(
            logits_BAV.double().transpose(1, 2), labels_BA, ignore_index=IGNORED, reduction="none"
        )
        right_BA = batch.predictions.correct_tokens()
        columns[:, batch.indices] = torch.stack(
            [
                loss_BA.sum(dim=1),
                is_target.sum(dim=1).double(),
                (right_BA & is_target).sum(dim=1).double(),
                right_BA.all(dim=1).double(),
                batch.right_answers().double(),
            ]
        )
    return ProblemMeasures(*columns)


def measure(trained_model: TrainedModel, problems: Problems) -> dict[str, Measures]:
    """Return the measures of all problems, and those of each operation if there are several."""
    each = measure_each(trained_model, problems)
    measures = {ALL: each.of(torch.ones(len(problems), dtype=torch.bool))}
    codes = torch.unique(problems.operation_B).tolist()
    if len(codes) > 1:
        measures |= {OPERATIONS[code]: each.of(problems.operation_B == code) for code in codes}
    return measures
