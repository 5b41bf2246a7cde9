"""The certificate: what it counts, what it proves, and that it cannot be fooled."""

import copy
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

import abacist
from abacist.certificates import certificate as module
from abacist.certificates import column_addition
from abacist.certificates.certificate import count_wrong, prove
from abacist.certificates.rounding import MarginBound
from abacist.configuration import override
from abacist.models.transformer import Transformer
from abacist.recipes import find
from abacist.runs.run import build_model, build_problems
from abacist.scoring.exact_match import exact_match
from abacist.scoring.trained_model import TrainedModel
from abacist.tasks.problems import Problems


@pytest.fixture(scope="module")
def reports():
    """What the proof of the default recipe reports of its progress."""
    return []


@pytest.fixture(scope="module")
def proof(certified, reports):
    """The certificate of the default recipe."""
    return certified.prove(on_progress=lambda done, total: reports.append((done, total)))


@pytest.fixture(scope="module")
def small():
    """A certified run of 338 parameters, which is proved in a fraction of the time."""
    return abacist.load(Path(__file__).parents[2] / "examples" / "add-tiny")


@pytest.fixture(scope="module")
def small_proof(small):
    return prove(small.trained_model())


def test_the_default_recipe_is_certified_with_a_margin_above_one(proof):
    assert proof.certified
    assert proof.wrong == 0
    assert proof.smallest_margin >= 1
    assert proof.counterexample is None
    assert proof.reason == "adds all pairs of non-negative integers of every length."


def test_locality_holds_in_float64_and_rounding_is_far_below_the_margin(proof):
    assert proof.locality_error < 1e-11
    assert 0 < proof.rounding_bound < 0.1 * proof.smallest_margin
    assert 0 < proof.smallest_margin - proof.proved_margin < 1e-5


def test_neighbourhoods_are_those_counted_by_hand(proof):
    """One layer, window (0, 1): a digit depends on two columns of operands and the digit before.

    In the column of the query and the next, an operand goes on (10 x 10 digits), ends (10, a
    leading 0 only where it is the whole number, so without a carry into its column), or has
    ended. The digit written is one of two, by the carry.
    """
    at_equals = 10 * 10
    both_go_on = 100 * 100 * 2
    one_goes_on_one_ends = 2 * 100 * (10 + 9)
    one_goes_on_one_has_ended = 2 * 100 * 2
    both_end = 10 * 10 + 9 * 9
    one_ends_one_has_ended = 2 * 9 * 2
    both_have_ended = 1
    by_hand = (
        at_equals
        + both_go_on
        + one_goes_on_one_ends
        + one_goes_on_one_has_ended
        + both_end
        + one_ends_one_has_ended
        + both_have_ended
    )
    assert proof.neighbourhoods == by_hand == 24_518


@pytest.mark.parametrize("seed", range(3))
def test_a_planted_wrong_weight_gives_a_real_counterexample(certified, seed):
    model = copy.deepcopy(certified.model)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        hidden = model.blocks[0].mlp.up.weight
        row = int(torch.randint(len(hidden), (1,), generator=generator))
        hidden[row] = 20 * torch.randn(hidden.shape[1], generator=generator)
    certificate = prove(TrainedModel(model, certified.task, certified.format))
    assert not certificate.certified
    assert certificate.wrong > 0
    found = certificate.counterexample
    a, b = map(int, found.problem.split("+"))
    assert found.expected == str(a + b)
    assert not found.correct


@pytest.mark.parametrize(
    ("positions", "obstacle"),
    [
        ("gpt2", "absolute index"),
        ("coupling", "absolute place"),
        ("place-relative-soft", "window"),
        ("index-relative", "distances grow"),
        ("nope", "window"),
    ],
)
def test_a_model_without_a_finite_receptive_field_is_refused_with_a_remedy(positions, obstacle):
    recipe = override(find("add"), {"model.positions": positions})
    task, format = build_problems(recipe)
    certificate = prove(TrainedModel(build_model(recipe), task, format))
    assert not certificate.certified
    assert "not finite" in certificate.reason
    assert obstacle in certificate.reason
    assert "--model.positions place-relative" in certificate.reason


def test_rotations_by_place_are_refused_since_the_start_token_has_none():
    settings = {"model.positions.0.encoding": "rotary", "model.positions.0.window": "0,1"}
    recipe = override(find("add"), settings)
    task, format = build_problems(recipe)
    certificate = prove(TrainedModel(build_model(recipe), task, format))
    assert not certificate.certified
    assert "rotates a token by its absolute place" in certificate.reason


