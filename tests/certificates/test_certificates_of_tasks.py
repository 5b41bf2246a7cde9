"""Certificates beyond the sum of two: differences, sums of any count, products, divisions, sorting.

Most of these tests replace the model by a table of right answers, made from the enumeration: it is as
good as any training could make it, and one entry of it can be made wrong.
"""

import pytest
import torch
from torch import Tensor

import abacist
from abacist.certificates import certificate, receptive_fields
from abacist.certificates.certificate import prove
from abacist.certificates.record import Certificate
from abacist.certificates.rounding import MarginBound
from abacist.configuration import override
from abacist.models.coordinates import Coordinates
from abacist.models.transformer import Transformer
from abacist.recipes import find
from abacist.runs.run import build_model, build_problems
from abacist.scoring.records import Solution
from abacist.scoring.trained_model import TrainedModel

TINY = {"model.width": 8, "model.mlp_width": 8}
FEW = {
    "sort": {
        "task.max_numbers": 6,
        "training.curriculum": (),
        "training.decay_steps": None,
    }
}
"""Numbers enough for every pattern; lines of 52 that a model writes at random are long."""


def proof_of(recipe_name: str, settings: dict[str, object]) -> Certificate:
    """Return the outcome for an untrained model."""
    recipe = override(find(recipe_name), TINY | settings)
    task, format = build_problems(recipe)
    torch.manual_seed(0)
    return prove(TrainedModel(build_model(recipe), task, format))


class Table:
    """Right answers by context, in the place of a model's logits."""

    def __init__(self, recipe_name: str) -> None:
        self.recipe = override(find(recipe_name), TINY | FEW.get(recipe_name, {}))
        self.task, self.format = build_problems(self.recipe)
        torch.manual_seed(0)
        self.model = build_model(self.recipe).eval()
        self.enumeration = certificate._enumeration(self.model, self.task, self.format, 1e9)
        self.right: dict[tuple[bytes, tuple[int, ...]], int] = {}
        for part, _ in self.enumeration.parts():
            ids, targets, _ = certificate._distinct(part)
            for row, target in zip(ids.tolist(), targets.tolist(), strict=True):
                self.right[part[0].pattern.key, tuple(row)] = target

    def logits(
        self,
        model: Transformer,
        pattern: receptive_fields.Pattern,
        ids: Tensor,
        path: str = "dense",
    ) -> Tensor:
        target = torch.tensor([self.right[pattern.key, tuple(row)] for row in ids.tolist()])
        return 10.0 * torch.nn.functional.one_hot(target, len(self.format.vocabulary)).double()

    def margins(
        self,
        pattern: receptive_fields.Pattern,
        ids: Tensor,
        target: Tensor,
        enough: float = torch.inf,
    ) -> MarginBound:
        logits = self.logits(self.model, pattern, ids)
        right = target.unsqueeze(1)
        others = logits.scatter(1, right, -torch.inf).amax(dim=1)
        margin = logits.gather(1, right).squeeze(1) - others
        return MarginBound(margin, margin, margin)

    def prove(self, monkeypatch: pytest.MonkeyPatch) -> Certificate:
        # The enumeration takes longer than the proof, and is the same whatever the table says.
        monkeypatch.setattr(certificate, "_enumeration", lambda *_: self.enumeration)
        monkeypatch.setattr(certificate, "_logits", self.logits)
        monkeypatch.setattr(certificate.BoundedModel, "margins", self.margins)
        monkeypatch.setattr(certificate, "_locality_error", lambda *_: 0.0)
        return prove(TrainedModel(self.model, self.task, self.format))


RECIPES = ["add", "subtract", "add-many", "multiply", "divide", "sort"]


@pytest.fixture(scope="module", params=RECIPES)
def table(request: pytest.FixtureRequest) -> Table:
    return Table(request.param)


CLAIMS = {
    "add": "adds all pairs of non-negative integers of every length.",
    "subtract": "subtracts all pairs of non-negative integers of every length.",
    "add-many": "adds any two or more non-negative integers, however many, of every length.",
    "multiply": "multiplies all pairs of non-negative integers of every length.",
    "divide": "is right for // and % of all pairs of non-negative integers of every length, except divisions by 0.",
    "sort": "sorts up to 6 non-negative integers of every length.",
}


