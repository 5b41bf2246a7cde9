"""Tests of whole lines: those of published notations, and those that can be checked by hand."""

import random
import string

import pytest
import torch
from written_lines import Pair, ids_of, texts

from abacist.errors import ProblemError
from abacist.formats.annotated import ANCHOR, EVERYWHERE, NO_PLACE, Field
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
)
from abacist.tasks.config import (
    TASKS,
    ArithmeticConfig,
    ModularAdditionConfig,
    SortingConfig,
)

OPERATIONS = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
}


def plain(task: ArithmeticConfig, **settings: object) -> Pair:
    return Pair("plain", task, PlainFormatConfig(**settings))


def of(*operations: str, **settings: object) -> ArithmeticConfig:
    return ArithmeticConfig(operations=operations, **settings)


# Plain -----------------------------------------------------------------------------------------

ADD, SUBTRACT = of("+"), of("-")
USUAL = {"operand_order": "usual", "answer_order": "usual"}


@pytest.mark.parametrize(
    ("task", "format", "typed", "line"),
    [
        (ADD, "reversed", "12+34", "<start>21+43=64<end>"),
        (ADD, "usual", "12+34", "<start>12+34=46<end>"),
        (SUBTRACT, "reversed", "12-34", "<start>21-43=-22<end>"),
        (SUBTRACT, "usual", "12-135", "<start>12-135=-123<end>"),
        (SUBTRACT, "complement", "12-34", "<start>21-43=87-<end>"),
        (SUBTRACT, "complement", "34-12", "<start>43-21=22<end>"),
        (SUBTRACT, "complement", "0-1", "<start>0-1=9-<end>"),
        (SUBTRACT, "complement", "0-100", "<start>0-001=009-<end>"),
        (of("-", "+"), "complement", "12-34", "<start>21-43=879-<end>"),
        (of("+", max_digits=3), "zero-padded", "654+114", "654+114=8670<end>"),
        (of("+", max_digits=3), "zero-padded", "1+2", "001+002=3000<end>"),
        (of("*", max_digits=3), "zero-padded", "12*34", "012*034=804000<end>"),
        (of("%", max_digits=3), "zero-padded", "12%34", "012%034=210<end>"),
        (of("-", max_digits=2), "zero-padded", "1-2", "01-02=-10<end>"),
        (ADD, "coupled", "653+49", "653+049=2070<end>"),
        (ADD, "coupled", "5+5", "5+5=01<end>"),
        (of("+", min_operands=3, max_operands=3), "coupled", "9+99+9", "09+99+09=711<end>"),
        (of("+", max_operands=11), "coupled", "9+9", "9+9=810<end>"),
        (ADD, "spaced", "1234+5678", "1234 + 5678 =6912<end>"),
        (TASKS["add-many"], "spaced", "1+2+3", "1 + 2 + 3 =6<end>"),
        (of("//"), "spaced", "100//8", "100 // 8 =12<end>"),
        (TASKS["add-modulo"], "reversed", "95+30", "<start>59+03=21<end>"),
        (TASKS["add-modulo"], "zero-padded", "5+30", "005+030=530<end>"),
        (TASKS["add-modulo"], "coupled", "5+30", "05+30=530<end>"),
    ],
)
def test_a_named_plain_format_writes(
    task: ArithmeticConfig, format: str, typed: str, line: str
) -> None:
    assert Pair(format, task, FORMATS[format]).typed(typed) == [line]


@pytest.mark.parametrize(
    ("settings", "typed", "line"),
    [
        ({"negative": "sign-last"}, "12-34", "<start>21-43=22-<end>"),
        ({"negative": "sign-last", **USUAL}, "12-135", "<start>12-135=123-<end>"),
        ({"negative": "complement", "answer_padding": "longest", **USUAL}, "5-12",
         "<start>5-12=93-<end>"),
        ({"operand_padding": "longest"}, "1-123", "<start>100-321=-221<end>"),
        ({"answer_padding": "longest"}, "123-122", "<start>321-221=100<end>"),
        ({"answer_padding": "fixed"}, "5-7", "<start>5-7=-20000<end>"),
        ({"answer_padding": "fixed", "answer_order": "usual"}, "5-7", "<start>5-7=-00002<end>"),
        ({"start_token": False}, "12-34", "21-43=-22<end>"),
        ({"spaces": "thousands"}, "1-12345", "<start>1 - 543 21=-44321<end>"),
        ({"spaces": "around", **USUAL}, "1-2", "<start>1 - 2 =-1<end>"),
    ],
)  # fmt: skip
def test_each_plain_setting_does_what_it_says(
    settings: dict[str, object], typed: str, line: str
) -> None:
    assert plain(of("-", max_digits=5), **settings).typed(typed) == [line]


@pytest.mark.parametrize(
    ("typed", "line"),
    [
        ("1234+5678", "1 234 + 5 678=6912<end>"),
        ("123+1000000", "123 + 1 000 000=1000123<end>"),
        ("1+999", "1 + 999=1000<end>"),
        ("12+34+5678", "12 + 34 + 5 678=5724<end>"),
    ],
)
def test_thousands_are_set_apart_by_spaces(typed: str, line: str) -> None:
    pair = plain(TASKS["add-many"], start_token=False, spaces="thousands", **USUAL)
    assert pair.typed(typed) == [line]


def test_zeros_before_a_number_are_digits_of_its_thousands() -> None:
    pair = plain(of("+", max_digits=4), spaces="thousands", operand_padding="fixed", **USUAL)
    assert pair.typed("1+23") == ["<start>0 001 + 0 023=24<end>"]


def test_an_operand_beyond_fixed_padding_is_refused_with_both_lengths() -> None:
    pair = Pair("zero-padded", of("+", max_digits=3), FORMATS["zero-padded"])
    with pytest.raises(ProblemError, match=r"an operand has 4 digits and this format pads to 3\."):
        pair.typed("1234+1")