def test_a_model_that_knows_absolute_places_fails_the_comparison_with_long_lines(monkeypatch):
    """If a way to encode absolute places slipped past the check of settings, logits would differ."""
    settings = {"model.positions.0.encoding": "rotary", "model.positions.0.window": "0,1"}
    recipe = override(find("add"), settings)
    task, format = build_problems(recipe)
    monkeypatch.setattr(module, "obstacle_to_finite_receptive_field", lambda config: None)
    torch.manual_seed(0)
    trained_model = TrainedModel(build_model(recipe), task, format)
    assert "rotary" in prove(trained_model).reason

    def margins(pattern, ids, target, enough):
        return MarginBound(*torch.ones(3, len(ids), dtype=torch.float64))

    monkeypatch.setattr(
        module, "BoundedModel", lambda exact, precision: SimpleNamespace(
            model=exact, cases_at_once=10_000, margins=margins
        )
    )  # fmt: skip
    certificate = prove(trained_model)
    assert not certificate.certified
    assert certificate.locality_error > 1e-3


def test_a_receptive_field_too_narrow_for_the_task_is_reported():
    """Without a view of its own column, a digit cannot be known, however well one trains."""
    recipe = override(find("add"), {"model.positions.0.window": "0,0"})
    task, format = build_problems(recipe)
    certificate = prove(TrainedModel(build_model(recipe), task, format))
    assert not certificate.certified
    assert "too narrow" in certificate.reason


def test_a_model_that_overflows_in_float32_is_never_certified(small):
    """The weights are finite and right in float64, but float32 overflows."""
    model = copy.deepcopy(small.model)
    with torch.no_grad():
        for part in (model.embedding, model.blocks[0].attention.output, model.blocks[0].mlp.down):
            for parameter in part.parameters():
                parameter *= 1e37
    certificate = prove(TrainedModel(model, small.task, small.format))
    assert not certificate.certified
    assert "rounding" in certificate.reason


def test_a_bias_that_outweighs_the_mask_is_never_certified(certified):
    model = copy.deepcopy(certified.model)
    with torch.no_grad():
        model.blocks[0].attention.relative[0].table[0] = 2e30
    assert not prove(TrainedModel(model, certified.task, certified.format)).certified


@pytest.mark.parametrize(
    "settings",
    [
        {"task.max_operands": 10},
        {"model.num_layers": 5},
        {"model.positions.0.window": "0,20000000"},
    ],
)
def test_an_enumeration_far_beyond_the_time_limit_is_refused_at_once(settings):
    recipe = override(find("add"), settings)
    task, format = build_problems(recipe)
    certificate = prove(TrainedModel(build_model(recipe), task, format))
    assert not certificate.certified
    assert "more than the time limit" in certificate.reason
    assert "--format running-sums" in certificate.reason
    assert "--max-minutes" in certificate.reason


def test_a_check_without_bounds_keeps_to_the_time_limit_as_well(small):
    assert count_wrong(small.trained_model()) == 0
    assert count_wrong(small.trained_model(), max_minutes=1e-6) is None


def test_a_check_that_turns_out_too_long_is_given_up_with_the_time_it_would_take(
    certified, monkeypatch
):
    monkeypatch.setattr(module, "_SECONDS_TO_JUDGE_BY", 0.0)
    monkeypatch.setattr(module, "_MOST_PER_SECOND", 1e12)
    certificate = prove(certified.trained_model(), max_minutes=1e-4)
    assert not certificate.certified
    assert re.search(r"would take about [0-9.]+ (seconds|minutes)", certificate.reason)


def test_enumerating_in_small_parts_gives_the_same_certificate(small, small_proof, monkeypatch):
    """Parts differ in digits of the receptive field, so no case is counted twice or lost."""
    monkeypatch.setattr(column_addition, "_CASES_AT_ONCE", 3_000)
    parts = prove(small.trained_model())
    assert parts.certified
    assert parts.neighbourhoods == small_proof.neighbourhoods
    assert parts.patterns == small_proof.patterns
    assert parts.smallest_margin == pytest.approx(small_proof.smallest_margin, abs=1e-9)


