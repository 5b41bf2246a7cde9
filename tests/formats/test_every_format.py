"""What holds for every format: for each task that it can write, and each of its settings."""

import random
import re
from collections.abc import Iterable
from dataclasses import asdict, replace
from itertools import combinations, product

import pytest
import torch
from torch import Tensor
from written_lines import ANNOTATIONS, Pair, texts

from abacist.errors import ConfigurationError
from abacist.formats.annotated import ANCHOR, EVERYWHERE, NO_PLACE, AnnotatedTokens, Field
from abacist.formats.config import (
    FORMATS,
    CarryTraceFormatConfig,
    InsertionSortFormatConfig,
    LabelsFormatConfig,
    LongDivisionFormatConfig,
    LongMultiplicationFormatConfig,
    NonRestoringDivisionFormatConfig,
    ParallelFormatConfig,
    PartialProductsFormatConfig,
    PlainFormatConfig,
    ResiduesFormatConfig,
    RunningSumsFormatConfig,
    WorkedFormatConfig,
)
from abacist.tasks.config import (
    TASKS,
    ArithmeticConfig,
    ModularAdditionConfig,
    SortingConfig,
    TaskConfig,
)
from abacist.tasks.problems import Numbers

DIVISIONS = ArithmeticConfig(operations=("//", "%"), max_digits=5)
MIXED = ArithmeticConfig(operations=("+", "-", "*", "//", "%"), max_digits=4)

PAIRS = [
    Pair(f"{task_name} {format_name}", task, format)
    for task_name, task in TASKS.items()
    for format_name, format in FORMATS.items()
    if format.obstacle(task) is None
] + [
    Pair(*further)
    for further in [
        ("add carry-trace of 9", ArithmeticConfig(max_digits=9), CarryTraceFormatConfig(operand_width=9)),
        ("mixed carry-trace of 4", MIXED, CarryTraceFormatConfig(operand_width=4)),
        ("multiply carry-trace of 9", ArithmeticConfig(operations=("*",), max_digits=9),
         CarryTraceFormatConfig(operand_width=9)),
        ("divisions long-division", DIVISIONS, LongDivisionFormatConfig()),
        ("modulo long-division, no start", replace(DIVISIONS, operations=("%",)),
         LongDivisionFormatConfig(start_token=False)),
        ("divide 9 by 2 long-division", ArithmeticConfig(operations=("//",), operand_digits=(9, 2)),
         LongDivisionFormatConfig()),
        ("modulo 2 by 9 long-division", ArithmeticConfig(operations=("%",), operand_digits=(2, 9)),
         LongDivisionFormatConfig()),
        ("multiply partial-products, no start", TASKS["multiply"],
         PartialProductsFormatConfig(start_token=False)),
        ("multiply 9 by 1 partial-products",
         ArithmeticConfig(operations=("*",), operand_digits=(9, 1)), PartialProductsFormatConfig()),
        ("add 2 running-sums, no start", TASKS["add"], RunningSumsFormatConfig(start_token=False)),
        ("add 25 running-sums", ArithmeticConfig(min_operands=3, max_operands=25, max_digits=3),
         RunningSumsFormatConfig()),
        ("multiply 9 by 1 long-multiplication",
         ArithmeticConfig(operations=("*",), operand_digits=(9, 1)),
         LongMultiplicationFormatConfig()),
        ("multiply 1 by 9 long-multiplication, no start",
         ArithmeticConfig(operations=("*",), operand_digits=(1, 9)),
         LongMultiplicationFormatConfig(start_token=False)),
        ("divisions non-restoring", DIVISIONS, NonRestoringDivisionFormatConfig()),
        ("modulo non-restoring, no start", replace(DIVISIONS, operations=("%",)),
         NonRestoringDivisionFormatConfig(start_token=False)),
        ("divide 9 by 2 non-restoring",
         ArithmeticConfig(operations=("//",), operand_digits=(9, 2)),
         NonRestoringDivisionFormatConfig()),
        ("modulo 2 by 9 non-restoring", ArithmeticConfig(operations=("%",), operand_digits=(2, 9)),
         NonRestoringDivisionFormatConfig()),
        ("mixed worked of 4", MIXED, WorkedFormatConfig(start_token=False)),
        ("divide 9 by 2 worked", ArithmeticConfig(operations=("//", "%"), operand_digits=(9, 2)),
         WorkedFormatConfig()),
        ("mixed parallel", replace(MIXED, operations=("+", "*", "%")), ParallelFormatConfig()),
        ("mixed mirrored", replace(MIXED, operations=("+", "*", "%")),
         ParallelFormatConfig(mirrored=True)),
        ("sort 52 labels", SortingConfig(max_numbers=52, max_digits=3),
         LabelsFormatConfig(start_token=True, order="reversed")),
        ("sort padded labels", SortingConfig(max_digits=4), LabelsFormatConfig(padding="longest")),
        ("sort fixed labels", SortingConfig(max_digits=4),
         LabelsFormatConfig(padding="fixed", order="reversed")),
        ("sort 52 by insertion", SortingConfig(min_numbers=1, max_numbers=52, max_digits=1),
         InsertionSortFormatConfig()),
        ("sort by insertion, no start", SortingConfig(min_digits=4, max_digits=5),
         InsertionSortFormatConfig(start_token=False)),
        ("add modulo 9", ModularAdditionConfig(modulus=9), PlainFormatConfig()),
        ("add modulo 2 residues", ModularAdditionConfig(modulus=2), ResiduesFormatConfig()),
        ("add modulo 1000 residues", ModularAdditionConfig(modulus=1_000), ResiduesFormatConfig()),
        ("add 25 coupled", ArithmeticConfig(max_operands=25, max_digits=3), FORMATS["coupled"]),
    ]
]  # fmt: skip


