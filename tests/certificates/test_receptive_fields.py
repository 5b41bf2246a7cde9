"""The enumeration of what a reach can contain, against problems that are really written out.

Which token belongs to which number is worked out here once more, from whole lines.
"""

from dataclasses import dataclass, replace
from itertools import product

import pytest
import torch
from torch import Tensor

from abacist.certificates import calculation_layout, certificate, column_addition, receptive_fields
from abacist.configuration import override
from abacist.formats.annotated import AnnotatedTokens, Field
from abacist.formats.format import Format
from abacist.formats.running_sums import RunningSumsFormat
from abacist.models.transformer import Transformer
from abacist.recipes import find
from abacist.runs.run import build_model, build_problems
from abacist.tasks.problems import Problems
from abacist.tasks.task import Task


@dataclass
class Enumerated:
    """One way of writing, and everything listed for it."""

    task: Task
    format: Format
    model: Transformer
    layout: calculation_layout.CalculationLayout
    groups: list[list[column_addition.Choices]]

    @staticmethod
    def of(recipe_name: str, settings: dict[str, object]) -> "Enumerated":
        recipe = override(find(recipe_name), {"model.width": 8, "model.mlp_width": 8} | settings)
        task, format = build_problems(recipe)
        model = build_model(recipe)
        layout = calculation_layout.find_layout(task, format, recipe.model)
        return Enumerated(
            task, format, model, layout, column_addition.enumerate_choices(model, layout, 1e9)
        )

    def neighbourhoods(self) -> dict[bytes, Tensor]:
        """Return, for each pattern, its distinct contexts with the right next token."""
        found = {}
        for group in self.groups:
            parts = [
                torch.cat([ids, target.unsqueeze(1)], dim=1)
                for part, _ in column_addition.contexts(group, self.layout.rule)
                for ids, target, _ in [certificate._distinct(part)]
                if len(ids)
            ]
            if parts:
                found[group[0].pattern.key] = torch.cat(parts)
        return found

    def seen_in(self, operands: list[list[str]]) -> dict[bytes, set[tuple[int, ...]]]:
        """What the queries of whole problems see, with the token that follows, by pattern."""
        found: dict[bytes, set[tuple[int, ...]]] = {}
        problems = Problems.from_texts(operands, [self.task.operations[0]] * len(operands))
        lines = self.format.write(problems, self.task.answer(problems))
        # Lines that look alike have the same reaches.
        alike: dict[tuple[object, ...], list[int]] = {}
        for row in range(len(operands)):
            look = (
                *lines.place[row].tolist(),
                *lines.field[row].tolist(),
                *lines.row[row].tolist(),
            )
            alike.setdefault(look, []).append(row)
        for rows in alike.values():
            length = int(lines.lengths[rows[0]])
            line = lines[slice(rows[0], rows[0] + 1), slice(0, length)]
            ids = lines.ids[rows, :length]
            for calculation in self.calculations_in(line):
                visibility = receptive_fields.visibility_in(self.model, line)
                for query in calculation.queries:
                    pattern = receptive_fields.pattern_of(calculation, visibility, query)
                    following = ids[:, query + 1 : query + 2]
                    content = torch.cat([ids[:, pattern.tokens], following], dim=1)
                    found.setdefault(pattern.key, set()).update(map(tuple, content.tolist()))
        return found

    def calculations_in(self, line: AnnotatedTokens) -> list[calculation_layout.Calculation]:
        """Which tokens of a whole line belong to which number of each of its calculations."""
        field, place, row = (t[0].tolist() for t in (line.field, line.place, line.row))
        if not isinstance(self.format, RunningSumsFormat):
            numbers = [
                calculation_layout.RESULT
                if f == Field.ANSWER
                else f - Field.OPERAND
                if f >= Field.OPERAND
                else receptive_fields.SYMBOL
                for f in field
            ]
            return [
                calculation_layout.Calculation(
                    line, [*numbers[:-1], receptive_fields.STRANGER], place, (), 0
                )
            ]
        calculations = []
        last = max(row)
        for own in range(3, last + 1, 2):
            names = {own: calculation_layout.RESULT, own - 1: 1, own - 2: 0}
            numbers, columns = [], []
            for r, p in zip(row, place, strict=True):
                number = (
                    names.get(r, receptive_fields.STRANGER) if p > 0 else receptive_fields.SYMBOL
                )
                numbers.append(number)
                columns.append(0 if (r, p) == (own, 0) else p or -2)
            # A row is followed by its separator, or the end token as the last of its columns.
            if own == last:
                numbers[-1] = receptive_fields.STRANGER
            calculations.append(calculation_layout.Calculation(line, numbers, columns, (), 0))
        return calculations


CASES = {
    "sums": ("add", {}),
    "sums, two layers": ("add", {"model.num_layers": 2}),
    "differences": ("subtract", {}),
    "running sums": ("add-many", {}),
}


@pytest.fixture(scope="module", params=CASES.values(), ids=CASES.keys())
def listed(request: pytest.FixtureRequest) -> Enumerated:
    return Enumerated.of(*request.param)