@pytest.mark.usefixtures("proof")
def test_progress_counts_all_cases_up_to_the_last(reports):
    assert [done for done, _ in reports] == sorted({done for done, _ in reports})
    assert reports[-1][0] == reports[-1][1] >= 24_518


def test_a_certificate_names_the_step_of_the_weights_it_speaks_of(certified, proof):
    assert proof.step == certified.recipe.training.num_steps


def test_a_certified_model_makes_no_error_where_the_proof_says_so(certified):
    """The proof against the world: random sums of unequal lengths, and chains of nines."""
    generator = torch.Generator().manual_seed(5)
    rows = []
    for _ in range(200):
        lengths = torch.randint(1, 60, (2,), generator=generator).tolist()
        digits = [
            "".join(map(str, torch.randint(1, 10, (n,), generator=generator).tolist()))
            for n in lengths
        ]
        rows.append(digits)
    rows += [["9" * n, "1"] for n in (1, 5, 59)] + [["9" * 30, "9" * 60]]
    texts = [f"{a}+{b}" for a, b in rows]
    for text, solution in zip(texts, certified.solve(texts), strict=True):
        a, b = map(int, text.split("+"))
        assert solution.answer == str(a + b)


def test_the_certificate_is_of_the_weights_not_of_their_precision(small, small_proof):
    doubled = Transformer(small.recipe.model, len(small.format.vocabulary)).double()
    doubled.load_state_dict(small.model.state_dict())
    certificate = prove(TrainedModel(doubled, small.task, small.format))
    assert certificate.step is None
    assert certificate.smallest_margin == pytest.approx(small_proof.smallest_margin)
    assert certificate.rounding_bound == small_proof.rounding_bound


def test_random_weights_are_refuted_with_a_problem_they_get_wrong():
    recipe = find("add")
    torch.manual_seed(3)
    task, format = build_problems(recipe)
    certificate = prove(TrainedModel(build_model(recipe), task, format))
    assert not certificate.counterexample.correct
    assert len(task.parse([certificate.counterexample.problem])) == 1
    assert isinstance(task.parse([certificate.counterexample.problem]), Problems)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_not_finite_are_never_certified(certified, value):
    model = copy.deepcopy(certified.model)
    with torch.no_grad():
        model.head.weight[:] = value
    certificate = prove(TrainedModel(model, certified.task, certified.format))
    assert not certificate.certified
    assert "not finite" in certificate.reason


def test_scores_so_large_that_a_mask_could_leak_are_never_certified(certified):
    model = copy.deepcopy(certified.model)
    with torch.no_grad():
        model.blocks[0].attention.query.weight *= 1e30
    certificate = prove(TrainedModel(model, certified.task, certified.format))
    assert not certificate.certified
    assert "masked tokens" in certificate.reason


def test_no_score_exceeds_its_bound(certified):
    attention, norm = certified.model.blocks[0].attention, certified.model.blocks[0].attention_norm
    ids = torch.randint(10, (50, 20), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        normed = norm(certified.model.embedding(ids))
        query, key = attention.query(normed), attention.key(normed)
        scores = query.unflatten(-1, (4, 8)).transpose(1, 2) @ key.unflatten(-1, (4, 8)).permute(
            0, 2, 3, 1
        )
        assert float(scores.abs().max()) * 8**-0.5 <= attention.largest_score(norm)


def test_every_wrong_neighbourhood_is_reported_in_a_problem_that_the_model_gets_wrong(small):
    model = copy.deepcopy(small.model)
    with torch.no_grad():
        model.embedding.weight[7] += 0.6
    damaged, reported = replace(small.trained_model(), model=model), []
    certificate = prove(damaged, on_mistake=reported.append)
    assert 0 < certificate.wrong < certificate.neighbourhoods
    assert len(reported) == certificate.wrong
    assert not exact_match(damaged, damaged.task.parse(reported)).correct.any()


def test_a_mistake_that_operations_share_is_reported_for_each_of_them():
    recipe = find("calculator")
    model = TrainedModel(build_model(recipe).eval(), *build_problems(recipe))
    context = SimpleNamespace(operands=lambda case: ["12", "5"], operations=("//", "%"))
    problems = module._problems_with(model, [(context, 0)])
    assert model.task.expressions(problems) == ["12//5", "12%5"]


def test_nothing_is_reported_of_a_certified_model(small):
    reported = []
    assert prove(small.trained_model(), on_mistake=reported.append).certified
    assert reported == []