def answer_to(problem: str) -> str:
    """What Python makes of it."""
    if ":" not in problem:
        return str(eval(problem))  # digits and one sign, written by ourselves
    numbers = [part.split(":") for part in problem.split(",")]
    return "".join(label for label, number in sorted(numbers, key=lambda pair: int(pair[1])))


def test_a_model_that_is_right_in_every_context_is_certified(table, monkeypatch):
    outcome = table.prove(monkeypatch)
    assert outcome.certified
    assert outcome.reason == CLAIMS[table.recipe.name]
    assert outcome.neighbourhoods == len(table.right)
    assert outcome.smallest_margin == 10


@pytest.mark.parametrize("number", range(4))
def test_one_wrong_case_of_all_is_found_and_completed_to_a_problem(table, number, monkeypatch):
    chance = torch.Generator().manual_seed(number)
    places = list(table.right)
    place = places[int(torch.randint(len(places), (1,), generator=chance))]
    right = table.right[place]
    monkeypatch.setitem(table.right, place, (right + 1) % 10)
    outcome = table.prove(monkeypatch)
    assert not outcome.certified
    assert outcome.wrong == 1
    assert outcome.smallest_margin == -10
    found = outcome.counterexample
    assert found.expected == answer_to(found.problem)


@pytest.mark.parametrize("wrong_answers", [0, 1])
@pytest.mark.parametrize("table", ["multiply"], indirect=True)
def test_of_the_worst_cases_one_with_a_wrong_answer_is_shown(table, wrong_answers, monkeypatch):
    """Where work is written down, a wrong token can leave the answer right."""
    for place in list(table.right)[::20_000]:
        monkeypatch.setitem(table.right, place, (table.right[place] + 1) % 10)
    right = Solution("2*3", "6", "6", margin=1.0)
    wrong = Solution("2*4", "7", "8", margin=1.0)
    solutions = [right, right, *[wrong] * wrong_answers]
    monkeypatch.setattr(certificate, "solve", lambda *_: solutions)
    outcome = table.prove(monkeypatch)
    assert outcome.wrong == 4
    assert outcome.counterexample == (wrong if wrong_answers else None)
    assert ("right nevertheless" in outcome.reason) == (not wrong_answers)


@pytest.mark.parametrize("recipe_name", ["subtract", "add-many", "multiply", "divide", "sort"])
def test_a_model_that_has_not_finished_learning_is_refuted_with_a_problem_it_gets_wrong(
    recipe_name, tmp_path
):
    settings = TINY | {
        "training.num_steps": 20,
        "training.warmup_steps": 5,
        "training.batch_size": 32,
        "task.max_digits": 3,
        "training.validation_problems": 20,
        "training.sample_problems": 20,
        **FEW.get(recipe_name, {}),
    }
    run = abacist.train(
        recipe_name, out=tmp_path / recipe_name, settings=settings, threads=1, seed=0
    )
    outcome = run.prove()
    assert not outcome.certified
    assert outcome.wrong > 0
    assert not outcome.counterexample.correct
    assert run.solve(outcome.counterexample.problem)[0].answer == outcome.counterexample.answer


@pytest.mark.parametrize(
    ("recipe_name", "settings"),
    [
        ("subtract", {"model.positions.0.window": "0,0"}),
        ("subtract", {"model.positions.1.window": "-1,0"}),
        ("add-many", {"model.positions.0.window": "0,0"}),
        ("add-many", {"model.positions.1.window": "-1,0"}),
        ("multiply", {"model.positions.0.window": "0,0"}),
        ("multiply", {"model.positions.1.window": "0,0"}),
        ("divide", {"model.positions.0.window": "-1,0"}),
        ("divide", {"model.positions.1.window": "0,1"}),
        ("divide", {"model.positions.2.window": "0,1"}),
    ],
    ids=str,
)
def test_a_window_too_narrow_for_the_task_is_refused(recipe_name, settings):
    outcome = proof_of(recipe_name, settings)
    assert not outcome.certified
    assert "too narrow" in outcome.reason


