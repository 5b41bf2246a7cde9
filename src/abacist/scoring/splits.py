"""The suite `splits`: training problems against validation and test problems, one distribution.

A model that has learnt to calculate does as well on all three; one that has learnt its training
problems by heart does not.
"""

from abacist.data.config import SplitName
from abacist.data.stream import first_problems
from abacist.intervals import Proportion, difference
from abacist.scoring.judge import Judge
from abacist.scoring.samples import as_in_training
from abacist.scoring.suite import Progress, Row, Section, Suite
from abacist.scoring.trained_model import TrainedModel
from abacist.tasks.problems import Problems

_SPLITS: tuple[SplitName, ...] = ("train", "validation", "test")


def by_split(trained_model: TrainedModel, on_progress: Progress) -> Section:
    """Exact match on each split, and how much better training problems are answered."""
    count = 10 * trained_model.scoring.num_problems
    judge = Judge(trained_model)
    rows: list[Row] = []
    found: dict[str, Proportion] = {}
    for number, split in enumerate(_SPLITS):

        def report(done: int, name: str = split, before: int = number * count) -> None:
            on_progress(name, before + done, len(_SPLITS) * count)

        verdicts = judge.verdicts(
            _sample(trained_model, split, count), report, row=f"{split} problems"
        )
        found[split] = verdicts.proportion
        rows.append(judge.row(f"{split} problems", "split", 0, verdicts))
    gap = difference(found["train"], found["test"])
    return judge.section(
        "Splits, drawn as in training", rows, train_minus_test=gap and gap.to_json()
    )


SPLITS = Suite(
    "training against validation against test problems", lambda trained_model: None, by_split
)


def _sample(trained_model: TrainedModel, split: SplitName, count: int) -> Problems:
    """Problems of a split; of a fixed training set, some that were really trained on."""
    if split == "train" and trained_model.num_examples is not None:
        examples = first_problems(
            trained_model.task, trained_model.split, trained_model.num_examples, trained_model.seed
        )
        return examples[:count]
    return as_in_training(trained_model, count, "splits", split)
