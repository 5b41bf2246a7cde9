"""The suite `splits`: training, validation and test problems of one distribution, compared.

A model that has learned to calculate scores the same on all three. A model that has memorised its
training problems does not.
"""

from abacist.data.config import SplitName
from abacist.intervals import Proportion, difference
from abacist.models.teacher_forcing import IGNORED
from abacist.scoring.exact_match import ScoredBatch, Verdicts
from abacist.scoring.judge import Judge
from abacist.scoring.records import Row, Section
from abacist.scoring.samples import as_in_training
from abacist.scoring.suite import Progress, Suite, always_applies
from abacist.scoring.trained_model import TrainedModel
from abacist.tasks.problems import Problems

_SPLITS: tuple[SplitName, ...] = ("train", "validation", "test")


def by_split(trained_model: TrainedModel, on_progress: Progress) -> Section:
    """Score each split, and report how much better training problems are answered."""
    count = 10 * trained_model.scoring.num_problems
    judge = Judge(trained_model, on_progress, total=len(_SPLITS) * count)
    rows: list[Row] = []
    proportions: dict[str, Proportion] = {}
    token_accuracy: dict[str, Proportion] = {}
    for split in _SPLITS:
        name = f"{split} problems"
        problems = _sample(trained_model, split, count)
        verdicts, token_accuracy[split] = _scored(judge, problems, name, count)
        proportions[split] = verdicts.proportion
        rows.append(judge.row(name, "split", 0, verdicts))
    rows += [
        Row(f"{split} problems", "tokens", 0, proportion, measure="token accuracy")
        for split, proportion in token_accuracy.items()
    ]
    gap = difference(proportions["train"], proportions["test"])
    return judge.section(
        "Splits, drawn as in training", rows, train_minus_test=gap and gap.to_json()
    )


def _scored(judge: Judge, problems: Problems, name: str, work: int) -> tuple[Verdicts, Proportion]:
    """Score problems, and return their verdicts and token accuracy."""
    tokens: list[Proportion] = []
    verdicts = judge.verdicts(
        problems, name, on_batch=lambda batch: tokens.append(_token_accuracy(batch)), work=work
    )
    return verdicts, sum(tokens, Proportion(0, 0))


def _token_accuracy(batch: ScoredBatch) -> Proportion:
    """Return the share of the targets that are predicted correctly."""
    is_target = batch.predictions.labels != IGNORED
    right = batch.predictions.correct_tokens() & is_target
    return Proportion(int(right.sum()), int(is_target.sum()))


SPLITS = Suite(
    "training, validation and test problems compared",
    always_applies,
    by_split,
    settings=("num_problems",),
)


def _sample(trained_model: TrainedModel, split: SplitName, count: int) -> Problems:
    """Draw problems of a split, or take a sample of the training problems if these are fixed."""
    examples = trained_model.examples
    if split == "train" and examples is not None:
        return examples.sample(trained_model.task, trained_model.split, trained_model.seed, count)
    return as_in_training(trained_model, count, "splits", split)
