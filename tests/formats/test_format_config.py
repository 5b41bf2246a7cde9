import re
from itertools import product

import pytest
from extension_tasks import column_task

from abacist.errors import ConfigurationError
from abacist.formats.config import (
    FORMATS,
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
    check_writes,
)
from abacist.tasks.config import (
    TASKS,
    ArithmeticConfig,
    ModularAdditionConfig,
    OwnTaskConfig,
    SortingConfig,
    TaskConfig,
)

PLAIN = ["reversed", "usual", "complement", "zero-padded", "coupled", "spaced", "random-spaces"]

# Which format can write which task ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("task", "names"),
    [
        ("add", [*PLAIN, "running-sums", "worked", "calculator", "parallel", "mirrored"]),
        ("add-many", [*PLAIN, "running-sums"]),
        ("subtract", [*PLAIN, "worked", "calculator"]),
        (
            "multiply",
            [
                *PLAIN,
                "partial-products",
                "long-multiplication",
                "worked",
                "calculator",
                "parallel",
                "mirrored",
            ],
        ),
        (
            "divide",
            [
                *PLAIN,
                "long-division",
                "non-restoring-division",
                "worked",
                "calculator",
                "parallel",
                "mirrored",
            ],
        ),
        (
            "modulo",
            [
                *PLAIN,
                "long-division",
                "non-restoring-division",
                "worked",
                "calculator",
                "parallel",
                "mirrored",
            ],
        ),
        ("five-operations", [*PLAIN, "carry-trace", "worked", "calculator"]),
        ("sort", ["labels", "insertion-sort"]),
        ("add-modulo", [*PLAIN, "residues"]),
    ],
)
def test_a_task_can_be_written_in(task: str, names: list[str]) -> None:
    assert [name for name, f in FORMATS.items() if f.obstacle(TASKS[task]) is None] == names


def test_every_task_can_be_written_in_some_named_format() -> None:
    for task in TASKS.values():
        assert any(format.obstacle(task) is None for format in FORMATS.values())


@pytest.mark.parametrize(
    ("format", "task", "obstacle"),
    [
        (PlainFormatConfig(), SortingConfig(), "it writes calculations"),
        (CarryTraceFormatConfig(), SortingConfig(), "it writes calculations with two operands"),
        (CarryTraceFormatConfig(), ModularAdditionConfig(),
         "it writes calculations with two operands"),
        (CarryTraceFormatConfig(), ArithmeticConfig(max_operands=3, max_digits=3),
         "it writes calculations with two operands"),
        (CarryTraceFormatConfig(), ArithmeticConfig(max_digits=4),
         "it writes operands of at most 3 digits"),
        (CarryTraceFormatConfig(operand_width=5), ArithmeticConfig(operand_digits=(2, 6)),
         "it writes operands of at most 5 digits"),
        (LongDivisionFormatConfig(), TASKS["multiply"], "it writes // and % only"),
        (LongDivisionFormatConfig(), TASKS["five-operations"], "it writes // and % only"),
        (LongDivisionFormatConfig(), SortingConfig(), "it writes // and % only"),
        (RunningSumsFormatConfig(), TASKS["subtract"], "it writes + only"),
        (RunningSumsFormatConfig(), ArithmeticConfig(operations=("*", "+")), "it writes + only"),
        (RunningSumsFormatConfig(), SortingConfig(), "it writes + only"),
        (NonRestoringDivisionFormatConfig(), TASKS["multiply"], "it writes // and % only"),
        (LongMultiplicationFormatConfig(), TASKS["divide"], "it writes * only"),
        (PartialProductsFormatConfig(), TASKS["add"], "it writes * only"),
        (PartialProductsFormatConfig(), ArithmeticConfig(operations=("*", "+")),
         "it writes * only"),
        (PartialProductsFormatConfig(), ModularAdditionConfig(), "it writes * only"),
        (LabelsFormatConfig(), TASKS["add"], "it writes labelled numbers to sort"),
        (LabelsFormatConfig(), ModularAdditionConfig(), "it writes labelled numbers to sort"),
        (InsertionSortFormatConfig(), TASKS["add"], "it writes labelled numbers to sort"),
        (ParallelFormatConfig(), TASKS["add-many"], "it writes calculations with two operands"),
        (ParallelFormatConfig(), SortingConfig(), "it writes calculations with two operands"),
        (ParallelFormatConfig(), ModularAdditionConfig(),
         "it writes calculations with two operands"),
        (ParallelFormatConfig(mirrored=True), TASKS["subtract"], "it has no room for a sign"),
        (ParallelFormatConfig(), TASKS["five-operations"], "it has no room for a sign"),
        (ResiduesFormatConfig(), TASKS["add"], "it writes sums modulo a number"),
        (ResiduesFormatConfig(), SortingConfig(), "it writes sums modulo a number"),
    ],
)  # fmt: skip
def test_a_format_says_what_keeps_it_from_writing_a_task(
    format: FormatConfig, task: TaskConfig, obstacle: str
) -> None:
    assert format.obstacle(task) == obstacle


