import itertools

import torch

from abacist.data.config import SplitConfig
from abacist.data.split import in_split
from abacist.data.stream import TrainingStream
from abacist.formats.annotated import AnnotatedTokens, Field
from abacist.formats.config import PlainFormatConfig
from abacist.formats.plain import PlainFormat
from abacist.tasks.arithmetic import Arithmetic
from abacist.tasks.config import ArithmeticConfig
from abacist.tasks.problems import Problems

TASK = Arithmetic(ArithmeticConfig(min_digits=1, max_digits=6))
FORMAT = PlainFormat(PlainFormatConfig(), ArithmeticConfig())
SPLIT = SplitConfig()
STEPS = [0, 1, 31, 32, 33, 64, 100]


def stream(seed: int = 0, batch_size: int = 16) -> TrainingStream:
    return TrainingStream(TASK, FORMAT, SPLIT, batch_size=batch_size, seed=seed)


def operands(batch: AnnotatedTokens) -> list[tuple[int, int]]:
    """Return the problem of each line, read from its text."""
    rows = []
    for ids in batch.ids.tolist():
        prompt = FORMAT.vocabulary.decode(ids).removeprefix("<start>").partition("=")[0]
        a, b = (int(text[::-1]) for text in prompt.split("+"))
        rows.append((a, b))
    return rows


def test_a_batch_is_a_function_of_seed_and_step_in_any_order() -> None:
    forwards, backwards = stream(), stream()
    first = {step: forwards.batch(step) for step in STEPS}
    again = {step: backwards.batch(step) for step in reversed(STEPS)}
    for step in STEPS:
        for name in ("ids", "place", "field", "target"):
            assert torch.equal(getattr(first[step], name), getattr(again[step], name)), step


def test_different_seeds_and_different_steps_give_different_problems() -> None:
    batches = [operands(stream(seed).batch(step)) for seed in (0, 1) for step in STEPS]
    assert len({tuple(batch) for batch in batches}) == len(batches)


def test_global_random_state_plays_no_part() -> None:
    torch.manual_seed(1)
    first = stream().batch(3)
    torch.manual_seed(2)
    assert torch.equal(first.ids, stream().batch(3).ids)


def test_only_problems_of_the_training_split_occur() -> None:
    training = stream(batch_size=64)
    for step in STEPS:
        problems = Problems.from_integers(list(operands(training.batch(step))))
        assert in_split(problems, "train", SPLIT).all()


def test_all_operands_of_a_batch_have_equal_lengths() -> None:
    training = stream()
    for step in range(64):
        lengths = {(len(str(a)), len(str(b))) for a, b in operands(training.batch(step))}
        assert len(lengths) == 1


def test_all_lines_of_a_batch_share_their_prompt_s_coordinates() -> None:
    training = stream()
    for step in STEPS:
        batch = training.batch(step)
        assert (batch.place == batch.place[:1]).all()


def test_every_pair_of_training_lengths_occurs() -> None:
    training = stream(batch_size=1)
    seen = {
        tuple(len(str(operand)) for operand in operands(training.batch(step))[0])
        for step in range(400)
    }
    assert seen == {(a, b) for a in range(1, 7) for b in range(1, 7)}


def test_answers_equal_python_integers() -> None:
    training = stream()
    for step in STEPS:
        batch = training.batch(step)
        assert FORMAT.read(batch.ids) == [str(a + b) for a, b in operands(batch)]


def test_a_batch_is_no_wider_than_its_longest_line() -> None:
    training = stream()
    for step in range(64):
        batch = training.batch(step)
        assert batch.ids.shape[0] == 16
        assert (batch.field[:, -1] != Field.PADDING).any()


def free_stream() -> TrainingStream:
    """A format with random spaces, in which lines of one shape differ in length."""
    task = ArithmeticConfig(max_digits=40)
    format = PlainFormat(PlainFormatConfig(spaces="random"), task)
    return TrainingStream(Arithmetic(task), format, SPLIT, batch_size=16, seed=0)


def test_lines_of_a_free_layout_share_a_batch_with_others_of_similar_length() -> None:
    lines = free_stream()
    spans = []
    for step in range(32):
        lengths = lines.batch(step).lengths
        spans.append((int(lengths.min()), int(lengths.max())))
    ordered = sorted(spans)
    assert spans != ordered
    for (_, longest), (shortest, _) in itertools.pairwise(ordered):
        assert longest <= shortest


def test_a_batch_of_a_free_layout_is_a_function_of_seed_and_step() -> None:
    one, other = free_stream(), free_stream()
    other.batch(40)
    assert torch.equal(one.batch(5).ids, other.batch(5).ids)