def test_random_spaces_are_the_unspaced_line_with_gaps() -> None:
    pair = Pair("random-spaces", of("+"), FORMATS["random-spaces"])
    spaced = texts(pair.format, pair.lines)
    bare = plain(of("+"), start_token=False, **USUAL)
    assert [line.replace(" ", "") for line in spaced] == texts(
        bare.format, bare.write(pair.problems)
    )
    assert not any("  " in line or " <" in line or line.startswith(" ") for line in spaced)
    assert not any(" " in line.partition("=")[2] for line in spaced)


def test_random_spaces_are_a_function_of_the_generator() -> None:
    pair = Pair("random-spaces", of("+"), FORMATS["random-spaces"])
    answer = pair.task.answer(pair.problems)

    def write(seed: int) -> list[str]:
        generator = torch.Generator().manual_seed(seed)
        return texts(pair.format, pair.format.write(pair.problems, answer, generator))

    assert write(1) == write(1)
    assert write(1) != write(2)
    prompts = pair.format.prompt(pair.problems, torch.Generator().manual_seed(1))
    assert texts(pair.format, prompts) == [line[: line.index("=") + 1] for line in write(1)]


def test_random_spaces_differ_between_problems_and_stand_in_half_of_all_gaps() -> None:
    pair = Pair("random-spaces", of("+"), FORMATS["random-spaces"])
    problems = pair.task.parse(["12345+67890"] * 2_000)
    prompts = texts(pair.format, pair.format.prompt(problems))
    assert len(set(prompts)) > 500
    # 5 + 1 + 5 + 1 tokens have 11 gaps.
    assert sum(line.count(" ") for line in prompts) / 22_000 == pytest.approx(0.5, abs=0.02)
    for gap in (f"{a} {b}" for a, b in zip("12345+67890", "2345+67890=", strict=True)):
        assert 800 < sum(gap in line for line in prompts) < 1_200, gap


def test_a_start_token_is_never_followed_by_a_random_space() -> None:
    pair = plain(of("+"), spaces="random")
    assert not any(line.startswith("<start> ") for line in texts(pair.format, pair.lines))


# The carry trace -------------------------------------------------------------------------------

FIVE = Pair("carry-trace", TASKS["five-operations"], CarryTraceFormatConfig())


@pytest.mark.parametrize(
    ("typed", "line"),
    [
        ("123+45", "123+  45=+800600100000000000"),
        ("123-45", "123-  45=+800700000000000000"),
        ("123*45", "123*  45=+501302501500000000"),
        ("5//4", "  5//  4=+100000000000000000"),
        ("5%4", "  5%   4=+100000000000000000"),
        ("0-999", "  0- 999=-900900900000000000"),
        ("999*999", "999* 999=+108017026818909900"),
    ],
)
def test_a_carry_trace_has_28_characters(typed: str, line: str) -> None:
    assert FIVE.typed(typed) == [line]
    assert len(line) == 28


def carry_trace(a: int, operation: str, b: int, width: int = 3) -> str:
    """The notation in plain Python, digit by digit."""
    result = OPERATIONS[operation](a, b)
    line = f"{a:>{width}}{operation:<2}{b:>{width}}={'-' if result < 0 else '+'}"
    digits = f"{abs(result):0{2 * width}}"[::-1]
    first, second = f"{a:0{2 * width}}"[::-1], f"{b:0{2 * width}}"[::-1]
    carry = 0
    for column in range(2 * width):
        if operation == "*":
            pairs = ((first[i], second[column - i]) for i in range(column + 1))
            carry = (carry + sum(int(x) * int(y) for x, y in pairs)) // 10
        line += f"{digits[column]}{carry:02}"
    return line


@pytest.mark.parametrize("operation", OPERATIONS)
def test_carry_traces_are_those_of_plain_python(operation: str) -> None:
    generator = random.Random(0)
    rows = [
        (generator.randrange(10 ** generator.randint(1, 3)), generator.randrange(1, 1_000))
        for _ in range(400)
    ]
    typed = [f"{a}{operation}{b}" for a, b in rows]
    assert FIVE.typed(*typed) == [carry_trace(a, operation, b) for a, b in rows]


def test_wide_carry_traces_are_those_of_plain_python() -> None:
    pair = Pair("", of("*", max_digits=9), CarryTraceFormatConfig(operand_width=9))
    generator = random.Random(1)
    rows = [(generator.randrange(10**9), generator.randrange(10**9)) for _ in range(100)]
    rows += [(999_999_999, 999_999_999)]
    expected = [carry_trace(a, "*", b, 9) for a, b in rows]
    assert pair.typed(*(f"{a}*{b}" for a, b in rows)) == expected


def test_the_vocabulary_of_the_carry_trace_has_17_characters() -> None:
    assert "".join(FIVE.format.vocabulary.tokens) == "0123456789 +-*%/="


def test_places_of_a_carry_trace_are_the_columns_of_the_product() -> None:
    lines = FIVE.write(FIVE.task.parse(["12*345"]))
    columns = [column for column in range(1, 7) for _ in range(3)]
    none = NO_PLACE
    # A space stands in its column, as a zero would.
    operands = [3, 2, 1, none, none, 3, 2, 1]
    assert lines.place.tolist() == [[*operands, ANCHOR, none, *columns]]
    a, b = Field.OPERAND, Field.OPERAND + 1
    fields = [Field.SPACE, a, a, Field.OPERATOR, Field.OPERATOR, b, b, b, Field.EQUALS]
    trace = [Field.ANSWER, Field.SCRATCH, Field.SCRATCH]
    assert lines.field.tolist() == [[*fields, Field.ANSWER, *trace * 6]]


def test_an_operand_wider_than_its_field_is_refused_with_both_widths() -> None:
    with pytest.raises(ProblemError) as caught:
        FIVE.typed("1234+5")
    assert str(caught.value) == (
        "an operand has 4 digits and this format writes at most 3. "
        "Train with --format.operand_width 4."
    )


