"""The suite `strata`: one large test sample, split by operation, length, carry chain and place.

Carry chains of random digits are rarely long: the probability of k columns or more falls like
2^-k. So a second sample of sums is drawn by its longest carry chain, each length equally likely.
"""

import math
from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import Tensor

from abacist.intervals import Proportion
from abacist.models.teacher_forcing import IGNORED
from abacist.scoring.exact_match import ScoredBatch, Verdicts
from abacist.scoring.failures import carry_chains
from abacist.scoring.judge import Judge
from abacist.scoring.records import Row, Section
from abacist.scoring.samples import as_in_training
from abacist.scoring.suite import Progress, Suite, always_applies
from abacist.scoring.trained_model import TrainedModel
from abacist.scoring.value_ranges import range_text, value_ranges
from abacist.tasks.arithmetic import Arithmetic
from abacist.tasks.config import ArithmeticConfig
from abacist.tasks.problems import OPERATIONS, Problems

_LENGTH = "longest operand"


def by_stratum(trained_model: TrainedModel, on_progress: Progress) -> Section:
    """Score each stratum, token accuracy by place, and the perplexity of correct answers."""
    count = 10 * trained_model.scoring.num_problems
    by_chain = _with_carry_chain_sampling(trained_model)
    judge = Judge(trained_model, on_progress, total=count * (1 if by_chain is None else 2))
    tokens = _TokenStatistics()

    problems = as_in_training(trained_model, count, "strata")
    name = "as in training"
    verdicts = judge.verdicts(problems, name, on_batch=tokens.add, work=count)
    rows = [
        judge.row(name, "all", 0, verdicts),
        Row(name, "answers", 0, tokens.exact_answer(), measure="exact answer"),
    ]
    for kind, values in _strata(trained_model, problems).items():
        rows += _rows(kind, values, verdicts)
    if by_chain is not None:
        name = "drawn by carry chain"
        problems = as_in_training(by_chain, count, "carry chains")
        chains = carry_chains(trained_model.task, problems)
        assert chains is not None
        rows += _rows(name, chains, judge.verdicts(problems, name, work=count))
    rows += tokens.rows()
    return judge.section("Strata of test problems", rows, perplexity=tokens.perplexity())


STRATA = Suite(
    "exact match by operation, length and carry chain; exact answer; token accuracy; perplexity",
    always_applies,
    by_stratum,
    settings=("num_problems",),
)


def _strata(trained_model: TrainedModel, problems: Problems) -> Mapping[str, Tensor]:
    """Return the properties to split the sample by, int64 (B,) each, where their values vary."""
    properties = {
        "operation": problems.operation_B.long(),
        "operands": problems.counts_B,
        _LENGTH: problems.lengths_BN.amax(dim=1),
    }
    chains = carry_chains(trained_model.task, problems)
    if chains is not None:
        properties["longest carry chain"] = chains
    return {name: values for name, values in properties.items() if len(torch.unique(values)) > 1}


def _rows(name: str, values: Tensor, verdicts: Verdicts) -> list[Row]:
    """Return a row for each value or range of values, int64 (B,); negative values are left out."""
    rows = []
    for low, high in value_ranges(int(values.max())):
        inside = (values >= low) & (values <= high)
        if not bool(inside.any()):
            continue
        value = OPERATIONS[low] if name == "operation" else range_text(low, high)
        if name == _LENGTH:
            value += " digit" + "s" * (high > 1)
        digits = high if name == _LENGTH else 0
        part = Verdicts(verdicts.correct[inside], verdicts.margins[inside])
        rows.append(
            Row(f"{name}: {value}", name, digits, part.proportion, float(part.margins.min()))
        )
    return rows


def _with_carry_chain_sampling(trained_model: TrainedModel) -> TrainedModel | None:
    """Return the model with sums drawn by their longest carry chain; None for tasks without that."""
    task = trained_model.task
    if not isinstance(task, Arithmetic) or (
        task.operations,
        task.config.max_operands,
        task.config.signed,
    ) != (
        ("+",),
        2,
        False,
    ):
        return None
    sampling: ArithmeticConfig = replace(task.config, sampling="carry-chains", carry_chains=())
    return replace(trained_model, task=Arithmetic(sampling))


class _TokenStatistics:
    """Token accuracy and perplexity, summed over batches."""

    def __init__(self) -> None:
        self.right = self.all = torch.zeros(0, dtype=torch.int64)
        """Number of correct and of all answer tokens by place; those without a place count at 0."""
        self.log_probabilities: list[Tensor] = []
        """Mean log probability of each problem's answer tokens, in nats, (B,) per batch."""
        self.total_log_probability = 0.0
        self.right_answers = self.num_problems = 0

    def add(self, batch: ScoredBatch) -> None:
        """Add one batch."""
        labels = batch.predictions.labels
        self.right_answers += int(batch.right_answers().sum())
        self.num_problems += len(labels)
        is_target = labels != IGNORED
        right = batch.predictions.correct_tokens() & is_target
        places = batch.places.clamp(min=0)
        height = max(len(self.all), int(places[is_target].max()) + 1)
        counts = [torch.bincount(places[tokens], minlength=height) for tokens in (right, is_target)]
        for count, old in zip(counts, (self.right, self.all), strict=True):
            count[: len(old)] += old
        self.right, self.all = counts
        logits = batch.predictions.logits.double()
        right_logit = logits.gather(-1, labels.clamp(min=0).unsqueeze(-1)).squeeze(-1)
        log_probability = (right_logit - logits.logsumexp(dim=-1)) * is_target
        self.total_log_probability += float(log_probability.sum())
        self.log_probabilities.append(log_probability.sum(dim=1) / is_target.sum(dim=1))

    def exact_answer(self) -> Proportion:
        """Return the share of problems whose answer is right, given right scratch work."""
        return Proportion(self.right_answers, self.num_problems)

    def rows(self) -> list[Row]:
        """Return rows of token accuracy: one of all tokens, then one for each place."""
        everything = Proportion(int(self.right.sum()), int(self.all.sum()))
        rows = [Row("all answer tokens", "tokens", 0, everything, measure="token accuracy")]
        for low, high in value_ranges(len(self.all) - 1)[1:]:
            right, count = (
                int(self.right[low : high + 1].sum()),
                int(self.all[low : high + 1].sum()),
            )
            if count:
                name = f"tokens at place {range_text(low, high)}"
                proportion = Proportion(right, count)
                rows.append(Row(name, "tokens", 0, proportion, measure="token accuracy"))
        return rows

    def perplexity(self) -> dict[str, float | None]:
        """Return perplexities of the correct answers, which are 1 at best.

        A perplexity is exp(-m), where m is the mean log probability of a token: over all tokens
        of the sample, or over those of one problem.
        """
        each = torch.cat(self.log_probabilities).neg().exp()
        mean = -self.total_log_probability / max(1, int(self.all.sum()))
        return {
            "all tokens": finite(math.exp(min(mean, 700.0))),
            "median problem": finite(float(each.median())),
            "worst problem": finite(float(each.max())),
        }


def finite(value: float) -> float | None:
    """Return None for infinity and NaN, which JSON does not have."""
    return value if math.isfinite(value) else None
