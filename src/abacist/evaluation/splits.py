"""The suite `splits`: training problems against validation and test problems, one distribution.

A model that has learnt to calculate does as well on all three; one that has learnt its training
problems by heart does not.
"""

from abacist.data.config import SplitName
from abacist.data.stream import first_problems
from abacist.evaluation.judge import Judge
from abacist.evaluation.samples import as_in_training
from abacist.evaluation.suite import Progress, Row, Section, Subject, Suite
from abacist.intervals import Proportion, difference
from abacist.tasks.problems import Problems

_SPLITS: tuple[SplitName, ...] = ("train", "validation", "test")


def by_split(subject: Subject, on_progress: Progress) -> Section:
    """Exact match on each split, and how much better training problems are answered."""
    count = 10 * subject.config.num_problems
    judge = Judge(subject)
    rows: list[Row] = []
    found: dict[str, Proportion] = {}
    for number, split in enumerate(_SPLITS):

        def report(done: int, name: str = split, before: int = number * count) -> None:
            on_progress(name, before + done, len(_SPLITS) * count)

        verdicts = judge.verdicts(_sample(subject, split, count), report, row=f"{split} problems")
        found[split] = verdicts.proportion
        rows.append(judge.row(f"{split} problems", "split", 0, verdicts))
    gap = difference(found["train"], found["test"])
    return judge.section(
        "Splits, drawn as in training", rows, train_minus_test=gap and gap.to_json()
    )


SPLITS = Suite("training against validation against test problems", lambda subject: None, by_split)


def _sample(subject: Subject, split: SplitName, count: int) -> Problems:
    """Problems of a split; of a fixed training set, some that were really trained on."""
    if split == "train" and subject.num_examples is not None:
        examples = first_problems(subject.task, subject.split, subject.num_examples, subject.seed)
        return examples[:count]
    return as_in_training(subject, count, "splits", split)