@pytest.mark.parametrize(
    ("format", "task"),
    [
        (CarryTraceFormatConfig(operand_width=9), ArithmeticConfig(max_digits=9)),
        (CarryTraceFormatConfig(), ArithmeticConfig(operand_digits=(3, 1))),
        (LongDivisionFormatConfig(), ArithmeticConfig(operations=("%", "//"))),
        (NonRestoringDivisionFormatConfig(), ArithmeticConfig(operations=("%", "//"))),
        (ParallelFormatConfig(), ArithmeticConfig(operations=("+", "*", "//", "%"))),
        (PlainFormatConfig(), ArithmeticConfig(max_operands=25)),
    ],
)
def test_what_a_format_can_write_has_no_obstacle(format: FormatConfig, task: TaskConfig) -> None:
    assert format.obstacle(task) is None
    check_writes(format, task)
    format.build(task)


@pytest.mark.parametrize(
    ("name", "task", "obstacle", "first", "others"),
    [
        ("carry-trace", "sort", "it writes calculations with two operands", "labels", ["insertion-sort"]),
        ("reversed", "sort", "it writes calculations", "labels", ["insertion-sort"]),
        ("long-division", "multiply", "it writes // and % only", "reversed",
         [*PLAIN[1:], "partial-products", "long-multiplication", "worked", "calculator", "parallel", "mirrored"]),
        ("carry-trace", "add", "it writes operands of at most 3 digits", "reversed",
         [*PLAIN[1:], "running-sums", "worked", "calculator", "parallel", "mirrored"]),
        ("parallel", "subtract", "it has no room for a sign", "reversed",
          [*PLAIN[1:], "worked", "calculator"]),
        ("residues", "five-operations", "it writes sums modulo a number", "reversed",
         [*PLAIN[1:], "carry-trace", "worked", "calculator"]),
        ("labels", "add-modulo", "it writes labelled numbers to sort", "reversed",
         [*PLAIN[1:], "residues"]),
    ],
)  # fmt: skip
def test_a_refusal_names_the_format_the_task_the_obstacle_and_the_formats_that_can(
    name: str, task: str, obstacle: str, first: str, others: list[str]
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        FORMATS[name].build(TASKS[task])
    also = f" (or {', '.join(others)})" if others else ""
    assert str(caught.value) == (
        f"the {FORMATS[name].kind} format cannot write this {TASKS[task].kind} task: {obstacle}. "
        f"Try --format {first}{also}."
    )


@pytest.mark.parametrize("task", TASKS)
def test_what_a_refusal_names_can_write_the_task(task: str) -> None:
    for format in FORMATS.values():
        if format.obstacle(TASKS[task]):
            with pytest.raises(ConfigurationError) as caught:
                check_writes(format, TASKS[task])
            named = re.search(r"Try --format ([\w-]+)(?: \(or (.*)\))?\.$", str(caught.value))
            for name in [named[1], *(named[2] or "").split(", ")]:
                if name:
                    check_writes(FORMATS[name], TASKS[task])


@pytest.mark.parametrize("negative", ["sign-first", "sign-last", "complement"])
@pytest.mark.parametrize("task", ["subtract", "add-many", "five-operations"])
def test_without_an_end_token_lines_of_unequal_length_are_refused_or_read(
    task: str, negative: str
) -> None:
    config = PlainFormatConfig(
        end="none", operand_padding="fixed", answer_padding="fixed", negative=negative
    )
    try:
        format = config.build(TASKS[task])
    except ConfigurationError:
        return
    solver = TASKS[task].build()
    problems = solver.parse(["1+2", "1+2+3"] if task == "add-many" else ["5-3", "3-5"])
    answer = solver.answer(problems)
    assert format.read(format.write(problems, answer).ids) == answer.texts()


# Settings that do not go together -------------------------------------------------------------


@pytest.mark.parametrize(
    ("operand_padding", "answer_padding"),
    [p for p in product(("none", "longest", "fixed"), repeat=2) if p != ("fixed", "fixed")],
)
def test_no_end_token_needs_padding_to_one_length(
    operand_padding: str, answer_padding: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        PlainFormatConfig(
            end="none", operand_padding=operand_padding, answer_padding=answer_padding
        )
    assert str(caught.value) == (
        "format.end none needs lines of one length, got "
        f"format.operand_padding {operand_padding} and format.answer_padding {answer_padding}. "
        "Try --format.end token."
    )


def test_mirrored_lines_have_no_leading_zeros() -> None:
    with pytest.raises(ConfigurationError) as caught:
        ParallelFormatConfig(mirrored=True, operand_padding="longest")
    assert str(caught.value) == (
        "format.mirrored writes operands without leading zeros, got format.operand_padding longest. "
        "Try --format.operand_padding none."
    )


def test_no_end_token_does_not_go_with_random_spaces() -> None:
    with pytest.raises(ConfigurationError) as caught:
        PlainFormatConfig(
            end="none", operand_padding="fixed", answer_padding="fixed", spaces="random"
        )
    assert str(caught.value) == (
        "format.end none needs lines of one length, got format.spaces random. "
        "Try --format.end token."
    )


def test_a_complement_needs_a_padded_answer() -> None:
    with pytest.raises(ConfigurationError) as caught:
        PlainFormatConfig(negative="complement")
    assert str(caught.value) == (
        "format.negative complement needs a fixed number of digits, got "
        "format.answer_padding none. Try --format.answer_padding longest."
    )


@pytest.mark.parametrize("padding", ["longest", "fixed"])
def test_a_complement_goes_with_either_padding(padding: str) -> None:
    assert PlainFormatConfig(negative="complement", answer_padding=padding).negative == "complement"


@pytest.mark.parametrize("width", [-1, 0, 10])
def test_a_carry_beyond_two_characters_is_refused(width: int) -> None:
    with pytest.raises(ConfigurationError) as caught:
        CarryTraceFormatConfig(operand_width=width)
    assert str(caught.value) == (
        f"format.operand_width must be 1 to 9, got {width}. Try --format.operand_width 3."
    )


def test_names_stand_for_different_formats() -> None:
    assert len(set(FORMATS.values())) == len(FORMATS)
    assert {format.kind for format in FORMATS.values()} == {
        "plain", "carry-trace", "running-sums", "long-division", "non-restoring-division",
        "partial-products", "long-multiplication", "worked", "labels", "insertion-sort", "parallel",
        "residues", "text", "columns", "column-trace-digits", "calculator",
    }  # fmt: skip


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_knows_its_vocabulary_and_its_end(name: str) -> None:
    config = FORMATS[name]
    tasks = [*TASKS.values(), column_task("test-add")]
    format = config.build(next(task for task in tasks if config.obstacle(task) is None))
    tokens = format.vocabulary.tokens
    assert ("<end>" in tokens) == (format.end_id is not None)
    assert format.end_id is None or tokens[format.end_id] == "<end>"
    always = issubclass(config.task_class, OwnTaskConfig)
    if config.kind != "calculator":  # its start tokens name the notation
        assert ("<start>" in tokens) == getattr(config, "start_token", always)
    assert len(set(tokens)) == len(tokens)


def test_a_vocabulary_holds_the_operators_of_the_task_only() -> None:
    format = PlainFormatConfig().build(ArithmeticConfig(operations=("*", "%")))
    assert format.vocabulary.tokens == (*"0123456789", "*", "%", "=", "<end>", "<start>")