@pytest.mark.parametrize(
    ("recipe_name", "settings", "reason"),
    [
        ("subtract", {"model.positions": "place-relative"}, "knows the place of a digit but not its row"),
        ("subtract", {"format": "reversed"}, "which operand is larger"),
        ("subtract", {"format": "usual"}, "Train with --format complement"),
        ("add", {"format": "usual"}, "Train with --format reversed"),
        ("add", {"format": "complement"}, "Train with --format reversed"),
        ("add", {"task": "multiply"}, "long-multiplication, for divisions in the format"),
        ("sort", {"format": "labels", "model.positions": "place-relative"},
         "in the format insertion-sort; this model sorts up to 52"),
        ("add-many", {"model.num_layers": 2}, "no more than the two rows above"),
        ("add-many", {"model.positions": "place-relative"}, "no more than the two rows above"),
        ("add-many", {"model.positions.1.window": "-3,0"}, "no more than the two rows above"),
        ("add-many", {"model.positions.1.window": "-2,1"}, "no more than the two rows above"),
        ("add-many", {"model.positions.0.window": "none"}, "window of places"),
        ("multiply", {"model.positions.0.window": "-1,1"}, "--model.positions.0.window 0,1"),
        ("multiply", {"model.positions.0.window": "0,2"}, "--model.positions.0.window 0,1"),
        ("multiply", {"model.positions.1.window": "-2,0"}, "--model.positions.1.window=-1,0"),
        ("multiply", {"model.positions.1.window": "none"}, "--model.positions.1.window=-1,0"),
        ("multiply", {"model.num_layers": 2}, "--model.num_layers 1"),
        ("multiply", {"model.positions.0.window": "none"}, "window of places"),
        ("add", {"task": "divide", "format": "long-division"}, "non-restoring-division, and for sorting"),
        ("divide", {"model.positions.0.window": "-3,0"}, "--model.positions row-place-step-relative"),
        ("divide", {"model.positions.1.window": "0,3"}, "--model.positions row-place-step-relative"),
        ("divide", {"model.positions.1.window": "-1,2"}, "--model.positions row-place-step-relative"),
        ("divide", {"model.positions.2.window": "none"}, "--model.positions row-place-step-relative"),
        ("divide", {"model.num_layers": 2}, "--model.num_layers 1"),
        ("sort", {"model.positions.0.window": "-1,0"}, "--model.positions pointer-relative"),
        ("sort", {"model.positions.1.window": "0,1"}, "--model.positions pointer-relative"),
        ("sort", {"model.positions.2.window": "none"}, "--model.positions pointer-relative"),
        ("sort", {"model.positions.1.window": "none"}, "window of places"),
    ],
    ids=str,
)  # fmt: skip
def test_what_cannot_be_proved_is_said_with_what_to_change(recipe_name, settings, reason):
    outcome = proof_of(recipe_name, settings)
    assert not outcome.certified
    assert outcome.neighbourhoods == 0
    assert reason in outcome.reason


def test_a_long_line_with_a_pattern_that_was_not_enumerated_is_reported(table, monkeypatch):
    monkeypatch.setattr(table.enumeration, "patterns", table.enumeration.patterns[:-1])
    with pytest.raises(receptive_fields.NotProvable, match="was not enumerated"), torch.no_grad():
        certificate._locality_error(certificate._double_copy(table.model), table.enumeration)


def test_problems_made_from_the_worst_cases_are_asked_with_every_operation(monkeypatch):
    """Operations that share their work may differ: a mistake can follow one operator only."""
    recipe = override(find("divide"), TINY)
    task, format = build_problems(recipe)
    asked: list[str] = []
    monkeypatch.setattr(
        certificate, "solve", lambda *_: asked.extend(task.expressions(_[-1])) or []
    )
    pattern = receptive_fields.Pattern([], Coordinates(*torch.zeros(2, 1, 1)), [], [], b"", [])
    context = receptive_fields.Context(
        pattern, torch.zeros(1, 1), torch.zeros(1), lambda case: ["97", "8"]
    )
    certificate._counterexample(
        TrainedModel(build_model(recipe), task, format), [(-1.0, context, 0)]
    )
    assert asked == ["97//8", "97%8"]


def test_logits_in_long_lines_are_those_of_the_receptive_field_alone(table):
    with torch.no_grad():
        exact = certificate._double_copy(table.model)
        assert certificate._locality_error(exact, table.enumeration) < 1e-11
