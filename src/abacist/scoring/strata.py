"""The suite `strata`: one large test sample, looked at by operation, length, carries and place.

Random digits almost never carry far: P(chain of k columns or more) falls like 2^-k. So a second
sample of sums is drawn by its longest chain of carries, each length equally likely.
"""

import math
from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import Tensor

from abacist.intervals import Proportion
from abacist.models.teacher_forcing import IGNORED
from abacist.scoring.exact_match import Pass, Verdicts
from abacist.scoring.failures import carry_chains
from abacist.scoring.groups import groups, shown
from abacist.scoring.judge import Judge
from abacist.scoring.samples import as_in_training
from abacist.scoring.suite import Progress, Row, Section, Suite
from abacist.scoring.trained_model import TrainedModel
from abacist.tasks.arithmetic import Arithmetic
from abacist.tasks.config import ArithmeticConfig
from abacist.tasks.problems import OPERATIONS, Problems

_LENGTH = "longest operand"


def by_stratum(trained_model: TrainedModel, on_progress: Progress) -> Section:
    """Exact match within each stratum; token accuracy by place; perplexity of the right answer."""
    count = 10 * trained_model.scoring.num_problems
    chained = _by_carry_chain(trained_model)
    total = count * (1 if chained is None else 2)
    judge = Judge(trained_model)
    tokens = _Tokens()

    problems = as_in_training(trained_model, count, "strata")
    verdicts = judge.verdicts(
        problems,
        lambda done: on_progress("as in training", done, total),
        tokens.look,
        row="as in training",
    )
    rows = [judge.row("as in training", "all", 0, verdicts)]
    for name, values in _strata(trained_model, problems).items():
        rows += _rows(name, values, verdicts)
    if chained is not None:
        drawn = as_in_training(chained, count, "carry chains")
        by_chain = judge.verdicts(
            drawn,
            lambda done: on_progress("by carry chain", count + done, total),
            row="drawn by carry chain",
        )
        chains = carry_chains(trained_model.task, drawn)
        assert chains is not None
        rows += _rows("drawn by carry chain", chains, by_chain)
    rows += tokens.rows()
    return judge.section("Strata of test problems", rows, perplexity=tokens.perplexity())


STRATA = Suite(
    "exact match by operation, length and carry chain; token accuracy; perplexity",
    lambda trained_model: None,
    by_stratum,
)


def _strata(trained_model: TrainedModel, problems: Problems) -> Mapping[str, Tensor]:
    """What to look at problems by: int64 (B,) by name, where it varies."""
    found = {
        "operation": problems.operation_B.long(),
        "operands": problems.counts_B,
        _LENGTH: problems.lengths_BN.amax(dim=1),
    }
    chains = carry_chains(trained_model.task, problems)
    if chains is not None:
        found["longest carry chain"] = chains
    return {name: values for name, values in found.items() if len(torch.unique(values)) > 1}


def _rows(name: str, values: Tensor, verdicts: Verdicts) -> list[Row]:
    """A row for each value, or for each group of values; negative ones belong to none."""
    rows = []
    for low, high in groups(int(values.max())):
        inside = (values >= low) & (values <= high)
        if not bool(inside.any()):
            continue
        value = OPERATIONS[low] if name == "operation" else shown(low, high)
        if name == _LENGTH:
            value += " digit" + "s" * (high > 1)
        digits = high if name == _LENGTH else 0
        chosen = Verdicts(verdicts.correct[inside], verdicts.margins[inside])
        rows.append(
            Row(f"{name}: {value}", name, digits, chosen.proportion, float(chosen.margins.min()))
        )
    return rows


def _by_carry_chain(trained_model: TrainedModel) -> TrainedModel | None:
    """The same trained_model with sums drawn by their longest chain; None where a task has no such drawing."""
    task = trained_model.task
    if not isinstance(task, Arithmetic) or (task.operations, task.config.max_operands) != (
        ("+",),
        2,
    ):
        return None
    sampling: ArithmeticConfig = replace(task.config, sampling="carry-chains", carry_chains=())
    return replace(trained_model, task=Arithmetic(sampling))


class _Tokens:
    """Token accuracy and perplexity, gathered pass by pass."""

    def __init__(self) -> None:
        self.right = self.all = torch.zeros(0, dtype=torch.int64)
        """By place, tokens without one at 0."""
        self.log_probabilities: list[Tensor] = []
        """Of every problem: mean over its answer's tokens, in nats; (B,) each."""
        self.total_log_probability = 0.0

    def look(self, batch: Pass) -> None:
        labels = batch.forced.labels
        told = labels != IGNORED
        right = batch.forced.right_tokens() & told
        places = batch.places.clamp(min=0)
        height = max(len(self.all), int(places[told].max()) + 1)
        counts = [torch.bincount(places[chosen], minlength=height) for chosen in (right, told)]
        for count, old in zip(counts, (self.right, self.all), strict=True):
            count[: len(old)] += old
        self.right, self.all = counts
        logits = batch.forced.logits.double()
        right_logit = logits.gather(-1, labels.clamp(min=0).unsqueeze(-1)).squeeze(-1)
        log_probability = (right_logit - logits.logsumexp(dim=-1)) * told
        self.total_log_probability += float(log_probability.sum())
        self.log_probabilities.append(log_probability.sum(dim=1) / told.sum(dim=1))

    def rows(self) -> list[Row]:
        """Token accuracy over all, and by place where tokens have one."""
        everything = Proportion(int(self.right.sum()), int(self.all.sum()))
        rows = [Row("all answer tokens", "tokens", 0, everything, measure="token accuracy")]
        for low, high in groups(len(self.all) - 1)[1:]:
            right, count = (
                int(self.right[low : high + 1].sum()),
                int(self.all[low : high + 1].sum()),
            )
            if count:
                name = f"tokens at place {shown(low, high)}"
                proportion = Proportion(right, count)
                rows.append(Row(name, "tokens", 0, proportion, measure="token accuracy"))
        return rows

    def perplexity(self) -> dict[str, float | None]:
        """Of the right answers, 1 at best: exp of minus the mean log probability of a token.

        Over all tokens of the sample, and of single problems, as is usual for single answers.
        """
        each = torch.cat(self.log_probabilities).neg().exp()
        mean = -self.total_log_probability / max(1, int(self.all.sum()))
        return {
            "all tokens": finite(math.exp(min(mean, 700.0))),
            "median problem": finite(float(each.median())),
            "worst problem": finite(float(each.max())),
        }


def finite(value: float) -> float | None:
    """JSON has no infinity."""
    return value if math.isfinite(value) else None