def test_an_operand_wider_than_any_field_is_not_promised_one() -> None:
    with pytest.raises(ProblemError) as caught:
        FIVE.typed("123456789012+5")
    assert "--format.operand_width 9" not in str(caught.value)


# Long division ---------------------------------------------------------------------------------

DIVIDE = Pair("", of("//", "%"), LongDivisionFormatConfig())


@pytest.mark.parametrize(
    ("typed", "rows"),
    [
        # 7, 4, 1, and -2 is 98; the digit is 2.
        ("7//3", "70:0 40+1 10+2 89-2"),
        ("7%3", "70:0 40+1 10+2 89-2 1"),
        # 6, 3, 0, -3 is 97: 2. Then 00, -3: 0. Then 04, 1, -2: 1.
        ("604//3", "60:0 30+1 00+2 79-2 00:0 79-0 40:0 10+1 89-1"),
        ("604%3", "60:0 30+1 00+2 79-2 00:0 79-0 40:0 10+1 89-1 1"),
        # 12, 0, -12 is 988: 1. Then 000, 988: 0. Then 003, -9 is 991: 0. What is left is 03.
        ("1203//12", "210:0 000+1 889-1 000:0 889-0 300:0 199-0"),
        ("1203%12", "210:0 000+1 889-1 000:0 889-0 300:0 199-0 30"),
        # A divisor longer than the dividend: 5 and -7 is 993.
        ("5//12", "500:0 399-0"),
        ("5%12", "500:0 399-0 50"),
        ("0//1", "00:0 99-0"),
        ("9//1", "90:0 80+1 70+2 60+3 50+4 40+5 30+6 20+7 10+8 00+9 99-9"),
        ("97//8", "90:0 10+1 39-1 71:0 90+1 10+2 39-2"),
    ],
)
def test_a_long_division_by_hand(typed: str, rows: str) -> None:
    assert DIVIDE.typed(typed) == [f"<start>{typed}={rows.replace(' ', '')}<end>"]


def long_division(a: int, operation: str, b: int) -> str:
    """The notation in plain Python, subtraction by subtraction."""
    divisor_length, width = len(str(b)), len(str(b)) + 1

    def row(value: int, marks: str) -> str:
        return f"{value % 10**width:0{width}}"[::-1] + marks

    line, left = f"{a}{operation}{b}=", 0
    leading = min(len(str(a)), divisor_length)
    steps = [str(a)[:leading], *str(a)[leading:]]
    for digits in steps:
        left = left * 10 ** len(digits) + int(digits)
        line, count = line + row(left, ":0"), 0
        while left >= b:
            left, count = left - b, count + 1
            line += row(left, f"+{count}")
        line += row(left - b, f"-{count}")
    return line + (f"{left:0{divisor_length}}"[::-1] if operation == "%" else "")


@pytest.mark.parametrize("operation", ["//", "%"])
def test_long_divisions_are_those_of_plain_python(operation: str) -> None:
    generator = random.Random(0)
    rows = [
        (
            generator.randrange(10 ** generator.randint(1, 9)),
            generator.randrange(1, 10 ** generator.randint(1, 6)),
        )
        for _ in range(400)
    ]
    expected = [f"<start>{long_division(a, operation, b)}<end>" for a, b in rows]
    assert DIVIDE.typed(*(f"{a}{operation}{b}" for a, b in rows)) == expected


def test_divisions_and_remainders_stand_in_one_batch() -> None:
    rows = [(7, "%", 3), (123_456, "//", 78), (5, "//", 12_345), (10**9, "%", 99), (0, "%", 7)]
    expected = [f"<start>{long_division(*row)}<end>" for row in rows]
    assert DIVIDE.typed(*(f"{a}{operation}{b}" for a, operation, b in rows)) == expected


def test_the_longest_long_division_is_as_long_as_its_target_length() -> None:
    problems = DIVIDE.task.parse(["9999%1", "99999%10", "5%10"])
    targets = DIVIDE.write(problems).target.sum(dim=1).tolist()
    longest = DIVIDE.format.target_lengths(problems).tolist()
    # 9s everywhere are as many rows as can be; those of 99999%10 are, too.
    assert targets[:2] == longest[:2]
    assert targets[2] < longest[2]


def test_digits_of_a_division_stand_in_column_row_and_step() -> None:
    lines = DIVIDE.write(DIVIDE.task.parse(["604%31"]))
    lines = lines[:, : int(lines.lengths[0])]
    tokens = [DIVIDE.format.vocabulary.tokens[i] for i in lines.ids[0].tolist()]
    every, start = EVERYWHERE, "<start>"
    prompt = [
        # token, place, row, step, field: the leading digits of step 1, then the digits brought down
        (start, every, every, every, Field.START),
        ("6", 2, every, 1, Field.OPERAND),
        ("0", 1, every, 1, Field.OPERAND),
        ("4", 1, every, 2, Field.OPERAND),
        ("%", every, every, every, Field.OPERATOR),
        ("3", 2, every, every, Field.OPERAND + 1),
        ("1", 1, every, every, Field.OPERAND + 1),
        ("=", ANCHOR, ANCHOR, ANCHOR, Field.EQUALS),
    ]
    # 60, 29, -2 is 998: 1. Then 294, 263 … 15 after nine times, -16 is 984: 9.
    rows = ["060:0", "920+1", "899-1", "492:0", "362+1", "232+2", "102+3", "071+4", "931+5"]
    rows += ["801+6", "770+7", "640+8", "510+9", "489-9"]
    work = [
        (token, place, number, 1 if number <= 3 else 2, Field.SCRATCH)
        for number, row in enumerate(rows, start=1)
        for token, place in zip(row, [1, 2, 3, every, every], strict=True)
    ]
    tail = [(token, place, 15, 3, Field.ANSWER) for token, place in (("5", 1), ("1", 2))]
    tail += [("<end>", 3, 15, 3, Field.ANSWER)]
    expected = prompt + work + tail
    names = ("place", "row", "step", "field")
    columns = [getattr(lines, name)[0].tolist() for name in names]
    assert list(zip(tokens, *columns, strict=True)) == expected


