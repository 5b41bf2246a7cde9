"""Fixed training sets, problems too small to split, and splits of every task."""

import pytest
import torch

from abacist import generators
from abacist.data import examples
from abacist.data.config import SplitConfig, SplitName
from abacist.data.examples import Examples, balanced_problems, first_problems
from abacist.data.export import all_problems
from abacist.data.split import draw_from_split, hash_problems, in_split, is_exempt, split_names
from abacist.data.stream import TrainingStream
from abacist.errors import ConfigurationError
from abacist.formats.config import FORMATS
from abacist.tasks.config import TASKS, ArithmeticConfig, ModularAdditionConfig
from abacist.tasks.problems import OPERATIONS, Problems

SPLIT = SplitConfig()
NAMES: tuple[SplitName, ...] = ("train", "validation", "test")
TASK = ArithmeticConfig(max_digits=3).build()


def stream_of(
    num_examples: int | None,
    name: str = "reversed",
    batch_size: int = 10,
    seed: int = 0,
    **options: bool,
):
    config = ArithmeticConfig(max_digits=3)
    format = FORMATS[name].build(config)
    drawn = None if num_examples is None else Examples(num_examples)
    return TrainingStream(TASK, format, SPLIT, batch_size, seed, drawn, **options)


@pytest.mark.parametrize("name", TASKS)
def test_every_problem_of_every_task_is_in_exactly_one_split(name):
    task = TASKS[name].build()
    generator = generators.generator(0, name)
    problems = task.draw(task.draw_shapes(3_000, generator), generator)
    inside = torch.stack([in_split(problems, split, SPLIT) for split in NAMES])
    assert (inside.sum(dim=0) == 1).all()
    assert 0.6 < inside[0].double().mean() < 0.99


def test_the_order_of_operands_matters_where_it_does_for_the_answer():
    for operation in ("+", "*", "-", "//", "%"):
        rows = [(a, b) for a in range(10, 60) for b in range(61, 99)]
        there = hash_problems(Problems.from_integers(rows, operation))
        back = hash_problems(Problems.from_integers([(b, a) for a, b in rows], operation))
        assert bool((there == back).all()) == (operation in "+*")
        assert not bool((there == back).any()) or operation in "+*"


def test_each_operation_has_its_own_split_of_the_same_numbers():
    rows = [(a, b) for a in range(100) for b in range(1, 100)]
    hashes = [hash_problems(Problems.from_integers(rows, o)) for o in OPERATIONS[:5]]
    for i, first in enumerate(hashes):
        for second in hashes[i + 1 :]:
            assert not (first == second).any()


def test_a_problem_has_one_hash_alone_and_in_a_mixed_batch():
    rows, operations = [["12", "34"], ["5", "600"], ["77", "8"]], ["-", "+", "//"]
    mixed = hash_problems(Problems.from_texts(rows, operations))
    for number, (row, operation) in enumerate(zip(rows, operations, strict=True)):
        assert hash_problems(Problems.from_texts([row], [operation])) == mixed[number]


def test_missing_operands_do_not_change_a_hash():
    ragged = Problems.from_texts([["1", "2", "3"], ["4", "5"]], ["+", "+"])
    assert hash_problems(ragged)[1] == hash_problems(Problems.from_integers([(4, 5)]))[0]


STORED = {
    "+": "ettttttttttttttvvttttttt",
    "-": "tttttttttetttevettetvtte",
    "*": "ttttttttettttttvvtttettt",
    "//": "ttetttttetettetttttttete",
    "%": "ttvttetttttttttttttttttt",
    "sort": "etetvttttttttttttttttttt",
    "+ mod": "tttevtttettttttttttttttt",
}


def test_the_splits_of_a_stored_list_of_problems_never_change():
    """If this fails, every published test set has changed: find out why, do not update the list."""
    rows = [(a * 37 % 1000, a * 91 % 997 + 1) for a in range(1, 25)]
    letters = {"train": "t", "validation": "v", "test": "e"}
    splits = {
        operation: "".join(
            letters[n] for n in split_names(Problems.from_integers(rows, operation), SPLIT)
        )
        for operation in STORED
    }
    assert splits == STORED