def plain_configs() -> list[PlainFormatConfig]:
    """Every combination of settings that is not refused, some with and some without a start token."""
    choices = {
        "operand_order": ("reversed", "usual"),
        "answer_order": ("reversed", "usual"),
        "operand_padding": ("none", "longest", "fixed"),
        "answer_padding": ("none", "longest", "fixed"),
        "negative": ("sign-first", "sign-last", "complement"),
        "spaces": ("none", "around", "thousands", "random"),
        "end": ("token", "space", "none"),
    }
    configs = []
    for number, values in enumerate(product(*choices.values())):
        settings = dict(zip(choices, values, strict=True))
        try:
            # Tokens of their own change nothing else, so every second configuration has them.
            settings |= {"start_token": number // 3 % 2 == 0, "padding_token": number // 6 % 2 == 0}
            configs.append(PlainFormatConfig(**settings))
        except ConfigurationError:
            continue
    return configs


PLAIN = plain_configs()
SIGNED = ArithmeticConfig(operations=("-", "*", "+"), max_digits=5)
UNSIGNED = ArithmeticConfig(operations=("+", "//"), max_digits=4)
COUNTED = ArithmeticConfig(max_operands=4, max_digits=4)


def name_of(config: PlainFormatConfig) -> str:
    """`usual>reversed longest>none sign-last random`"""
    return (
        f"{config.operand_order}>{config.answer_order} "
        f"{config.operand_padding}>{config.answer_padding} {config.negative} {config.spaces}"
        f"{' <start>' * config.start_token} end {config.end}{' <pad>' * config.padding_token}"
    )


PLAIN_PAIRS = [
    Pair(f"{name_of(config)}{suffix}", task, config)
    for config in PLAIN
    for task, suffix in ((SIGNED, ""), (COUNTED, " counted"), (UNSIGNED, " unsigned"))
    if (config.end != "none" or task is UNSIGNED)
    and (task is SIGNED or config.negative == "sign-first")
]


def covering(pairs: list[Pair]) -> list[Pair]:
    """Some of them, in which every two settings still meet with every two of their values."""
    met: set[tuple[object, ...]] = set()
    chosen = []
    for pair in random.Random(0).sample(pairs, len(pairs)):
        values = [*asdict(pair.format_config).items(), ("task", pair.task_config)]
        new = set(combinations(values, 2)) - met
        if new:
            met |= new
            chosen.append(pair)
    return chosen


SOME_PLAIN_PAIRS = covering(PLAIN_PAIRS)


def pairs(chosen: Iterable[Pair]) -> pytest.MarkDecorator:
    """A test for each pair."""
    return pytest.mark.parametrize("pair", list(chosen), ids=lambda pair: pair.name)


every_pair = pairs(PAIRS)
every_decoder = pairs(pair for pair in PAIRS if not pair.parallel)
some_plain_pairs = pairs(SOME_PLAIN_PAIRS)


def assert_alike(
    found: AnnotatedTokens, expected: AnnotatedTokens, names: tuple[str, ...] = ANNOTATIONS
) -> None:
    for name in names:
        one, other = getattr(found, name), getattr(expected, name)
        assert (one is None) == (other is None), name
        assert one is None or one.tolist() == other.tolist(), name


def assert_prefixes_annotate_alike(pair: Pair, ids_BT: Tensor, prompt_lengths: list[int]) -> None:
    """Annotating the first tokens of a line gives the first annotations, from the prompt on."""
    for ids, prompt_length in zip(ids_BT, prompt_lengths, strict=True):
        line = ids.unsqueeze(0)
        whole = pair.format.annotate(line)
        total = line.shape[1]
        every = max(1, (total - prompt_length) // 12)
        for length in {*range(prompt_length, total, every), total - 1}:
            assert_alike(pair.format.annotate(line[:, :length]), whole[:, :length])


# Reading and writing ---------------------------------------------------------------------------


@every_pair
def test_what_is_written_is_read_as_the_answer(pair: Pair) -> None:
    problems = pair.draw(120)
    assert pair.read(pair.write(problems)) == pair.task.answer(problems).texts()


@pytest.mark.parametrize(
    ("operand_padding", "answer_padding"),
    list(product(("none", "longest", "fixed"), repeat=2)),
)
def test_what_is_written_with_any_plain_settings_is_read_as_the_answer(
    operand_padding: str, answer_padding: str
) -> None:
    for pair in PLAIN_PAIRS:
        config = pair.format_config
        if (config.operand_padding, config.answer_padding) == (operand_padding, answer_padding):
            problems = pair.draw(10)
            answers = pair.task.answer(problems).texts()
            assert pair.read(pair.write(problems)) == answers, pair.name


@every_pair
def test_extreme_operands_are_written_and_read(pair: Pair) -> None:
    problems = pair.draw(6)
    extremes = []
    for digit in (9, 0, 1):
        digits = problems.digits_BNW.clone()
        inside = torch.arange(digits.shape[2]) < problems.lengths_BN.unsqueeze(2)
        digits[inside] = digit
        leading = problems.lengths_BN.unsqueeze(2) - 1 == torch.arange(digits.shape[2])
        digits[leading] = digits[leading].clamp(min=1)
        extremes.append(replace(problems, digits_BNW=digits))
    if isinstance(pair.task_config, ModularAdditionConfig):
        last = f"{pair.task_config.modulus - 1}"
        extremes = [pair.task.parse([f"{last}+{last}", "0+0", f"{last}+0"])]
    for batch in extremes:
        assert pair.read(pair.write(batch)) == pair.task.answer(batch).texts()


def test_the_longest_answer_of_a_parallel_batch_need_not_be_that_of_the_longest_prompt() -> None:
    pair = Pair("add parallel", TASKS["add"], ParallelFormatConfig())
    problems = pair.task.parse(["99999+99999", "99999999+1"])
    assert pair.read(pair.write(problems)) == ["199998", "100000000"]


@every_pair
def test_small_batches_of_unequal_lengths_are_written_and_read(pair: Pair) -> None:
    for seed in range(3):
        problems = pair.draw(3, seed)
        assert pair.read(pair.write(problems)) == pair.task.answer(problems).texts()


# Spaces are drawn for the whole batch.
@pairs(pair for pair in PAIRS if getattr(pair.format_config, "spaces", "none") != "random")
def test_a_line_is_the_same_alone_as_in_a_batch(pair: Pair) -> None:
    together = texts(pair.format, pair.lines)[:5]
    alone = [texts(pair.format, pair.write(pair.problems[i : i + 1]))[0] for i in range(5)]
    assert together == alone


@every_pair
def test_writing_the_same_problems_again_gives_the_same_lines(pair: Pair) -> None:
    assert pair.write(pair.problems).ids.tolist() == pair.lines.ids.tolist()


@every_pair
def test_problems_and_answers_are_left_unchanged(pair: Pair) -> None:
    problems = pair.draw(20)
    answer = pair.task.answer(problems)
    digits, expected = problems.digits_BNW.clone(), answer.texts()
    pair.format.write(problems, answer)
    assert torch.equal(problems.digits_BNW, digits)
    assert answer.texts() == expected


@every_pair
def test_an_empty_batch_is_written_and_read(pair: Pair) -> None:
    nothing = pair.task.parse([])
    assert len(pair.format.prompt(nothing).ids) == 0
    lines = pair.write(nothing)
    assert lines.place.shape == lines.field.shape == lines.target.shape == lines.ids.shape
    assert pair.read(lines) == []
    assert pair.format.target_lengths(nothing).tolist() == []


# Annotation ------------------------------------------------------------------------------------


@every_pair
def test_writing_gives_the_annotation_of_its_own_ids(pair: Pair) -> None:
    lines = pair.lines
    names = tuple(name for name in ANNOTATIONS if not (pair.parallel and name == "target"))
    assert_alike(pair.format.annotate(lines.ids), lines, names)


@every_pair
def test_lines_are_annotated_in_a_batch_as_each_alone(pair: Pair) -> None:
    ids = pair.write(pair.draw(12, alike=3)).ids
    together = pair.format.annotate(ids)
    for row in range(len(ids)):
        assert_alike(together[row : row + 1], pair.format.annotate(ids[row : row + 1]))


@some_plain_pairs
def test_plain_lines_are_annotated_in_a_batch_as_each_alone(pair: Pair) -> None:
    ids = pair.write(pair.draw(12, alike=4)).ids
    together = pair.format.annotate(ids)
    for row in range(0, len(ids), 3):
        assert_alike(together[row : row + 1], pair.format.annotate(ids[row : row + 1]))


@every_decoder
def test_annotation_of_an_answer_never_depends_on_later_tokens(pair: Pair) -> None:
    problems = pair.draw(4)
    prompt_lengths = pair.format.prompt(problems).lengths.tolist()
    assert_prefixes_annotate_alike(pair, pair.write(problems).ids, prompt_lengths)


@some_plain_pairs
def test_annotation_of_a_plain_answer_never_depends_on_later_tokens(pair: Pair) -> None:
    problems = pair.draw(3)
    prompt_lengths = pair.format.prompt(problems).lengths.tolist()
    assert_prefixes_annotate_alike(pair, pair.write(problems).ids, prompt_lengths)


def with_nonsense(pair: Pair, num_problems: int, seed: int = 0) -> tuple[Tensor, list[int]]:
    """Prompts with random tokens behind them, and where those begin."""
    problems = pair.draw(num_problems)
    prompts = pair.format.prompt(problems)
    lengths = prompts.lengths
    width = int(lengths.max() + pair.format.target_lengths(problems).max())
    if pair.format.layout != "constant":
        width += 2
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(len(pair.format.vocabulary), (num_problems, width), generator=generator)
    is_prompt = torch.arange(width) < lengths.unsqueeze(1)
    padded = torch.nn.functional.pad(prompts.ids, (0, width - prompts.ids.shape[1]))
    return torch.where(is_prompt, padded.long(), ids), lengths.tolist()


@every_decoder
def test_annotation_of_nonsense_never_depends_on_later_tokens_either(pair: Pair) -> None:
    ids, prompt_lengths = with_nonsense(pair, 4)
    assert_prefixes_annotate_alike(pair, ids, prompt_lengths)


@every_decoder
def test_nonsense_is_annotated_in_a_batch_as_each_line_alone(pair: Pair) -> None:
    ids, _ = with_nonsense(pair, 12)
    together = pair.format.annotate(ids)
    for row in range(len(ids)):
        assert_alike(together[row : row + 1], pair.format.annotate(ids[row : row + 1]))


@every_decoder
def test_reading_nonsense_gives_nothing_or_a_number_in_the_usual_notation(pair: Pair) -> None:
    proper = r"[a-zA-Z]+" if pair.task_config.kind == "sorting" else r"0|-?[1-9][0-9]*"
    for seed in range(3):
        ids, _ = with_nonsense(pair, 60, seed)
        for found in pair.format.read(ids):
            assert found is None or re.fullmatch(proper, found), found


@every_decoder
def test_reading_right_answers_with_one_wrong_token_never_fails(pair: Pair) -> None:
    lines = pair.lines
    generator = torch.Generator().manual_seed(0)
    ids = lines.ids.clone()
    position = torch.multinomial(lines.target.double(), 1, generator=generator)
    wrong = torch.randint(len(pair.format.vocabulary), position.shape, generator=generator)
    ids.scatter_(1, position, wrong.int())
    for found in pair.format.read(ids):
        assert found is None or re.fullmatch(r"[a-zA-Z]+|0|-?[1-9][0-9]*", found), found


def assert_prompt_is_the_line_up_to_the_answer(pair: Pair) -> None:
    prompts, lines = pair.format.prompt(pair.problems), pair.lines
    assert not prompts.target.any()
    for row, length in enumerate(lines.target[:20].long().argmax(dim=1).tolist()):
        assert int(prompts.lengths[row]) == length
        assert prompts.ids[row, :length].tolist() == lines.ids[row, :length].tolist()
        prompt, line = prompts[row : row + 1, :length], lines[row : row + 1, :length]
        assert_alike(prompt, line)
        assert (prompts.field[row, length:] == Field.PADDING).all()
        assert line.field[0, -1] == Field.EQUALS


@every_decoder
def test_a_prompt_is_the_line_up_to_the_first_token_to_predict(pair: Pair) -> None:
    assert_prompt_is_the_line_up_to_the_answer(pair)


@some_plain_pairs
def test_a_plain_prompt_is_the_line_up_to_the_first_token_to_predict(pair: Pair) -> None:
    assert_prompt_is_the_line_up_to_the_answer(pair)


@pairs(pair for pair in PAIRS if pair.parallel)
def test_an_encoders_prompt_is_its_whole_line_with_every_token_it_may_write(pair: Pair) -> None:
    problems, lines = pair.problems, pair.lines
    prompts = pair.format.prompt(problems)
    assert prompts.labels is None
    assert prompts.ids.tolist() == lines.ids.tolist()
    assert_alike(prompts, lines, ("place", "field"))
    assert (prompts.target | ~lines.target).all()
    assert (lines.labels[lines.target] != pair.format.vocabulary.id("<pad>")).all()


@every_pair
def test_what_is_to_be_predicted_stands_in_one_stretch_up_to_the_end(pair: Pair) -> None:
    lines = pair.lines
    first = lines.target.long().argmax(dim=1)
    num_targets = lines.target.sum(dim=1)
    index = torch.arange(lines.ids.shape[1])
    stretch = (index >= first.unsqueeze(1)) & (index < (first + num_targets).unsqueeze(1))
    assert torch.equal(lines.target, stretch)
    assert (num_targets > 0).all()
    if not pair.parallel:
        assert torch.equal(first + num_targets, lines.lengths)


@every_pair
def test_no_line_has_more_to_predict_than_its_target_length(pair: Pair) -> None:
    problems = pair.draw(300)
    num_targets = pair.write(problems).target.sum(dim=1)
    most = pair.format.target_lengths(problems)
    assert most.dtype == torch.int64
    assert (num_targets <= most).all()


@some_plain_pairs
def test_no_plain_line_has_more_to_predict_than_its_target_length(pair: Pair) -> None:
    problems = pair.draw(40)
    num_targets = pair.write(problems).target.sum(dim=1)
    assert (num_targets <= pair.format.target_lengths(problems)).all()


@every_pair
def test_lines_are_padded_on_the_right_only(pair: Pair) -> None:
    lines = pair.lines
    behind = torch.arange(lines.ids.shape[1]) >= lines.lengths.unsqueeze(1)
    assert torch.equal(lines.field == Field.PADDING, behind)
    assert not (lines.target & behind).any()
    assert (lines.index[behind] == -1).all()
    if not isinstance(pair.format_config, LongDivisionFormatConfig):
        assert int(lines.lengths.max()) == lines.ids.shape[1]


@every_pair
def test_a_line_ends_in_the_end_token_or_all_lines_have_one_length(pair: Pair) -> None:
    lines = pair.lines
    if pair.format.end_id is None:
        assert len(set(lines.lengths.tolist())) == 1
        return
    written = lines.ids if lines.labels is None else lines.labels
    num_ends = ((written == pair.format.end_id) & lines.target).sum(dim=1)
    assert num_ends.tolist() == [1] * 40
    last = (lines.target.long() * torch.arange(lines.ids.shape[1])).amax(dim=1, keepdim=True)
    assert (written.gather(1, last) == pair.format.end_id).all()


@every_pair
def test_annotations_have_one_type_and_shape(pair: Pair) -> None:
    for lines in (pair.write(pair.draw(7)), pair.format.prompt(pair.draw(7))):
        shape = lines.ids.shape
        assert lines.ids.dtype == lines.place.dtype == torch.int32
        assert lines.target.dtype == torch.bool
        for tensor in (lines.row, lines.step, lines.labels):
            assert tensor is None or (tensor.dtype, tensor.shape) == (torch.int32, shape)
        assert lines.place.shape == lines.field.shape == lines.target.shape == shape
        assert lines.place.min() >= EVERYWHERE


# Tokens ----------------------------------------------------------------------------------------


@every_pair
def test_ids_are_in_the_vocabulary(pair: Pair) -> None:
    lines = pair.lines
    for ids in (lines.ids, lines.labels):
        if ids is not None:
            assert int(ids.min()) >= 0
            assert int(ids.max()) < len(pair.format.vocabulary)


@every_pair
def test_a_digits_id_is_its_value(pair: Pair) -> None:
    known = min(10, getattr(pair.task_config, "modulus", 10))
    known = known if isinstance(pair.format_config, ResiduesFormatConfig) else 10
    assert [pair.format.vocabulary.id(str(digit)) for digit in range(known)] == list(range(known))


@every_pair
def test_operands_hold_nothing_but_digits(pair: Pair) -> None:
    lines = pair.lines
    most = 10
    if isinstance(pair.format_config, ResiduesFormatConfig):
        most = pair.task_config.modulus
    operand_ids = lines.ids[lines.field >= Field.OPERAND]
    assert len(operand_ids)
    assert int(operand_ids.max()) < most


@every_pair
def test_a_field_of_one_token_holds_nothing_else(pair: Pair) -> None:
    lines = pair.lines
    for field in set(lines.field.unique().tolist()) | {int(Field.SPACE), int(Field.START)}:
        only = pair.format.token_id(field)
        found = set(lines.ids[lines.field == field].tolist())
        assert only is None or found <= {only}, Field(min(field, Field.OPERAND))
    assert pair.format.token_id(Field.EQUALS) == pair.format.vocabulary.id("=")
    assert pair.format.token_id(Field.ANSWER) is None
    assert pair.format.token_id(Field.OPERAND) is None


# Places ----------------------------------------------------------------------------------------

COLUMNS = [
    pair
    for pair in PAIRS + SOME_PLAIN_PAIRS
    if not isinstance(
        pair.format_config,
        LongDivisionFormatConfig
        | NonRestoringDivisionFormatConfig
        | PartialProductsFormatConfig
        | LongMultiplicationFormatConfig
        | ResiduesFormatConfig
        | WorkedFormatConfig,
    )
]


@pairs(COLUMNS)
def test_an_operands_digit_stands_at_the_place_of_its_significance(pair: Pair) -> None:
    problems = pair.draw(10)
    lines = pair.write(problems)
    for position in range(problems.num_operands):
        for row, length in enumerate(problems.lengths_BN[:, position].tolist()):
            here = lines.field[row] == Field.OPERAND + position
            places, ids = lines.place[row][here].tolist(), lines.ids[row][here].tolist()
            written = dict(zip(places, ids, strict=True))
            assert len(written) == len(places)
            digits = problems.digits_BNW[row, position, :length].tolist()
            assert [written.pop(place) for place in range(1, length + 1)] == digits
            # What is left are the zeros before a padded number.
            assert not any(written.values())
            assert all(place > length for place in written)


@pairs(pair for pair in COLUMNS if isinstance(pair.format_config, PlainFormatConfig))
def test_a_digit_of_a_plain_answer_has_its_place_or_none(pair: Pair) -> None:
    config = pair.format_config
    problems = pair.draw(10)
    answer = pair.task.answer(problems)
    assert isinstance(answer, Numbers)
    lines = pair.write(problems)
    is_digit = (lines.field == Field.ANSWER) & (lines.ids < 10)
    if config.answer_order == "usual" and config.answer_padding == "none":
        assert (lines.place[lines.field == Field.ANSWER] == NO_PLACE).all()
        return
    for row, length in enumerate(answer.lengths_B.tolist()):
        if config.negative == "complement" and answer.texts()[row].startswith("-"):
            continue
        places = lines.place[row][is_digit[row]].tolist()
        written = dict(zip(places, lines.ids[row][is_digit[row]].tolist(), strict=True))
        assert sorted(places) == list(range(1, len(places) + 1))
        digits = [written.pop(place) for place in range(1, length + 1)]
        assert digits == answer.digits_BW[row, :length].tolist()
        assert not any(written.values())


@every_pair
def test_the_token_before_an_answer_is_its_anchor_and_the_start_stands_everywhere(
    pair: Pair,
) -> None:
    lines = pair.lines
    is_equals = lines.field == Field.EQUALS
    assert is_equals.sum(dim=1).tolist() == [1] * 40
    assert (lines.place[is_equals] == ANCHOR).all()
    is_start = lines.field == Field.START
    assert (lines.place[is_start] == EVERYWHERE).all()
    starts = getattr(pair.format_config, "start_token", False)
    assert is_start.sum(dim=1).tolist() == [int(starts)] * 40
    assert not is_start[:, 1:].any()


# Layout ----------------------------------------------------------------------------------------


def assert_lines_lie_alike(lines: AnnotatedTokens) -> None:
    """Every line has the coordinates of every other, as far as the shorter of them goes."""
    present = lines.field != Field.PADDING
    longest = int(lines.lengths.argmax())
    for name in ("place", "row", "step"):
        coordinate = getattr(lines, name)
        if coordinate is not None:
            differs = (coordinate != coordinate[longest]) & present
            assert not differs.any(), name


@pairs(pair for pair in PAIRS + SOME_PLAIN_PAIRS if pair.format.layout == "constant")
def test_lines_of_a_constant_layout_share_one_row_of_coordinates(pair: Pair) -> None:
    assert_lines_lie_alike(pair.write(pair.draw(100)))


@pairs(pair for pair in PAIRS + SOME_PLAIN_PAIRS if pair.format.layout in ("constant", "shape"))
def test_lines_of_one_shape_share_one_row_of_coordinates(pair: Pair) -> None:
    for seed in range(4):
        assert_lines_lie_alike(pair.write(pair.draw(20, seed, alike=20)))


def shared_layout(task: TaskConfig, **settings: object) -> str:
    return Pair("", task, PlainFormatConfig(**settings)).format.layout


def test_only_what_moves_tokens_makes_a_plain_layout_free() -> None:
    padded = {"operand_padding": "fixed", "answer_padding": "fixed"}
    assert shared_layout(TASKS["add"]) == "shape"
    assert shared_layout(TASKS["add"], spaces="random") == "free"
    assert shared_layout(TASKS["add"], **padded) == "constant"
    assert shared_layout(TASKS["add-many"], **padded) == "shape"
    assert shared_layout(TASKS["subtract"]) == "free"
    assert shared_layout(TASKS["subtract"], negative="sign-last") == "shape"
    assert shared_layout(TASKS["subtract"], negative="complement", **padded) == "constant"