def test_digits_of_a_quotient_are_the_counts_after_a_minus() -> None:
    lines = DIVIDE.write(DIVIDE.task.parse(["604//3"]))
    is_answer = lines.field[0] == Field.ANSWER
    tokens = [DIVIDE.format.vocabulary.tokens[i] for i in lines.ids[0][is_answer].tolist()]
    assert tokens == ["2", "0", "1", "<end>"]


# Running sums ----------------------------------------------------------------------------------

MANY = Pair("", TASKS["add-many"], RunningSumsFormatConfig())


@pytest.mark.parametrize(
    ("typed", "line"),
    [
        ("12+34+56", "21+43+65=64;201"),
        ("12+34", "21+43=64"),
        ("0+0+0", "0+0+0=0;0"),
        ("99+1+0+7", "99+1+0+7=001;001;701"),
    ],
)
def test_running_sums_by_hand(typed: str, line: str) -> None:
    assert MANY.typed(typed) == [f"<start>{line}<end>"]


def running_sums(operands: list[int]) -> str:
    """The notation in plain Python."""
    sums = [sum(operands[: count + 1]) for count in range(1, len(operands))]
    return "+".join(str(a)[::-1] for a in operands) + "=" + ";".join(str(s)[::-1] for s in sums)


def test_running_sums_are_those_of_plain_python() -> None:
    generator = random.Random(0)
    rows = [
        [
            generator.randrange(10 ** generator.randint(1, 30))
            for _ in range(generator.randint(2, 10))
        ]
        for _ in range(500)
    ]
    expected = [f"<start>{running_sums(row)}<end>" for row in rows]
    assert MANY.typed(*("+".join(map(str, row)) for row in rows)) == expected


def test_numbers_of_running_sums_stand_under_each_other() -> None:
    lines = MANY.write(MANY.task.parse(["12+34+56"]))
    tokens = [MANY.format.vocabulary.tokens[i] for i in lines.ids[0].tolist()]
    names = {field.value: field.name for field in Field} | {9: "b", 10: "c"}
    fields = [names[field] for field in lines.field[0].tolist()]
    columns = list(zip(tokens, lines.row[0].tolist(), lines.place[0].tolist(), fields, strict=True))
    everywhere = EVERYWHERE
    assert columns == [
        ("<start>", everywhere, everywhere, "START"),
        ("2", 1, 1, "OPERAND"),
        ("1", 1, 2, "OPERAND"),
        ("+", 1, everywhere, "OPERATOR"),
        ("4", 2, 1, "b"),
        ("3", 2, 2, "b"),
        ("+", 3, everywhere, "OPERATOR"),
        ("6", 4, 1, "c"),
        ("5", 4, 2, "c"),
        ("=", 3, 0, "EQUALS"),
        ("6", 3, 1, "SCRATCH"),
        ("4", 3, 2, "SCRATCH"),
        (";", 5, 0, "SCRATCH"),
        ("2", 5, 1, "ANSWER"),
        ("0", 5, 2, "ANSWER"),
        ("1", 5, 3, "ANSWER"),
        ("<end>", 5, 4, "ANSWER"),
    ]


def test_numbers_of_the_plain_format_stand_under_each_other() -> None:
    pair = Pair("", TASKS["subtract"], FORMATS["complement"])
    lines = pair.write(pair.task.parse(["45-123"]))
    tokens = [pair.format.vocabulary.tokens[i] for i in lines.ids[0].tolist()]
    rows = ["*" if row == EVERYWHERE else str(row) for row in lines.row[0].tolist()]
    assert " ".join(tokens) == "<start> 5 4 - 3 2 1 = 2 2 9 - <end>"
    assert " ".join(rows) == "* 1 1 -1 2 2 2 3 3 3 3 3 3"


# Partial products ------------------------------------------------------------------------------

MULTIPLY = Pair("", TASKS["multiply"], PartialProductsFormatConfig())


@pytest.mark.parametrize(
    ("typed", "line"),
    [
        # 23 × 5 = 115, so 5 is final; 23 × 4 + 11 = 103.
        ("23*45", "32*54=511,301"),
        ("7*8", "7*8=65"),
        ("0*0", "0*0=00"),
        ("7*100", "7*001=00,00,70"),
        ("100*7", "001*7=0070"),
        # 99 × 9 = 891; 99 × 9 + 89 = 980.
        ("99*99", "99*99=198,089"),
    ],
)
def test_partial_products_by_hand(typed: str, line: str) -> None:
    assert MULTIPLY.typed(typed) == [f"<start>{line}<end>"]


def partial_products(a: int, b: int) -> str:
    """The notation in plain Python, row by row."""
    width, left, rows = len(str(a)) + 1, 0, []
    for digit in str(b)[::-1]:
        left += a * int(digit)
        rows.append(f"{left:0{width}}"[::-1])
        left //= 10
    return f"{str(a)[::-1]}*{str(b)[::-1]}={','.join(rows)}"


def test_partial_products_are_those_of_plain_python() -> None:
    generator = random.Random(0)
    rows = [
        (
            generator.randrange(10 ** generator.randint(1, 7)),
            generator.randrange(10 ** generator.randint(1, 7)),
        )
        for _ in range(500)
    ]
    expected = [f"<start>{partial_products(a, b)}<end>" for a, b in rows]
    assert MULTIPLY.typed(*(f"{a}*{b}" for a, b in rows)) == expected


def test_partial_products_of_long_numbers_are_those_of_plain_python() -> None:
    rows = [(7**100, 3**130), (10**60 - 1, 10**70 - 1), (10**60, 3)]
    expected = [f"<start>{partial_products(a, b)}<end>" for a, b in rows]
    assert MULTIPLY.typed(*(f"{a}*{b}" for a, b in rows)) == expected


