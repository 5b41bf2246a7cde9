"""Tests of what every format must do, over a selection of tasks and settings for each of them."""

import random
import re
from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from itertools import combinations, product

import torch
from extension_tasks import LargerTextConfig, column_task
from torch import Tensor
from written_lines import ANNOTATIONS, Pair, texts

from abacist.errors import ConfigurationError
from abacist.formats.annotated import ANCHOR, EVERYWHERE, NO_PLACE, AnnotatedTokens, Field
from abacist.formats.columns import ColumnsFormat
from abacist.formats.config import (
    FORMATS,
    CalculatorFormatConfig,
    CarryTraceFormatConfig,
    FormatConfig,
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
    TextFormatConfig,
    WorkedFormatConfig,
)
from abacist.formats.continuation import Continuation, RepeatedAnnotation, continue_lines
from abacist.formats.text import TextFormat
from abacist.tasks.config import (
    TASKS,
    ArithmeticConfig,
    ModularAdditionConfig,
    OwnTaskConfig,
    SortingConfig,
    TaskConfig,
)
from abacist.tasks.problems import Numbers

DIVISIONS = ArithmeticConfig(operations=("//", "%"), max_digits=5)
MIXED = ArithmeticConfig(operations=("+", "-", "*", "//", "%"), max_digits=4)


def first_task(format: FormatConfig) -> TaskConfig:
    """The first named task that a format can write."""
    tasks = [*TASKS.values(), column_task("test-add"), LargerTextConfig()]
    return next(task for task in tasks if format.obstacle(task) is None)


NAMED_PAIRS = [Pair(name, first_task(format), format) for name, format in FORMATS.items()]
FURTHER_PAIRS = [
    Pair(*further)
    for further in [
        ("subtract 3 by 3 reversed", ArithmeticConfig(operations=("-",), operand_digits=(3, 3)),
         PlainFormatConfig()),
        ("five operations spaced", TASKS["five-operations"], FORMATS["spaced"]),
        ("five operations carry-trace", TASKS["five-operations"], CarryTraceFormatConfig()),
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
        ("mixed calculator of 4", MIXED, CalculatorFormatConfig()),
        ("sums and products calculator", replace(MIXED, operations=("*", "+")),
         CalculatorFormatConfig()),
        ("divide 9 by 2 calculator", ArithmeticConfig(operations=("//", "%"), operand_digits=(9, 2)),
         CalculatorFormatConfig()),
        ("signed calculator", replace(MIXED, signed=True),
         CalculatorFormatConfig()),
        ("add parallel padded", TASKS["add"], ParallelFormatConfig(operand_padding="longest")),
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
        ("words", LargerTextConfig(), TextFormatConfig()),
        *[(f"{name} {notation}", column_task(name), FORMATS[notation])
          for name in ("test-add-hexadecimal", "test-add-three", "test-subtract", "test-divide",
                       "test-compare", "test-parity", "test-remainder")
          for notation in ("columns", "column-trace", "column-trace-digits")
          if notation == "column-trace-digits" or name != "test-remainder"],
        ("add 25 coupled", ArithmeticConfig(max_operands=25, max_digits=3), FORMATS["coupled"]),
    ]
]  # fmt: skip


def plain_configs() -> list[PlainFormatConfig]:
    """All combinations of settings that are accepted, half of them with a start token."""
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
            # A token of its own changes nothing else, so half of the configurations have it.
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


def covering(pairs: list[Pair], num_settings: int) -> list[Pair]:
    """Select pairs such that every combination of values of `num_settings` settings still occurs."""
    covered: set[tuple[object, ...]] = set()
    selected = []
    for pair in random.Random(0).sample(pairs, len(pairs)):
        values = [*asdict(pair.format_config).items(), ("task", pair.task_config)]
        new = set(combinations(values, num_settings)) - covered
        if new:
            covered |= new
            selected.append(pair)
    return selected


PAIRS = [*NAMED_PAIRS, *FURTHER_PAIRS, *covering(PLAIN_PAIRS, 2)]
DECODERS = [pair for pair in PAIRS if not pair.parallel]
ENCODERS = [pair for pair in PAIRS if pair.parallel]


