"""How few sums are enough if they are chosen well? The choice, its record and its table.

    python studies/chosen_examples.py --out runs/chosen-examples

trains on the beginnings of `studies/chosen_examples.txt`, and on as many random sums. It writes
`results/chosen-examples.json` and a table of docs/data-efficiency.md. An interrupted command can be
repeated: it resumes where it stopped. The list itself was made by

    python studies/chosen_examples.py --choose 150

1. The list begins with sums whose columns differ as much as possible.
2. A model is trained on the list, and the proof shows what it has not learned. Of the problems with
   wrong neighbourhoods, a few are added whose columns have been rarest so far.
3. This is repeated, with another seed each time, until the list is long enough.

The seeds of the choice are not those of the record.
"""

import argparse
import itertools
import json
import random
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import data_efficiency
import study

import abacist
from abacist import recipes
from abacist.data.examples import may_be_listed
from abacist.runs.directory import PLAN
from abacist.sweeps import sweep
from abacist.sweeps.choices import Choices
from abacist.sweeps.local import LocalProcesses
from abacist.sweeps.plan import TABLE, Score

RECORD = study.ROOT / "results" / "chosen-examples.json"
LIST = study.ROOT / "studies" / "chosen_examples.txt"

SETTINGS: Mapping[str, Any] = {
    "model.width": 16,
    "model.mlp_width": 32,
    "training.learning_rate": 0.02,
    "training.weight_decay": 0.2,
    "training.batch_size": 50,
    "training.num_steps": 3_600,
    "training.validate_every": 3_600,
    "training.checkpoint_every": 3_600,
}
"""Settings that differ from those of `add`. They were chosen with the seeds of the choice and 106 to 111."""

NUM_FIRST = 80
"""Number of sums at the beginning of the list, which no model has helped to choose."""
NUM_ADDED = 6
"""Largest number of sums that are added after each training."""
POOL_SIZE = 3_000
"""Largest number of random sums, or of problems with wrong neighbourhoods, from which these are chosen."""
CHOOSING_SEEDS = (100, 101, 102, 103, 104, 105)

COUNTS = (100, 125, 150)
"""Numbers of sums that the record compares."""
SEEDS = range(10)

Sum = tuple[str, str]

# Making the list ---------------------------------------------------------------------------------


def choose(count: int) -> list[Sum]:
    """Return `count` sums: varied ones, then such that trained models have not learned."""
    generator = random.Random(0)
    chosen = most_varied(random_sums(generator, POOL_SIZE), [], min(count, NUM_FIRST))
    seeds = itertools.cycle(CHOOSING_SEEDS)
    while len(chosen) < count:
        seed = next(seeds)
        wrong = mistakes(chosen, seed)
        print(f"{len(chosen)} sums, seed {seed}: {len(wrong):,} problems are wrong", flush=True)
        pool = generator.sample(wrong, min(POOL_SIZE, len(wrong)))
        chosen += most_varied(pool, chosen, min(NUM_ADDED, count - len(chosen)))
    return chosen


def situations(numbers: Sum) -> Iterator[tuple[object, ...]]:
    """Yield what a model can learn from the columns of a sum, from the units on.

    Each column shows what its digits and the carry add up to, and which digits and which digit of
    the answer have caused the carry. A blank stands where a number has ended.
    """
    carry, before = 0, None
    columns = itertools.zip_longest(*(f"{number[::-1]} " for number in numbers), fillvalue=" ")
    for digits in columns:
        yield "adds", digits, carry, before is None
        yield "carries", before, [digit == " " for digit in digits]
        total = sum(int(digit) for digit in digits if digit != " ") + carry
        before, carry = (digits, total % 10), total // 10


def most_varied(pool: Sequence[Sum], chosen: Sequence[Sum], count: int) -> list[Sum]:
    """Return at most `count` other sums of the pool, one by one those whose situations are rarest so far."""
    seen = Counter(map(str, itertools.chain.from_iterable(map(situations, chosen))))
    left = {
        numbers: [str(s) for s in situations(numbers)] for numbers in pool if numbers not in chosen
    }
    added: list[Sum] = []
    while left and len(added) < count:
        best = max(left, key=lambda numbers: sum(1 / (1 + seen[s]) ** 2 for s in left[numbers]))
        seen.update(left.pop(best))
        added.append(best)
    return added