def test_digits_of_partial_products_stand_in_column_and_row() -> None:
    lines = MULTIPLY.write(MULTIPLY.task.parse(["23*45"]))
    tokens = [MULTIPLY.format.vocabulary.tokens[i] for i in lines.ids[0].tolist()]
    columns = [getattr(lines, name)[0].tolist() for name in ("place", "row", "field")]
    every, none, scratch, answer = EVERYWHERE, NO_PLACE, Field.SCRATCH, Field.ANSWER
    assert list(zip(tokens, *columns, strict=True)) == [
        ("<start>", every, every, Field.START),
        ("3", 1, every, Field.OPERAND),
        ("2", 2, every, Field.OPERAND),
        ("*", none, none, Field.OPERATOR),
        ("5", every, 1, Field.OPERAND + 1),
        ("4", every, 2, Field.OPERAND + 1),
        ("=", 0, 1, Field.EQUALS),
        ("5", 1, 1, answer), ("1", 2, 1, scratch), ("1", 3, 1, scratch),
        (",", 0, 2, scratch),
        ("3", 1, 2, answer), ("0", 2, 2, answer), ("1", 3, 2, answer),
        ("<end>", 0, 3, answer),
    ]  # fmt: skip


# Long multiplication ---------------------------------------------------------------------------

CELLS = Pair("", TASKS["multiply"], LongMultiplicationFormatConfig())


@pytest.mark.parametrize(
    ("typed", "rows"),
    [
        # 3 × 5 = 15; 1 + 2 × 5 = 11: 115. Then 3 × 4 + 1 = 13; 1 + 2 × 4 + 1 = 10: 103.
        ("23*45", "⁰[15]5¹[10]1¹1 ⁰[12]3¹[8]0¹1"),
        ("7*8", "⁰[56]6⁵5"),
        ("0*0", "⁰[0]0⁰0"),
        ("7*100", "⁰[0]0⁰0 ⁰[0]0⁰0 ⁰[7]7⁰0"),
        # 81; 8 + 81 = 89: 891. Then 81 + 9 = 90; 9 + 81 + 8 = 98: 980.
        ("99*99", "⁰[81]1⁸[81]9⁸8 ⁰[81]0⁹[81]8⁹9"),
    ],
)
def test_a_long_multiplication_by_hand(typed: str, rows: str) -> None:
    prompt = "*".join(number[::-1] for number in typed.split("*"))
    assert CELLS.typed(typed) == [f"<start>{prompt}={rows.replace(' ', '')}<end>"]


def long_multiplication(a: int, b: int) -> str:
    """The notation in plain Python, cell by cell."""
    line, above = f"{str(a)[::-1]}*{str(b)[::-1]}=", [0] * (len(str(a)) + 2)
    for multiplier in map(int, str(b)[::-1]):
        carry, written = 0, []
        for column, digit in enumerate(map(int, str(a)[::-1])):
            line += "⁰¹²³⁴⁵⁶⁷⁸⁹"[carry]
            carry, rest = divmod(carry + digit * multiplier + above[column + 1], 10)
            line += f"[{digit * multiplier}]{rest}"
            written.append(rest)
        line += f"{'⁰¹²³⁴⁵⁶⁷⁸⁹'[carry]}{carry}"
        above = [*written, carry, 0]
    return line


def test_long_multiplications_are_those_of_plain_python() -> None:
    generator = random.Random(0)
    rows = [
        (
            generator.randrange(10 ** generator.randint(1, 7)),
            generator.randrange(10 ** generator.randint(1, 7)),
        )
        for _ in range(300)
    ]
    rows += [(7**50, 3**70), (10**40 - 1, 10**30 - 1), (10**60, 3)]
    expected = [f"<start>{long_multiplication(a, b)}<end>" for a, b in rows]
    assert CELLS.typed(*(f"{a}*{b}" for a, b in rows)) == expected


def test_cells_of_a_multiplication_stand_in_column_and_row() -> None:
    lines = CELLS.write(CELLS.task.parse(["23*45"]))
    tokens = [CELLS.format.vocabulary.tokens[i] for i in lines.ids[0].tolist()]
    columns = [getattr(lines, name)[0].tolist() for name in ("place", "row", "field")]
    every, none, scratch, answer = EVERYWHERE, NO_PLACE, Field.SCRATCH, Field.ANSWER
    assert list(zip(tokens, *columns, strict=True)) == [
        ("<start>", every, every, Field.START),
        ("3", 2, every, Field.OPERAND),
        ("2", 4, every, Field.OPERAND),
        ("*", none, none, Field.OPERATOR),
        ("5", every, 1, Field.OPERAND + 1),
        ("4", every, 3, Field.OPERAND + 1),
        ("=", 0, 0, Field.EQUALS),
        ("⁰", 2, 2, scratch), ("[15]", 2, 2, scratch), ("5", 1, 3, answer),
        ("¹", 4, 2, scratch), ("[10]", 4, 2, scratch), ("1", 3, 3, scratch),
        ("¹", 6, 2, scratch), ("1", 5, 3, scratch),
        ("⁰", 2, 4, scratch), ("[12]", 2, 4, scratch), ("3", 1, 5, answer),
        ("¹", 4, 4, scratch), ("[8]", 4, 4, scratch), ("0", 3, 5, answer),
        ("¹", 6, 4, scratch), ("1", 5, 5, answer),
        ("<end>", 2, 6, answer),
    ]  # fmt: skip


# Non-restoring division ------------------------------------------------------------------------

SIGNED = Pair("", of("//", "%"), NonRestoringDivisionFormatConfig())