def test_exempt_problems_are_in_all_splits_and_named_accordingly():
    config = SplitConfig(exempt_digits=1)
    problems = Problems.from_integers([(a, b) for a in range(20) for b in range(20)])
    small = torch.tensor([a < 10 and b < 10 for a in range(20) for b in range(20)])
    assert torch.equal(is_exempt(problems, config), small)
    for split in NAMES:
        assert in_split(problems, split, config)[small].all()
        assert torch.equal(
            in_split(problems, split, config)[~small], in_split(problems, split, SPLIT)[~small]
        )
    names = split_names(problems, config)
    assert {name for name, is_small in zip(names, small.tolist(), strict=True) if is_small} == {
        "every"
    }


def test_a_shape_without_a_problem_in_a_split_can_be_exempted():
    task = ArithmeticConfig(operations=("//",), max_digits=1).build()
    shapes = task.draw_shapes(100, generators.generator(0))
    tiny = SplitConfig(validation_fraction=0.001)
    with pytest.raises(ConfigurationError, match="exempt_digits 1"):
        draw_from_split(task, shapes, "validation", tiny, generators.generator(0))
    exempt = SplitConfig(validation_fraction=0.001, exempt_digits=1)
    assert len(draw_from_split(task, shapes, "validation", exempt, generators.generator(0))) == 100


def test_the_first_problems_are_distinct_problems_of_the_training_split_in_the_seeds_order():
    problems = first_problems(TASK, SPLIT, 2_000, seed=3)
    assert len(problems) == 2_000
    assert in_split(problems, "train", SPLIT).all()
    assert len(set(TASK.expressions(problems))) == 2_000
    fewer = first_problems(TASK, SPLIT, 500, seed=3)
    assert TASK.expressions(problems)[:500] == TASK.expressions(fewer)
    assert TASK.expressions(first_problems(TASK, SPLIT, 500, seed=4)) != TASK.expressions(fewer)


def test_a_set_larger_than_the_space_is_refused_with_the_size_of_the_space(monkeypatch):
    monkeypatch.setattr(examples, "_DRAWN_AT_ONCE", 1_000)
    task = ModularAdditionConfig(modulus=7).build()
    config = SplitConfig(test_fraction=0.4)
    space = task.space()
    (everything,) = all_problems(space, config, "train")
    with pytest.raises(
        ConfigurationError, match=rf"at most {len(everything)}, the number of problems"
    ):
        first_problems(task, config, 49, seed=0)
    assert len(first_problems(task, config, len(everything), seed=0)) == len(everything)


def test_an_epoch_shows_every_example_once_and_the_next_in_another_order():
    fixed = stream_of(num_examples=40)
    epochs = [[fixed.batch(step).ids for step in range(4 * e, 4 * e + 4)] for e in range(3)]

    def lines(batches):
        return [
            fixed.format.vocabulary.decode(line).rstrip("<end>")
            for batch in batches
            for line in batch.tolist()
        ]

    prompts = sorted(line.partition("=")[0].removeprefix("<start>") for line in lines(epochs[0]))
    assert len(set(prompts)) == 40
    for epoch in epochs[1:]:
        assert sorted(lines(epoch)) == sorted(lines(epochs[0]))
        assert lines(epoch) != lines(epochs[0])


def test_a_fixed_set_can_be_read_from_any_step_on():
    for step in (0, 3, 31, 32, 33, 77):
        assert torch.equal(stream_of(50).batch(step).ids, stream_of(50).batch(step).ids)
    there, jumped = stream_of(50), stream_of(50)
    for step in range(40):
        there.batch(step)
    assert torch.equal(there.batch(40).ids, jumped.batch(40).ids)


def test_a_set_smaller_than_a_batch_is_refused():
    with pytest.raises(ConfigurationError, match=r"at least the batch size, 10, got 5"):
        stream_of(num_examples=5)


