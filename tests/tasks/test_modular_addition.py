import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from abacist.errors import ProblemError
from abacist.tasks.config import ModularAdditionConfig
from abacist.tasks.modular_addition import ModularAddition, residues_of
from abacist.tasks.problems import Problems, Shapes

MODULI = [2, 3, 9, 10, 11, 97, 99, 100, 101, 113]
each_modulus = pytest.mark.parametrize("modulus", MODULI)


def task_of(modulus: int = 113) -> ModularAddition:
    return ModularAddition(ModularAdditionConfig(modulus=modulus))


def draw(task: ModularAddition, num_problems: int, seed: int = 0) -> Problems:
    generator = torch.Generator().manual_seed(seed)
    return task.draw(task.draw_shapes(num_problems, generator), generator)


@each_modulus
def test_all_sums_of_residues_are_pythons(modulus: int) -> None:
    task = task_of(modulus)
    problems = task.space().problems(torch.arange(modulus**2))
    expected = [str((a + b) % modulus) for a in range(modulus) for b in range(modulus)]
    assert task.answer(problems).texts() == expected


@settings(deadline=None, max_examples=50)
@given(st.data(), st.integers(2, 100_000))
def test_sums_of_residues_are_pythons_for_any_modulus(data: st.DataObject, modulus: int) -> None:
    residue = st.integers(0, modulus - 1) | st.just(modulus - 1)
    rows = data.draw(st.lists(st.tuples(residue, residue), min_size=1, max_size=5))
    task = task_of(modulus)
    expressions = [f"{a}+{b}" for a, b in rows]
    answers = task.answer(task.parse(expressions))
    assert answers.texts() == [str((a + b) % modulus) for a, b in rows]
    assert answers.negative_B is None


def test_answers_of_an_empty_batch_are_empty() -> None:
    assert task_of().answer(task_of().parse([])).texts() == []


def test_the_answer_is_what_is_measured() -> None:
    measured = task_of().measures(task_of().parse(["95+30", "112+1", "0+0"]))
    assert {name: values.tolist() for name, values in measured.items()} == {"answer": [12, 0, 0]}


def test_residues_are_the_operands() -> None:
    assert residues_of(task_of().parse(["95+30", "112+0"])).tolist() == [[95, 30], [112, 0]]


# Drawing ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("modulus", [2, 9, 10, 12, 101])
def test_every_pair_of_residues_is_equally_likely(modulus: int) -> None:
    a, b = residues_of(draw(task_of(modulus), 200_000)).unbind(dim=1)
    cells = torch.bincount(modulus * a + b, minlength=modulus**2)
    assert len(cells) == modulus**2
    expected = 200_000 / modulus**2
    statistic = float(((cells - expected) ** 2 / expected).sum())
    freedom = modulus**2 - 1
    assert abs(statistic - freedom) < 5 * (2 * freedom) ** 0.5, statistic


@each_modulus
def test_drawn_residues_have_the_lengths_of_their_shapes(modulus: int) -> None:
    problems = draw(task_of(modulus), 2_000)
    residues = residues_of(problems)
    assert residues.max() < modulus
    written = [[len(str(residue)) for residue in row] for row in residues.tolist()]
    assert written == problems.lengths_BN.tolist()


def test_residues_of_one_length_are_equally_likely() -> None:
    lengths = torch.tensor([[3, 1]]).expand(13_000, 2)
    shapes = Shapes.of(lengths, "+ mod")
    a, b = residues_of(task_of().draw(shapes, torch.Generator().manual_seed(0))).unbind(dim=1)
    counts = torch.bincount(a, minlength=113)
    assert counts[:100].sum() == 0
    assert ((counts[100:] - 1_000).abs() < 160).all(), counts[100:]
    counts = torch.bincount(b, minlength=10)
    assert len(counts) == 10
    assert ((counts - 1_300).abs() < 180).all(), counts


def test_an_empty_batch_can_be_drawn() -> None:
    assert len(draw(task_of(), 0)) == 0


# Reading ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "typed",
    [
        "95+30",
        " 95 + 30 ",
        "95+30=",
        "95+30 mod 113",
        "95 + 30 mod 113 =",
        "95+30mod113",
        "95+30 mod",
        "095+030",
    ],
)
def test_a_typed_sum_is_understood(typed: str) -> None:
    assert task_of().expressions(task_of().parse([typed])) == ["95+30 mod 113"]


@each_modulus
def test_expressions_parse_back_to_the_same_problems(modulus: int) -> None:
    problems = draw(task_of(modulus), 200)
    again = task_of(modulus).parse(task_of(modulus).expressions(problems))
    assert torch.equal(residues_of(again), residues_of(problems))
    assert torch.equal(again.lengths_BN, problems.lengths_BN)
    assert torch.equal(again.operation_B, problems.operation_B)


@each_modulus
def test_the_example_can_be_typed(modulus: int) -> None:
    task = task_of(modulus)
    assert task.answer(task.parse([task.example])).texts() == ["0"]


REMEDY = "Type two numbers from 0 to 112, such as 112+1."


@pytest.mark.parametrize(
    ("typed", "complaint"),
    [
        ("", "empty problem."),
        ("\t", "empty problem."),
        ("113+1", "cannot read '113+1': '113' is not a residue modulo 113."),
        ("1+200", "cannot read '1+200': '200' is not a residue modulo 113."),
        ("1+1000", "cannot read '1+1000': '1000' is not a residue modulo 113."),
        ("95", "cannot read '95': it is not a sum modulo 113."),
        ("1+2+3", "cannot read '1+2+3': it is not a sum modulo 113."),
        ("1+", "cannot read '1+': it is not a sum modulo 113."),
        ("+", "cannot read '+': it is not a sum modulo 113."),
        ("=", "cannot read '=': it is not a sum modulo 113."),
        ("mod 113", "cannot read 'mod 113': it is not a sum modulo 113."),
        ("95+30 mod 7", "cannot read '95+30 mod 7': it is not a sum modulo 113."),
        ("95+30 mod 1113", "cannot read '95+30 mod 1113': it is not a sum modulo 113."),
        ("95 mod 113+30", "cannot read '95 mod 113+30': it is not a sum modulo 113."),
        ("5-3", "cannot read '5-3': it is not a sum modulo 113."),
        ("-5+3", "cannot read '-5+3': it is not a sum modulo 113."),
        ("1.5+2", "cannot read '1.5+2': it is not a sum modulo 113."),
        ("١+٢", "cannot read '١+٢': it is not a sum modulo 113."),
        ("😀+1", "cannot read '😀+1': it is not a sum modulo 113."),
    ],
)
def test_what_is_not_a_sum_of_residues_is_refused_in_one_line_that_shows_what_to_type(
    typed: str, complaint: str
) -> None:
    with pytest.raises(ProblemError) as caught:
        task_of().parse(["1+1", typed])
    assert str(caught.value) == f"{complaint} {REMEDY}"


def test_a_refusal_is_short_however_long_what_was_typed() -> None:
    for typed in ("7" * 5_000 + "+1", "x" * 200_000, "7" * 200_000 + "+1"):
        with pytest.raises(ProblemError) as caught:
            task_of().parse([typed])
        assert len(str(caught.value)) < 200
        assert "\n" not in str(caught.value)