def numbers_up_to(digits: int) -> list[str]:
    return [str(number) for number in range(10**digits)]


def real_problems(listed: Enumerated) -> list[list[str]]:
    """Every problem of short numbers, and random ones of longer numbers and more operands."""
    chance = torch.Generator().manual_seed(7)

    def random_number() -> str:
        digits = int(torch.randint(1, 8, (1,), generator=chance))
        low = 0 if digits == 1 else 10 ** (digits - 1)
        return str(int(torch.randint(low, 10**digits, (1,), generator=chance)))

    many = isinstance(listed.format, RunningSumsFormat)
    short = [list(pair) for pair in product(numbers_up_to(2), repeat=2)]
    if many:
        short = short[::7] + [list(row) for row in product(numbers_up_to(1), repeat=3)]
    counts = range(2, 7) if many else range(2, 3)
    number = 30 if many else 300
    return short + [[random_number() for _ in range(n)] for n in counts for _ in range(number)]


def test_what_real_problems_show_is_listed_and_they_show_every_pattern(listed: Enumerated) -> None:
    known = {key: set(map(tuple, rows.tolist())) for key, rows in listed.neighbourhoods().items()}
    seen = listed.seen_in(real_problems(listed))
    assert set(seen) == set(known)
    for key, context in seen.items():
        assert context <= known[key]


def test_everything_that_is_listed_is_shown_by_the_problem_made_from_it(listed: Enumerated) -> None:
    """Some of every pattern: completed to a whole problem, it stands in that problem's line."""
    chance = torch.Generator().manual_seed(3)
    for group in listed.groups:
        for part, _ in column_addition.contexts(group, listed.layout.rule):
            for enumeration in part:
                if not len(enumeration.target):
                    continue
                key = enumeration.pattern.key
                for row in torch.randint(len(enumeration.target), (5,), generator=chance).tolist():
                    operands = enumeration.operands(row)
                    content = (*enumeration.ids[row].tolist(), int(enumeration.target[row]))
                    assert content in listed.seen_in([operands]).get(key, set()), operands


def test_one_layer_of_sums_has_the_neighbourhoods_counted_by_hand() -> None:
    listed = Enumerated.of("add", {})
    assert sum(map(len, listed.neighbourhoods().values())) == 24_518


def test_two_layers_of_sums_have_the_neighbourhoods_counted_by_hand() -> None:
    """Two layers of window (0, 1): through b in the next column, a digit also sees a two columns on."""
    listed = Enumerated.of("add", {"model.num_layers": 2})
    at_equals = (100 + 10) * 10
    both_go_on = (1000 + 90) * 100 * 2
    others = 2 * 100 * (10 + 9) + 2 * 100 * 2 + (10 * 10 + 9 * 9) + 2 * 9 * 2 + 1
    counted = sum(map(len, listed.neighbourhoods().values()))
    assert counted == at_equals + both_go_on + others == 223_518


def test_differences_have_the_neighbourhoods_of_sums() -> None:
    """The borrow takes the place of the carry, and a sign that of a last digit 1."""
    listed = Enumerated.of("subtract", {})
    assert sum(map(len, listed.neighbourhoods().values())) == 24_518


def test_running_sums_have_the_neighbourhoods_counted_by_hand() -> None:
    """Twice those of a sum, for rows that are the last and rows that are not.

    Where the number above has digits in reach, it is the first operand, which stands before `+`,
    or a row, which stands after it: twice again. Before a row's first digit stands `=`, `;` below
    `=`, or `;` below `;`.
    """
    listed = Enumerated.of("add-many", {})
    within_a_sum = 24_518 - 100
    number_above_has_ended = 2 * 100 + 2 * 9 + 1
    before_the_first_digit = 3 * 10 * 10
    by_hand = 2 * (2 * within_a_sum - number_above_has_ended + before_the_first_digit)
    assert sum(map(len, listed.neighbourhoods().values())) == by_hand == 97_834


def test_three_operands_are_listed_in_parts_that_fit_and_do_not_overlap() -> None:
    listed = Enumerated.of("add", {"task.min_operands": 3, "task.max_operands": 3})
    largest = max(listed.groups, key=lambda group: sum(c.num_cases for c in group))
    parts = column_addition.contexts(largest, listed.layout.rule)
    first, second = next(parts)[0], next(parts)[0]
    for part in (first, second):
        assert (
            0
            < sum(len(enumeration.target) for enumeration in part)
            <= column_addition._CASES_AT_ONCE
        )
    rows = [
        set(map(tuple, enumeration.ids[:1000].tolist()))
        for part in (first, second)
        for enumeration in part
    ]
    assert not rows[0] & rows[-1]


def test_a_token_beyond_the_calculation_cannot_be_listed() -> None:
    listed = Enumerated.of("add-many", {})
    calculation = next(iter(listed.layout.calculations(3, 2)))
    strangers = [receptive_fields.STRANGER if n >= 0 else n for n in calculation.numbers]
    calculation = replace(calculation, numbers=strangers)
    with pytest.raises(receptive_fields.NotProvable, match="sees more than the calculation"):
        list(column_addition.patterns_in(listed.model, calculation))