def random_sums(generator: random.Random, count: int) -> list[Sum]:
    """Return different sums of the training split, more than half of them with numbers of one length."""
    drawn: dict[Sum, None] = {}
    while len(drawn) < 2 * count:
        length = generator.randint(1, 10)
        other = length if generator.random() < 0.5 else generator.randint(1, 10)
        drawn[_number(generator, length), _number(generator, other)] = None
    return _to_train_on(list(drawn))[:count]


def _number(generator: random.Random, length: int) -> str:
    lowest = 10 ** (length - 1) if length > 1 else 0
    return str(generator.randrange(lowest, 10**length))


def mistakes(chosen: Sequence[Sum], seed: int) -> list[Sum]:
    """Train on these sums, and return training problems for the wrong neighbourhoods."""
    settings = {**SETTINGS, "training.examples": tuple(f"{a}+{b}" for a, b in chosen)}
    problems: dict[str, None] = {}
    with tempfile.TemporaryDirectory() as folder:
        run = abacist.train("add", out=Path(folder) / "run", seed=seed, settings=settings)
        run.prove(on_mistake=lambda problem: problems.update({problem: None}))
    return _to_train_on([(a, b) for a, _, b in (text.partition("+") for text in problems)])


def _to_train_on(sums: Sequence[Sum]) -> list[Sum]:
    """Return those that are short enough, and reserved neither for validation nor for test."""
    if not sums:
        return []
    recipe = recipes.find("add")
    typed = [f"{a}+{b}" for a, b in sums]
    return list(itertools.compress(sums, may_be_listed(recipe.task.build(), recipe.split, typed)))


# Comparing it ------------------------------------------------------------------------------------


def choices(listed: Sequence[str]) -> Choices:
    """Return the sweep: for each number of sums, the beginning of the list and random ones."""
    contenders: dict[str, dict[str, Any]] = {}
    for count in COUNTS:
        contenders[f"chosen-{count}"] = {"training.examples": tuple(listed[:count])}
        contenders[f"random-{count}"] = {"training.num_examples": count}
    return Choices(
        recipe=recipes.find("add"),
        settings=SETTINGS,
        contenders=contenders,
        seeds=SEEDS,
        score=Score(suites=()),
    )


def record_of(path: Path) -> dict[str, Any]:
    """Return an entry for every number of sums, chosen and random, of the sweep in `path`."""
    results = sweep.read(path)
    groups = []
    for group in results.groups:
        name, _, count = group.group.contender.partition("-")
        groups.append(
            {
                "contender": name,
                "num_examples": int(count),
                "certified": group.distribution.certified.to_json(),
                "seeds": [data_efficiency.seed_entry(outcome) for outcome in group.outcomes],
            }
        )
    groups.sort(key=lambda group: (group["contender"], group["num_examples"]))
    state = study.state_of(results.plan, json.loads((path / TABLE).read_text()))
    return {"study": state, "settings": SETTINGS, "groups": groups}


def page(text: str, record: dict[str, Any]) -> str:
    """Return the page with the table of the record replaced."""
    table = data_efficiency.table(record) if data_efficiency.finished(record) else ""
    return study.with_table(text, record["study"], table, "chosen")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    asked = parser.add_mutually_exclusive_group(required=True)
    asked.add_argument("--out", type=Path, metavar="DIR", help="directory of the sweep")
    asked.add_argument("--choose", type=int, metavar="N", help="make the list anew, with N sums")
    parsed = parser.parse_args()
    if parsed.choose is not None:
        LIST.write_text("".join(f"{a}+{b}\n" for a, b in choose(parsed.choose)))
        return
    executor = LocalProcesses(jobs=1)
    if (parsed.out / PLAN).is_file():
        sweep.resume(parsed.out, executor)
    else:
        sweep.start(choices(LIST.read_text().split()).plan(), parsed.out, executor)
    record = record_of(parsed.out)
    RECORD.write_text(json.dumps(record, indent=1) + "\n")
    data_efficiency.PAGE.write_text(page(data_efficiency.PAGE.read_text(), record))


if __name__ == "__main__":
    main()