@pytest.mark.parametrize(
    ("typed", "rows"),
    [
        # 4, 1, -2 is 98: 2; and back to 1.
        ("7//3", "-0:40 -1:10 -2:8'9' +9:1'0'"),
        # 9 - 8 = 1, -7 is 93: 1. Then -63 + 8 = -55 is 45, … -7, 1: 2.
        ("97//8", "-0:10 -1:3'9' +9:5'4 +8:3'5 +7:1'6 +6:96 +5:7'7 +4:5'8 +3:3'9 +2:1'0'"),
        # A divisor longer than the dividend: 5 - 12 = -7 is 993, and back to 5.
        ("5%12", "-0:39'9' +9:50'0'"),
        ("0//1", "-0:9'9' +9:0'0'"),
        # 10 - 10 = 0, -10 is 990: 1. Then -100 + 10 = -90 is 910, … 0: 0.
        ("100//10", "-0:000 -1:09'9' +9:019 +8:029 +7:039 +6:049 +5:059 +4:069 +3:079 +2:089 "
                    "+1:099 +0:00'0'"),
    ],
)  # fmt: skip
def test_a_non_restoring_division_by_hand(typed: str, rows: str) -> None:
    assert SIGNED.typed(typed) == [f"<start>{typed}={rows.replace(' ', '')}-0:<end>"]


def non_restoring_division(a: int, operation: str, b: int) -> str:
    """The notation in plain Python, row by row."""
    width = len(str(b)) + 1
    line, num_steps = f"{a}{operation}{b}=", max(1, len(str(a)) - len(str(b)) + 1)
    left, rest, above = 0, str(a), str(a)[: len(str(a)) - num_steps]
    left, rest = int(above or "0"), rest[len(above) :]

    def row(sign: int, count: int) -> str:
        nonlocal left
        text, flow, value = f"{'-+'[sign > 0]}{count}:", 0, left % 10**width
        for column in range(width):
            digit, other = value // 10**column % 10, b // 10**column % 10
            total = digit + sign * (other + flow)
            flow = int(not 0 <= total <= 9)
            text += str(total % 10) + "'" * flow
        left += sign * b
        return text

    for step, digit in enumerate(rest):
        left, sign = 10 * left + int(digit), 1 if step % 2 else -1
        count = 0 if sign < 0 else 9
        while True:
            line += row(sign, count)
            count -= sign
            if (left < 0) == (sign < 0):
                break
    return line + (row(1, 9) if left < 0 else "") + "-0:"


@pytest.mark.parametrize("operation", ["//", "%"])
def test_non_restoring_divisions_are_those_of_plain_python(operation: str) -> None:
    generator = random.Random(0)
    rows = [
        (
            generator.randrange(10 ** generator.randint(1, 9)),
            generator.randrange(1, 10 ** generator.randint(1, 6)),
        )
        for _ in range(300)
    ]
    rows += [(7**40, 3**30), (7**40 - 1, 7**20), (10**30 - 1, 1), (3, 10**20)]
    expected = [f"<start>{non_restoring_division(a, operation, b)}<end>" for a, b in rows]
    assert SIGNED.typed(*(f"{a}{operation}{b}" for a, b in rows)) == expected


def test_digits_of_a_non_restoring_division_stand_in_column_row_and_step() -> None:
    lines = SIGNED.write(SIGNED.task.parse(["604%31"]))
    tokens = [SIGNED.format.vocabulary.tokens[i] for i in lines.ids[0].tolist()]
    names = ("place", "row", "step")
    columns = [getattr(lines, name)[0].tolist() for name in names]
    every = EVERYWHERE
    coordinates = list(zip(tokens, *columns, strict=True))
    assert coordinates[:18] == [
        ("<start>", every, every, every),
        # One leading digit is row 0; two are brought down, in steps of their columns.
        ("6", 3, 0, 6), ("0", 0, every, 4), ("4", 0, every, 2),
        ("%", 6, every, every), ("3", 4, every, every), ("1", 2, every, every),
        ("=", ANCHOR, ANCHOR, ANCHOR),
        ("-0", every, 1, every), (":", 0, 2, 3), ("9'", 3, 2, 4), ("2", 5, 2, 6), ("0", 7, 2, 8),
        ("-1", every, 3, every), (":", 1, 4, 3), ("8", 3, 4, 4), ("9'", 5, 4, 6), ("9'", 7, 4, 8),
    ]  # fmt: skip
    # The divisor went in once: the next row has moved by one.
    assert coordinates[18:23] == [
        ("+9", every, 5, every), (":", 0, 6, 1), ("5", 3, 6, 2), ("1'", 5, 6, 4), ("0'", 7, 6, 6),
    ]  # fmt: skip
    # In the end no digit is left to be brought down.
    assert coordinates[-3:] == [("-0", every, 7, every), (":", 1, 8, 1), ("<end>", 3, 8, 2)]


# Sorting ---------------------------------------------------------------------------------------


def test_twelve_numbers_are_sorted() -> None:
    pair = Pair("", SortingConfig(max_numbers=12), LabelsFormatConfig())
    problem = "a:821,b:51872,c:9,d:72,e:10414,f:98082,g:41,h:984,i:30,j:2,k:9898,l:13"
    assert pair.typed(problem) == [f"{problem}=jcligdahkebf<end>"]
    assert pair.read_texts(f"{problem}=jcligdahkebf<end>") == ["jcligdahkebf"]


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({}, "a:821,b:9,c:72=bca<end>"),
        ({"start_token": True}, "<start>a:821,b:9,c:72=bca<end>"),
        ({"order": "reversed"}, "a:128,b:9,c:27=bca<end>"),
        ({"padding": "longest"}, "a:821,b:009,c:072=bca<end>"),
        ({"padding": "fixed"}, "a:00821,b:00009,c:00072=bca<end>"),
        ({"padding": "longest", "order": "reversed"}, "a:128,b:900,c:270=bca<end>"),
    ],
    ids=str,
)
def test_each_setting_of_labels_does_what_it_says(settings: dict[str, object], line: str) -> None:
    pair = Pair("", SortingConfig(max_digits=5), LabelsFormatConfig(**settings))
    assert pair.typed("a:821,b:9,c:72", "1,1,1,1,12345")[0] == line