def for_each(pairs: Iterable[Pair]) -> Callable[[Callable[[Pair], None]], Callable[[], None]]:
    """Make one test of all pairs; as thousands of tests they would take three times as long."""

    def decorate(test: Callable[[Pair], None]) -> Callable[[], None]:
        def run() -> None:
            for pair in pairs:
                try:
                    test(pair)
                except Exception as error:
                    raise AssertionError(f"{pair.name}: {error}") from error

        run.__name__ = test.__name__
        return run

    return decorate


def assert_alike(
    lines: AnnotatedTokens, expected: AnnotatedTokens, names: tuple[str, ...] = ANNOTATIONS
) -> None:
    for name in names:
        tensor, expected_tensor = getattr(lines, name), getattr(expected, name)
        assert (tensor is None) == (expected_tensor is None), name
        assert tensor is None or torch.equal(tensor, expected_tensor), name


def assert_prefixes_annotate_alike(pair: Pair, ids_BT: Tensor, prompt_lengths: Tensor) -> None:
    """Annotating the first tokens of lines gives their first annotations, from the prompt on."""
    whole = pair.format.annotate(ids_BT)
    total, shortest = ids_BT.shape[1], int(prompt_lengths.min())
    every = max(1, (total - shortest) // 10)
    for length in {*range(shortest, total, every), total - 1}:
        lines = (prompt_lengths <= length).nonzero().squeeze(1)
        assert_alike(pair.format.annotate(ids_BT[lines, :length]), whole[lines][:, :length])


# Reading and writing ---------------------------------------------------------------------------


@for_each(PAIRS)
def test_written_lines_are_read_as_their_answers(pair: Pair) -> None:
    problems = pair.draw(80)
    assert pair.read(pair.write(problems)) == pair.task.answer(problems).texts()


@for_each(covering(PLAIN_PAIRS, 3))
def test_lines_with_any_three_plain_settings_are_read_as_their_answers(pair: Pair) -> None:
    problems = pair.draw(10)
    assert pair.read(pair.write(problems)) == pair.task.answer(problems).texts()


@for_each(PAIRS)
def test_operands_of_equal_digits_are_written_and_read(pair: Pair) -> None:
    if isinstance(pair.task_config, ModularAdditionConfig):
        last = f"{pair.task_config.modulus - 1}"
        problems = pair.task.parse([f"{last}+{last}", "0+0", f"{last}+0"])
    else:
        problems = pair.draw_equal_digits()
    lines = pair.write(problems)
    assert pair.read(lines) == pair.task.answer(problems).texts()
    assert (lines.target.sum(dim=1) <= pair.format.target_lengths(problems)).all()


def test_the_longest_answer_of_a_parallel_batch_need_not_be_that_of_the_longest_prompt() -> None:
    pair = Pair("add parallel", TASKS["add"], ParallelFormatConfig())
    problems = pair.task.parse(["99999+99999", "99999999+1"])
    assert pair.read(pair.write(problems)) == ["199998", "100000000"]


# Random spaces are drawn for the whole batch.
@for_each([pair for pair in PAIRS if getattr(pair.format_config, "spaces", "none") != "random"])
def test_a_line_is_the_same_alone_as_in_a_batch(pair: Pair) -> None:
    together = texts(pair.format, pair.lines)[:3]
    alone = [texts(pair.format, pair.write(pair.problems[i : i + 1]))[0] for i in range(3)]
    assert together == alone


@for_each([pair for pair in PAIRS if getattr(pair.format_config, "spaces", "none") == "random"])
def test_writing_with_random_spaces_again_gives_the_same_lines(pair: Pair) -> None:
    assert pair.write(pair.problems).ids.tolist() == pair.lines.ids.tolist()


@for_each(PAIRS)
def test_problems_and_answers_are_left_unchanged(pair: Pair) -> None:
    problems = pair.draw(6)
    answer = pair.task.answer(problems)
    digits, expected = problems.digits_BNW.clone(), answer.texts()
    pair.format.write(problems, answer)
    assert torch.equal(problems.digits_BNW, digits)
    assert answer.texts() == expected


@for_each(PAIRS)
def test_an_empty_batch_is_written_and_read(pair: Pair) -> None:
    nothing = pair.task.parse([])
    assert len(pair.format.prompt(nothing).ids) == 0
    lines = pair.write(nothing)
    assert lines.place.shape == lines.field.shape == lines.target.shape == lines.ids.shape
    assert pair.read(lines) == []
    assert pair.format.target_lengths(nothing).tolist() == []


# Annotation ------------------------------------------------------------------------------------


@for_each(PAIRS)
def test_writing_gives_the_annotation_of_its_own_ids(pair: Pair) -> None:
    lines = pair.lines
    names = tuple(name for name in ANNOTATIONS if not (pair.parallel and name == "target"))
    assert_alike(pair.format.annotate(lines.ids), lines, names)


@for_each(PAIRS)
def test_lines_are_annotated_in_a_batch_as_each_alone(pair: Pair) -> None:
    ids = pair.write(pair.draw(12, alike=3)).ids
    together = pair.format.annotate(ids)
    for row in range(0, len(ids), 3):
        assert_alike(together[row : row + 1], pair.format.annotate(ids[row : row + 1]))


@for_each(DECODERS)
def test_annotation_of_an_answer_never_depends_on_later_tokens(pair: Pair) -> None:
    problems = pair.draw(4)
    prompt_lengths = pair.format.prompt(problems).lengths
    assert_prefixes_annotate_alike(pair, pair.write(problems).ids, prompt_lengths)


def with_nonsense(pair: Pair, num_problems: int) -> tuple[Tensor, Tensor]:
    """Prompts followed by random tokens, and the lengths of the prompts."""
    problems = pair.draw(num_problems)
    prompts = pair.format.prompt(problems)
    lengths = prompts.lengths
    width = int(lengths.max() + pair.format.target_lengths(problems).max())
    if pair.format.layout != "constant":
        width += 2
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(len(pair.format.vocabulary), (num_problems, width), generator=generator)
    is_prompt = torch.arange(width) < lengths.unsqueeze(1)
    padded = torch.nn.functional.pad(prompts.ids, (0, width - prompts.ids.shape[1]))
    return torch.where(is_prompt, padded.long(), ids), lengths


def assert_continued_as_annotated(
    pair: Pair, ids_BT: Tensor, prompt: AnnotatedTokens, start: Continuation | None = None
) -> None:
    """Appending the tokens of lines one by one gives their coordinates in the whole lines."""
    whole, lengths = pair.format.annotate(ids_BT), prompt.lengths
    num_new = int((ids_BT.shape[1] - lengths).min())
    continuation = start or continue_lines(pair.format, prompt, num_new)
    rows = torch.arange(len(ids_BT))
    largest: dict[str, Tensor] = {}
    known = continuation.known_beforehand
    for number in range(num_new):
        coordinates = continuation.append(ids_BT[rows, lengths + number].long().numpy())
        for name in ("place", "row", "step"):
            appended, annotated = getattr(coordinates, name), getattr(whole, name)
            assert (appended is None) == (annotated is None), name
            if appended is None:
                continue
            expected = annotated[rows, lengths + number]
            assert appended.tolist() == expected.tolist(), f"{name} of new token {number}"
            if known is not None:
                assert getattr(known, name)[number].tolist() == expected.tolist(), name
            # What a windowed model relies on when it forgets tokens.
            if name in continuation.falls:
                earlier = largest.get(name, expected)
                has_value = expected >= 0
                assert (expected >= earlier - continuation.falls[name])[has_value].all(), name
                largest[name] = torch.maximum(earlier, expected)


@for_each(DECODERS)
def test_coordinates_of_appended_tokens_are_those_of_the_whole_line(pair: Pair) -> None:
    problems = pair.draw(3)
    prompt = pair.format.prompt(problems)
    ids = pair.write(problems).ids
    for length in prompt.lengths.unique().tolist():
        lines = (prompt.lengths == length).nonzero().squeeze(1)
        assert_continued_as_annotated(pair, ids[lines], prompt[lines][:, :length])


@for_each(DECODERS)
def test_coordinates_of_appended_nonsense_are_those_of_the_whole_line(pair: Pair) -> None:
    num_problems = 1_000 if pair in NAMED_PAIRS else 50
    ids, _ = with_nonsense(pair, num_problems)
    assert_continued_as_annotated(pair, ids, pair.format.prompt(pair.draw(num_problems)))


@for_each(DECODERS[::40])
def test_a_format_without_a_continuation_annotates_the_line_again(pair: Pair) -> None:
    ids, _ = with_nonsense(pair, 5)
    prompt = pair.format.prompt(pair.draw(5))
    again = RepeatedAnnotation(pair.format.annotate, prompt, ids.shape[1])
    assert_continued_as_annotated(pair, ids, prompt, again)


@for_each(DECODERS)
def test_every_format_of_the_package_continues_lines_in_constant_time_per_token(pair: Pair) -> None:
    continuation = continue_lines(pair.format, pair.format.prompt(pair.draw(2)), 1)
    assert not isinstance(continuation, RepeatedAnnotation)


def test_coordinates_of_sums_and_products_are_known_beforehand() -> None:
    asked = {"reversed": "12+34", "long-multiplication": "12*34", "calculator": "12+34"}
    for pair in NAMED_PAIRS:
        if pair.name in asked:
            prompt = pair.format.prompt(pair.task.parse([asked[pair.name]]))
            assert continue_lines(pair.format, prompt, 3).known_beforehand is not None


class EveryOtherPlace(TextFormat):
    """What an extension may do: another annotation of a format that continues lines."""

    def _annotate(self, ids: Tensor) -> AnnotatedTokens:
        lines = super()._annotate(ids)
        # The place depends on the tokens of the answer, which the inherited continuation ignores.
        lines.place.add_(lines.target * (ids == 1))
        return lines


def test_a_derived_format_that_annotates_differently_does_not_inherit_the_continuation() -> None:
    pair = Pair("words", LargerTextConfig(), TextFormatConfig())
    pair.__dict__["format"] = EveryOtherPlace(TextFormatConfig(), pair.task_config)
    ids, _ = with_nonsense(pair, 50)
    assert (ids == 1).any()
    assert_continued_as_annotated(pair, ids, pair.format.prompt(pair.draw(50)))


@for_each(DECODERS)
def test_annotation_of_nonsense_never_depends_on_later_tokens_either(pair: Pair) -> None:
    ids, prompt_lengths = with_nonsense(pair, 4)
    assert_prefixes_annotate_alike(pair, ids, prompt_lengths)


@for_each(DECODERS)
def test_nonsense_is_annotated_in_a_batch_as_each_line_alone(pair: Pair) -> None:
    ids, _ = with_nonsense(pair, 12)
    together = pair.format.annotate(ids)
    for row in range(0, len(ids), 3):
        assert_alike(together[row : row + 1], pair.format.annotate(ids[row : row + 1]))


@for_each(DECODERS)
def test_reading_nonsense_gives_nothing_or_a_number_in_the_usual_notation(pair: Pair) -> None:
    well_formed = r"[a-zA-Z]+" if pair.task_config.kind == "sorting" else r"0|-?[1-9][0-9]*"
    if isinstance(pair.task_config, OwnTaskConfig):
        well_formed = r"-?[0-9a-z]+(;[0-9]+)?"
    ids, _ = with_nonsense(pair, 60)
    for answer in pair.format.read(ids):
        assert answer is None or re.fullmatch(well_formed, answer), answer


@for_each(DECODERS)
def test_reading_right_answers_with_one_wrong_token_never_fails(pair: Pair) -> None:
    lines = pair.lines
    generator = torch.Generator().manual_seed(0)
    ids = lines.ids.clone()
    position = torch.multinomial(lines.target.double(), 1, generator=generator)
    wrong = torch.randint(len(pair.format.vocabulary), position.shape, generator=generator)
    ids.scatter_(1, position, wrong.int())
    for answer in pair.format.read(ids):
        well_formed = r"[a-zA-Z]+|0|-?[1-9][0-9]*"
        if isinstance(pair.task_config, OwnTaskConfig):
            well_formed = r"-?[0-9a-z]+(;[0-9]+)?"
        assert answer is None or re.fullmatch(well_formed, answer), answer


@for_each(DECODERS)
def test_a_prompt_is_the_line_up_to_the_first_token_to_predict(pair: Pair) -> None:
    prompts, lines = pair.format.prompt(pair.problems), pair.lines
    assert not prompts.target.any()
    for row, length in enumerate(lines.target[:12].long().argmax(dim=1).tolist()):
        assert int(prompts.lengths[row]) == length
        assert prompts.ids[row, :length].tolist() == lines.ids[row, :length].tolist()
        assert_alike(prompts[row : row + 1, :length], lines[row : row + 1, :length])
        assert (prompts.field[row, length:] == Field.PADDING).all()
        assert lines.field[row, length - 1] == Field.EQUALS


@for_each(ENCODERS)
def test_an_encoders_prompt_is_its_whole_line_with_every_token_it_may_write(pair: Pair) -> None:
    problems, lines = pair.problems, pair.lines
    prompts = pair.format.prompt(problems)
    assert prompts.labels is None
    assert prompts.ids.tolist() == lines.ids.tolist()
    assert_alike(prompts, lines, ("place", "field"))
    assert (prompts.target | ~lines.target).all()
    assert (lines.labels[lines.target] != pair.format.vocabulary.id("<pad>")).all()


@for_each(PAIRS)
def test_tokens_to_predict_stand_in_one_stretch_up_to_the_end(pair: Pair) -> None:
    lines = pair.lines
    first = lines.target.long().argmax(dim=1)
    num_targets = lines.target.sum(dim=1)
    index = torch.arange(lines.ids.shape[1])
    stretch = (index >= first.unsqueeze(1)) & (index < (first + num_targets).unsqueeze(1))
    assert torch.equal(lines.target, stretch)
    assert (num_targets > 0).all()
    if not pair.parallel:
        assert torch.equal(first + num_targets, lines.lengths)


@for_each(PAIRS)
def test_no_line_has_more_to_predict_than_its_target_length(pair: Pair) -> None:
    num_targets = pair.lines.target.sum(dim=1)
    most = pair.format.target_lengths(pair.problems)
    assert most.dtype == torch.int64
    assert (num_targets <= most).all()


@for_each(PAIRS)
def test_lines_are_padded_on_the_right_only(pair: Pair) -> None:
    lines = pair.lines
    after = torch.arange(lines.ids.shape[1]) >= lines.lengths.unsqueeze(1)
    assert torch.equal(lines.field == Field.PADDING, after)
    assert not (lines.target & after).any()
    assert (lines.index[after] == -1).all()
    assert int(lines.lengths.max()) == lines.ids.shape[1]


@for_each(PAIRS)
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


@for_each(PAIRS)
def test_annotations_have_one_type_and_shape(pair: Pair) -> None:
    for lines in (pair.lines, pair.format.prompt(pair.problems)):
        shape = lines.ids.shape
        assert lines.ids.dtype == lines.place.dtype == torch.int32
        assert lines.target.dtype == torch.bool
        for tensor in (lines.row, lines.step, lines.labels):
            assert tensor is None or (tensor.dtype, tensor.shape) == (torch.int32, shape)
        assert lines.place.shape == lines.field.shape == lines.target.shape == shape
        assert lines.place.min() >= EVERYWHERE


# Tokens ----------------------------------------------------------------------------------------


@for_each(PAIRS)
def test_ids_are_in_the_vocabulary(pair: Pair) -> None:
    lines = pair.lines
    for ids in (lines.ids, lines.labels):
        if ids is not None:
            assert int(ids.min()) >= 0
            assert int(ids.max()) < len(pair.format.vocabulary)


@for_each(PAIRS)
def test_a_digits_id_is_its_value(pair: Pair) -> None:
    is_one_residue = isinstance(pair.format_config, ResiduesFormatConfig)
    num_digits = min(10, pair.task_config.modulus) if is_one_residue else 10
    digits = range(num_digits)
    assert [pair.format.vocabulary.id(str(digit)) for digit in digits] == list(digits)


@for_each(PAIRS)
def test_operands_hold_nothing_but_digits_and_signs(pair: Pair) -> None:
    lines = pair.lines
    most = 10
    if isinstance(pair.format_config, ResiduesFormatConfig):
        most = pair.task_config.modulus
    if isinstance(pair.task_config, OwnTaskConfig):
        most = pair.task.base
    operand_ids = lines.ids[lines.field >= Field.OPERAND]
    if getattr(pair.task_config, "signed", False):
        signs = [pair.format.vocabulary.id(sign) for sign in "⁺⁻"]
        operand_ids = operand_ids[~torch.isin(operand_ids, torch.tensor(signs))]
    assert len(operand_ids)
    assert int(operand_ids.max()) < most


@for_each(PAIRS)
def test_a_field_of_one_token_holds_nothing_else(pair: Pair) -> None:
    lines = pair.lines
    for field in set(lines.field.unique().tolist()) | {int(Field.SPACE), int(Field.START)}:
        only = pair.format.token_id(field)
        ids = set(lines.ids[lines.field == field].tolist())
        assert only is None or ids <= {only}, Field(min(field, Field.OPERAND))
    assert pair.format.token_id(Field.EQUALS) == pair.format.vocabulary.id("=")
    assert pair.format.token_id(Field.ANSWER) is None
    assert pair.format.token_id(Field.OPERAND) is None


# Places ----------------------------------------------------------------------------------------

COLUMNS = [
    pair
    for pair in PAIRS
    if not isinstance(
        pair.format_config,
        LongDivisionFormatConfig
        | NonRestoringDivisionFormatConfig
        | PartialProductsFormatConfig
        | LongMultiplicationFormatConfig
        | ResiduesFormatConfig
        | WorkedFormatConfig
        | CalculatorFormatConfig,
    )
]


@for_each(COLUMNS)
def test_an_operands_digit_stands_at_the_place_of_its_significance(pair: Pair) -> None:
    if isinstance(pair.format, ColumnsFormat) and pair.format.rule.most_significant_first:
        return  # Its places count columns in the order in which they are read.
    problems = pair.draw(10)
    lines = pair.write(problems)
    for position in range(problems.num_operands):
        for row, length in enumerate(problems.lengths_BN[:, position].tolist()):
            is_operand = lines.field[row] == Field.OPERAND + position
            places, ids = (t[row][is_operand].tolist() for t in (lines.place, lines.ids))
            written = dict(zip(places, ids, strict=True))
            assert len(written) == len(places)
            digits = problems.digits_BNW[row, position, :length].tolist()
            assert [written.pop(place) for place in range(1, length + 1)] == digits
            # The remaining digits are the zeros before a padded number.
            assert not any(written.values())
            assert all(place > length for place in written)


@for_each([pair for pair in COLUMNS if isinstance(pair.format_config, PlainFormatConfig)])
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


@for_each(PAIRS)
def test_the_token_before_an_answer_is_its_anchor_and_the_start_stands_everywhere(
    pair: Pair,
) -> None:
    lines = pair.lines
    is_equals = lines.field == Field.EQUALS
    assert is_equals.sum(dim=1).tolist() == [1] * 40
    # Where states are written, `=` stands for state 0, which is entered before column 1.
    is_state = getattr(pair.format_config, "states", False)
    assert (lines.place[is_equals] == (1 if is_state else ANCHOR)).all()
    is_start = lines.field == Field.START
    assert (lines.place[is_start] == EVERYWHERE).all()
    always = isinstance(pair.task_config, OwnTaskConfig)
    always |= isinstance(pair.format_config, CalculatorFormatConfig)
    starts = getattr(pair.format_config, "start_token", always)
    assert is_start.sum(dim=1).tolist() == [int(starts)] * 40
    assert not is_start[:, 1:].any()


# Layout ----------------------------------------------------------------------------------------


def assert_lines_lie_alike(lines: AnnotatedTokens) -> None:
    """All lines have the same coordinates, up to the end of the shorter line."""
    present = lines.field != Field.PADDING
    longest = int(lines.lengths.argmax())
    for name in ("place", "row", "step"):
        coordinate = getattr(lines, name)
        if coordinate is not None:
            differs = (coordinate != coordinate[longest]) & present
            assert not differs.any(), name


@for_each([pair for pair in PAIRS if pair.format.layout == "constant"])
def test_lines_of_a_constant_layout_share_one_row_of_coordinates(pair: Pair) -> None:
    assert_lines_lie_alike(pair.write(pair.draw(60)))


@for_each([pair for pair in PAIRS if pair.format.layout in ("constant", "shape")])
def test_lines_of_one_shape_share_one_row_of_coordinates(pair: Pair) -> None:
    for seed in range(3):
        assert_lines_lie_alike(pair.write(pair.draw(8, seed, alike=8)))


def layout_of(task: TaskConfig, **settings: object) -> str:
    return Pair("", task, PlainFormatConfig(**settings)).format.layout


def test_only_what_moves_tokens_makes_a_plain_layout_free() -> None:
    padded = {"operand_padding": "fixed", "answer_padding": "fixed"}
    assert layout_of(TASKS["add"]) == "shape"
    assert layout_of(TASKS["add"], spaces="random") == "free"
    assert layout_of(TASKS["add"], **padded) == "constant"
    assert layout_of(TASKS["add-many"], **padded) == "shape"
    assert layout_of(TASKS["subtract"]) == "free"
    assert layout_of(TASKS["subtract"], negative="sign-last") == "shape"
    assert layout_of(TASKS["subtract"], negative="complement", **padded) == "constant"