@pytest.mark.parametrize(
    ("name", "num_examples", "aligned"),
    [
        ("reversed", None, True),
        ("reversed", 50, False),
        ("zero-padded", 50, True),
        ("random-spaces", None, False),
    ],
)
def test_lines_share_their_coordinates_if_the_stream_says_so(name, num_examples, aligned):
    stream = stream_of(num_examples, name)
    assert stream.aligned == aligned
    if aligned:
        batch = stream.batch(0)
        shortest = int(batch.lengths.min())
        place = batch.place[:, :shortest]
        assert (place == place[0]).all()


def test_random_spaces_differ_from_step_to_step_and_repeat_with_the_seed():
    first, again, other = (stream_of(None, "random-spaces", seed=s) for s in (0, 0, 1))
    assert torch.equal(first.batch(5).ids, again.batch(5).ids)
    assert first.batch(5).ids.shape != other.batch(5).ids.shape or not torch.equal(
        first.batch(5).ids, other.batch(5).ids
    )


def test_every_problem_of_a_space_occurs_once_in_order():
    task = ArithmeticConfig(operations=("-", "//"), max_digits=1).build()
    space = task.space()
    expressions = [e for block in all_problems(space, SPLIT, None) for e in task.expressions(block)]
    assert expressions == [f"{a}-{b}" for a in range(10) for b in range(10)] + [
        f"{a}//{b}" for a in range(10) for b in range(1, 10)
    ]
    by_split = [
        e
        for split in NAMES
        for block in all_problems(space, SPLIT, split)
        for e in task.expressions(block)
    ]
    assert sorted(by_split) == sorted(expressions)


def test_balanced_problems_are_equally_many_of_each_pair_of_lengths_and_may_repeat():
    problems = balanced_problems(TASK, SPLIT, 900, seed=1)
    pairs, counts = torch.unique(problems.lengths_BN, dim=0, return_counts=True)
    assert pairs.tolist() == [[a, b] for a in (1, 2, 3) for b in (1, 2, 3)]
    assert set(counts.tolist()) == {100}
    assert len(set(TASK.expressions(problems))) < 900
    assert bool(in_split(problems, "train", SPLIT).all())
    with pytest.raises(ConfigurationError, match="balanced_examples needs a task whose comb"):
        balanced_problems(TASKS["sort"].build(), SPLIT, 900, seed=1)


@pytest.mark.parametrize(
    "lengths",
    [
        {"max_digits": 1_001},
        {"max_digits": 708, "operations": ("+", "-")},
        {"max_digits": 10, "min_operands": 10, "max_operands": 10},
        {"max_digits": 1_000_000},
    ],
)
def test_more_combinations_of_lengths_than_fit_into_memory_are_refused(lengths):
    with pytest.raises(ConfigurationError, match="and at most 1,000,000 combinations"):
        balanced_problems(ArithmeticConfig(**lengths).build(), SPLIT, 10, seed=1)


def test_an_epoch_can_end_with_the_problems_that_do_not_fill_a_batch():
    stream = stream_of(34, keep_partial_batches=True)
    sizes = [len(stream.batch(step).ids) for step in range(40)]
    assert sizes == [10, 10, 10, 4] * 10
    lines = [
        stream.format.vocabulary.decode(line).partition("=")[0]
        for step in range(4)
        for line in stream.batch(step).ids.tolist()
    ]
    assert len(set(lines)) == 34
    for step in (3, 31, 32, 37):
        again = stream_of(34, keep_partial_batches=True)
        assert torch.equal(stream.batch(step).ids, again.batch(step).ids)


def test_each_problem_of_a_batch_can_have_lengths_of_its_own():
    stream = stream_of(None, batch_size=50, mixed_lengths=True)
    assert not stream.aligned
    batch = stream.batch(3)
    assert len(set(batch.lengths.tolist())) > 3
    assert int(batch.lengths.max()) == batch.ids.shape[1]