def test_a_number_beyond_fixed_padding_is_refused_with_both_lengths() -> None:
    pair = Pair("", SortingConfig(max_digits=5), LabelsFormatConfig(padding="fixed"))
    with pytest.raises(ProblemError, match=r"a number has 6 digits and this format pads to 5\."):
        pair.typed("123456,1")


def test_all_tokens_of_the_kth_number_stand_in_row_k() -> None:
    pair = Pair("", SortingConfig(), LabelsFormatConfig(start_token=True))
    lines = pair.write(pair.task.parse(["a:821,b:9"]))
    tokens = [pair.format.vocabulary.tokens[i] for i in lines.ids[0].tolist()]
    columns = [getattr(lines, name)[0].tolist() for name in ("place", "row", "field")]
    every, none, label, answer = EVERYWHERE, NO_PLACE, Field.LABEL, Field.ANSWER
    assert list(zip(tokens, *columns, strict=True)) == [
        ("<start>", every, every, Field.START),
        ("a", 0, 1, label), (":", 0, 1, label),
        ("8", 3, 1, Field.OPERAND), ("2", 2, 1, Field.OPERAND), ("1", 1, 1, Field.OPERAND),
        (",", none, 1, label),
        ("b", 0, 2, label), (":", 0, 2, label), ("9", 1, 2, Field.OPERAND + 1),
        ("=", ANCHOR, ANCHOR, Field.EQUALS),
        ("b", none, 1, answer), ("a", none, 2, answer), ("<end>", none, 3, answer),
    ]  # fmt: skip


INSERTION = Pair("", SortingConfig(min_numbers=1, max_numbers=52), InsertionSortFormatConfig())


@pytest.mark.parametrize(
    ("typed", "lists"),
    [
        ("a:821,b:9,c:35", "a ,8>ba ,0<b8>ca"),
        ("a:5", "a"),
        # Equal numbers keep their order: two comparisons of all places, and then the label.
        ("a:35,b:35,c:34", "a ,3~5~ab ,3~5>cab"),
        # What is inserted last of all is compared with the whole list.
        ("a:1,b:2,c:3", "a ,1<ab ,1<a2<bc"),
        # 10 and 9: the longer number is the larger.
        ("a:9,b:10,c:0", "a ,0<ab ,9>cab"),
    ],
)
def test_a_sorting_by_insertion_by_hand(typed: str, lists: str) -> None:
    assert INSERTION.typed(typed) == [f"<start>{typed}={lists.replace(' ', '')}<end>"]


def insertion_sort(numbers: list[int]) -> str:
    """The notation in plain Python, list by list."""
    letters = string.ascii_letters
    line = ",".join(f"{label}:{n}" for label, n in zip(letters, numbers, strict=False)) + "="
    order: list[int] = []
    for new, number in enumerate(numbers):
        line += "," * (new > 0)
        at = 0
        while at < len(order):
            old = numbers[order[at]]
            width = max(len(str(old)), len(str(number)))
            for digit, new_digit in zip(f"{old:0{width}}", f"{number:0{width}}", strict=True):
                line += digit + ("~" if digit == new_digit else "<" if digit < new_digit else ">")
                if digit != new_digit:
                    break
            if old > number:
                break
            line += letters[order[at]]
            at += 1
        order.insert(at, new)
        line += "".join(letters[k] for k in order[at:])
    return line


def test_sortings_by_insertion_are_those_of_plain_python() -> None:
    generator = random.Random(0)
    rows = [
        [
            generator.randrange(10 ** generator.randint(1, 4))
            for _ in range(generator.randint(1, 12))
        ]
        for _ in range(200)
    ]
    rows += [[5] * 52, list(range(52)), list(range(52, 0, -1)), [10**40, 10**40 + 1, 10**39]]
    expected = [f"<start>{insertion_sort(row)}<end>" for row in rows]
    assert INSERTION.typed(*(",".join(map(str, row)) for row in rows)) == expected


def test_tokens_of_a_sorting_by_insertion_point_to_what_comes_next() -> None:
    lines = INSERTION.write(INSERTION.task.parse(["a:21,b:23,c:5"]))
    tokens = [INSERTION.format.vocabulary.tokens[i] for i in lines.ids[0].tolist()]
    columns = [getattr(lines, name)[0].tolist() for name in ("place", "row", "step", "field")]
    every, none, label, scratch, answer = (
        EVERYWHERE, NO_PLACE, Field.LABEL, Field.SCRATCH, Field.ANSWER
    )  # fmt: skip
    assert list(zip(tokens, *columns, strict=True)) == [
        ("<start>", every, every, every, Field.START),
        ("a", 0, 2, every, label), (":", none, 2, every, label),
        ("2", 2, 2, every, Field.OPERAND), ("1", 1, 2, every, Field.OPERAND),
        (",", 0, 3, every, label),
        ("b", 0, 4, every, label), (":", none, 4, every, label),
        ("2", 2, 4, every, Field.OPERAND + 1), ("3", 1, 4, every, Field.OPERAND + 1),
        (",", 0, 5, every, label),
        ("c", 0, 6, every, label), (":", none, 6, every, label),
        ("5", 1, 6, every, Field.OPERAND + 2),
        ("=", ANCHOR, 7, every, Field.EQUALS),
        # The list of a is complete: to the comma before b, and then to the tens of a.
        ("a", 0, 3, 1, scratch), (",", 2, 2, 2, scratch),
        # Digits point to b, `~` to the units of a, `<` to the label a, and a to b.
        ("2", 2, 4, 3, scratch), ("~", 1, 2, 4, scratch),
        ("1", 1, 4, 5, scratch), ("<", 0, 2, 6, scratch),
        ("a", 0, 4, 7, scratch), ("b", 0, 5, 8, scratch),
        # c has no tens. It is inserted before a, and then b follows; `=` comes after c.
        (",", 2, 2, 9, scratch), ("2", 2, 6, 10, scratch), (">", 0, 6, 11, scratch),
        ("c", 0, 2, 12, answer), ("a", 0, 4, 13, answer), ("b", 0, 7, 14, answer),
        ("<end>", none, none, 15, answer),
    ]  # fmt: skip


# Encoders --------------------------------------------------------------------------------------


def test_a_mirrored_line_is_the_prompt_reversed_and_padded() -> None:
    pair = Pair("", of("+", max_digits=20), ParallelFormatConfig(mirrored=True))
    a, b = 29458670367, 59799239011929961529
    lines = pair.write(pair.task.parse([f"{a}+{b}"]))
    tokens = [pair.format.vocabulary.tokens[i] for i in lines.ids[0].tolist()]
    assert "".join(tokens) == "=92516992911093299795+76307685492" + "<pad>" * 9
    assert "".join(tokens[:33]) == f"{a}+{b}="[::-1]
    assert len(tokens) == 42
    assert len(pair.format.vocabulary) == 14
    assert set(pair.format.vocabulary.tokens) == {*"0123456789+=", "<pad>", "<end>"}
    labels = pair.format.vocabulary.decode(lines.labels[0][lines.target[0]].tolist())
    assert labels == f"{str(a + b)[::-1]}<end>"
    assert int(lines.target[0].sum()) == len(str(a + b)) + 1
    assert lines.target[0, 0]


def test_a_parallel_line_has_a_slot_for_every_digit_and_the_end() -> None:
    pair = Pair("", of("+"), ParallelFormatConfig())
    lines = pair.write(pair.task.parse(["123+45"]))
    slots = "<slot>" * 5
    assert texts(pair.format, lines) == [f"321+54={slots}"]
    assert pair.format.vocabulary.decode(lines.labels[0][lines.target[0]].tolist()) == "861<end>"
    assert lines.place.tolist() == [[1, 2, 3, NO_PLACE, 1, 2, ANCHOR, 1, 2, 3, 4, 5]]
    assert lines.field[0, 7:].tolist() == [Field.ANSWER] * 5


def test_operands_of_a_parallel_line_can_be_padded_to_one_length() -> None:
    pair = Pair("", of("+"), ParallelFormatConfig(operand_padding="longest"))
    lines = pair.write(pair.task.parse(["123+45", "6+78"]))
    assert texts(pair.format, lines) == [f"321+540={'<slot>' * 5}", f"60+87={'<slot>' * 4}"]
    labels = pair.format.vocabulary.decode(lines.labels[1][lines.target[1]].tolist())
    assert labels == "48<end>"
    assert lines.place[0].tolist() == [1, 2, 3, NO_PLACE, 1, 2, 3, ANCHOR, 1, 2, 3, 4, 5]


def test_slots_of_products_hold_the_digits_of_both() -> None:
    pair = Pair("", of("*"), ParallelFormatConfig())
    lines = pair.write(pair.task.parse(["99*99"]))
    assert texts(pair.format, lines) == [f"99*99={'<slot>' * 5}"]
    assert pair.format.vocabulary.decode(lines.labels[0][lines.target[0]].tolist()) == "1089<end>"


def test_a_mirrored_line_of_longer_operands_ends_with_them() -> None:
    pair = Pair("", of("+", max_digits=3), ParallelFormatConfig(mirrored=True))
    lines = pair.write(pair.task.parse(["12345+6789", "1+2"]))
    assert texts(pair.format, lines) == ["=9876+54321", "=2+1<pad><pad><pad><pad>"]
    assert lines.lengths.tolist() == [11, 8]
    assert lines.labels[0][:6].tolist() == [4, 3, 1, 9, 1, pair.format.end_id]


# Residues --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("modulus", "typed", "tokens"),
    [
        (113, "95+30", ["95", "+", "30", "=", "12"]),
        (113, "112+1", ["112", "+", "1", "=", "0"]),
        (97, "0+0", ["0", "+", "0", "=", "0"]),
        (2, "1+1", ["1", "+", "1", "=", "0"]),
        (1_000, "999+999", ["999", "+", "999", "=", "998"]),
    ],
)
def test_a_residue_is_one_token(modulus: int, typed: str, tokens: list[str]) -> None:
    pair = Pair("", ModularAdditionConfig(modulus=modulus), ResiduesFormatConfig())
    lines = pair.write(pair.task.parse([typed]))
    assert [pair.format.vocabulary.tokens[i] for i in lines.ids[0].tolist()] == tokens
    assert lines.place.tolist() == [[NO_PLACE, NO_PLACE, NO_PLACE, ANCHOR, NO_PLACE]]
    assert lines.target.tolist() == [[False] * 4 + [True]]
    assert lines.field.tolist() == [
        [Field.OPERAND, Field.OPERATOR, Field.OPERAND + 1, Field.EQUALS, Field.ANSWER]
    ]


def test_the_vocabulary_of_residues_is_they_and_two_symbols() -> None:
    pair = Pair("", ModularAdditionConfig(modulus=7), ResiduesFormatConfig())
    assert pair.format.vocabulary.tokens == (*"0123456", "+", "=")


def test_residues_of_all_pairs_are_pythons() -> None:
    pair = Pair("", ModularAdditionConfig(modulus=113), ResiduesFormatConfig())
    lines = pair.write(pair.task.space().problems(torch.arange(113**2)))
    a, b, residue = lines.ids[:, 0], lines.ids[:, 2], lines.ids[:, 4]
    assert torch.equal((a + b) % 113, residue)
    assert torch.equal(113 * a + b, torch.arange(113**2).int())


# The text of lines in these tests -------------------------------------------------------------


def test_text_becomes_the_tokens_of_its_vocabulary() -> None:
    assert ids_of(DIVIDE.format, "<start>1//2%3").tolist() == [
        [DIVIDE.format.vocabulary.id(token) for token in ("<start>", "1", "//", "2", "%", "3")]
    ]
