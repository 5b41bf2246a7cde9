"""Every lens against a direct computation."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from extension_tasks import column_task

from abacist.errors import ConfigurationError, ProblemError
from abacist.formats.annotated import EVERYWHERE, Field
from abacist.inspection import ablation, carry_probe, embeddings, patching
from abacist.inspection.attention import attention
from abacist.inspection.attribution import attribution
from abacist.inspection.cache import run_with_cache
from abacist.inspection.carries import carries
from abacist.inspection.convergence import convergence
from abacist.inspection.first_mistake import first_mistake
from abacist.inspection.inspected_lines import write_lines
from abacist.inspection.lens import LENSES, select_lenses
from abacist.inspection.logit_lens import logit_lens
from abacist.inspection.next_tokens import next_tokens
from abacist.inspection.place_attention import DIFFERENCES, WIDEST, place_attention
from abacist.intervals import Proportion
from abacist.models.teacher_forcing import teacher_forced
from abacist.reports import lens_views
from abacist.scoring.exact_match import exact_match, line_lengths
from abacist.tasks.config import ArithmeticConfig

KINDS = {
    "default": {},
    "two layers": {"num_layers": 2},
    "post-norm": {"norm_order": "post", "num_layers": 2},
    "rms, no biases": {"norm": "rms", "biases": ()},
    "head bias": {"biases": ("head",), "final_norm": False},
    "looped": {"recurrences": 3, "num_layers": 2},
    "looped, add": {"recurrences": 3, "injection": "add"},
    "looped, linear": {"recurrences": 3, "injection": "linear", "initial_state": "noise"},
    "looped, sublayers": {"recurrences": 2, "injection": "sublayers", "norm_order": "post"},
    "published Abacus": {"embedding_norm": True, "final_mlp": True, "positions": "abacus"},
    "encoder": {"direction": "both", "format": "parallel", "positions": "gpt2"},
    "running sums": {
        "task": "add-many",
        "format": "running-sums",
        "positions": "place-row-relative",
        "problem": "48+67+105",
    },
    "differences": {"task": "subtract", "format": "complement", "problem": "458-167"},
    "three at once": {
        "task": ArithmeticConfig(min_operands=3, max_operands=3, max_digits=2),
        "problem": "48+67+15",
    },
}
NO_CARRIES = {
    "products": {
        "task": "multiply",
        "format": "long-multiplication",
        "positions": "cell-relative",
        "problem": "23*45",
    },
    "quotients": {
        "task": "divide",
        "format": "non-restoring-division",
        "positions": "row-place-step-relative",
        "problem": "97//8",
    },
    "all at once": {"task": "multiply", "positions": "nope", "problem": "12*34"},
    "sorting": {"task": "sort", "format": "labels", "positions": "gpt2", "problem": "a:821,b:9"},
}


@pytest.fixture(params=KINDS.values(), ids=list(KINDS))
def inspected(request, random_inspected_problem):
    return random_inspected_problem(**request.param)


@pytest.fixture
def logits(inspected):
    model, lines = inspected.trained_model.model, inspected.lines
    with torch.no_grad():
        return model(lines.tokens.ids, lines.coordinates)[0]


def test_every_lens_that_applies_gives_json(inspected):
    for name, lens in select_lenses(["all"], inspected).items():
        result = json.loads(json.dumps(lens.look(inspected).to_json(), allow_nan=False))
        assert result, name


@pytest.mark.parametrize("kind", NO_CARRIES)
def test_other_lenses_apply_to_tasks_without_carries(random_inspected_problem, kind):
    inspected = random_inspected_problem(**NO_CARRIES[kind])
    lenses = select_lenses(["all"], inspected)
    assert list(select_lenses(["attention", "all"], inspected)) == list(lenses)
    assert set(LENSES) - set(lenses) == {"convergence", "evolution", "patching", "carry-probe"}
    for name, lens in lenses.items():
        result = json.loads(json.dumps(lens.look(inspected).to_json(), allow_nan=False))
        assert result, name
    assert first_mistake(inspected).carry_chain is None


def test_next_tokens_are_the_largest_probabilities(inspected, logits):
    result = next_tokens(inspected, count=4)
    probability = logits.double().softmax(dim=-1).numpy()
    tokens = inspected.trained_model.format.vocabulary.tokens
    for row, names, shown in zip(
        probability, result.likeliest, result.probability.values, strict=True
    ):
        order = np.argsort(-row)[:4]
        assert names == [tokens[token] for token in order]
        np.testing.assert_allclose(shown, row[order], rtol=1e-4)


def test_right_tokens_are_those_of_scoring(inspected):
    trained_model = inspected.trained_model
    whole = trained_model.format.write(
        inspected.problem, trained_model.task.answer(inspected.problem)
    )
    forced = teacher_forced(trained_model.model, whole)
    labels = forced.labels[0].tolist()
    vocabulary = trained_model.format.vocabulary
    assert inspected.right_tokens == [vocabulary.tokens[label] for label in labels if label >= 0]


def test_attention_rows_sum_to_1(inspected):
    pattern = attention(inspected).pattern
    assert pattern.axes == ("depth", "head", "query", "key")
    assert pattern.values.shape[0] == inspected.trained_model.model.depth
    np.testing.assert_allclose(pattern.values.sum(axis=-1), 1, rtol=1e-5)


def test_attention_by_difference_of_place_equals_an_explicit_loop(random_inspected_problem):
    inspected = random_inspected_problem(positions="nope", num_layers=2)
    result = place_attention(inspected)
    totals = np.zeros((2, 2, len(result.fields), len(DIFFERENCES)))
    count = 0
    for row in range(len(inspected.sample)):
        one = replace(inspected, problem=inspected.sample[row : row + 1])
        pattern, tokens = attention(one).pattern.values, one.lines.tokens
        place, field = tokens.place[0].tolist(), tokens.field[0].tolist()
        for query in one.predicting:
            count += 1
            for key in range(len(place)):
                kind = Field(field[key]).name.lower() if field[key] < Field.OPERAND else None
                name = kind or f"operand {field[key] - Field.OPERAND + 1}"
                if name not in result.fields:
                    assert pattern[:, :, query, key].max() == 0
                    continue
                apart = max(-WIDEST, min(WIDEST, place[key] - place[query]))
                label = DIFFERENCES[apart + WIDEST]
                if place[key] == EVERYWHERE:
                    label = "every column"
                elif place[key] < 0 or place[query] < 0:
                    label = "no column"
                at = (result.fields.index(name), DIFFERENCES.index(label))
                totals[:, :, at[0], at[1]] += pattern[:, :, query, key]
    assert result.num_tokens == count
    assert result.num_problems == len(inspected.sample)
    np.testing.assert_allclose(result.weight.values, totals / count, atol=1e-6)


def test_attention_by_difference_of_place_sums_to_1(inspected):
    result = place_attention(inspected)
    np.testing.assert_allclose(result.weight.values.sum(axis=(2, 3)), 1, rtol=1e-5)


def test_a_window_shows_in_the_attention_by_place(random_inspected_problem):
    result = place_attention(random_inspected_problem())
    far = [d for d in DIFFERENCES if d not in ("0", "+1", "every column", "no column")]
    columns = [DIFFERENCES.index(d) for d in far]
    assert result.weight.values[..., columns].max() == 0


def test_the_last_stage_of_the_logit_lens_is_the_models_own_answer(inspected, logits):
    result = logit_lens(inspected)
    labels = inspected.lines.labels[0, inspected.predicting]
    probability = logits[inspected.predicting].softmax(dim=-1)
    own = probability.gather(-1, labels.unsqueeze(-1)).squeeze(-1)
    np.testing.assert_allclose(result.probability.values[-1], own, rtol=1e-4, atol=1e-7)
    assert (
        len(result.stages) == len(result.likeliest) == 1 + 2 * inspected.trained_model.model.depth
    )


def test_contributions_sum_to_the_lead_of_the_right_token(inspected, logits):
    result = attribution(inspected)
    labels = inspected.lines.labels[0]
    for number, token in enumerate(inspected.predicting):
        row = logits[token].double()
        right = float(row[labels[token]])
        row[labels[token]] = -torch.inf
        assert result.lead.values[number] == pytest.approx(right - float(row.max()), abs=1e-4)
    total = result.contribution.values.sum(axis=0)
    np.testing.assert_allclose(total, result.lead.values, atol=2e-4)


def test_the_contribution_of_a_head_is_its_output_times_the_unembedding(random_inspected_problem):
    inspected = random_inspected_problem(final_norm=False, biases=())
    model, lines, result = inspected.trained_model.model, inspected.lines, attribution(inspected)
    _, cache = run_with_cache(model, lines.tokens.ids, lines.coordinates)
    names = inspected.trained_model.format.vocabulary.tokens
    width, output = model.config.width_of_head, model.blocks[0].attention.output.weight.detach()
    unembedding = model.head.weight.detach()
    for head in range(2):
        z = cache["z", 0][0, :, head]
        written = z @ output[:, head * width : (head + 1) * width].t()
        for number, token in enumerate(inspected.predicting):
            pair = [names.index(result.right[number]), names.index(result.runner_up[number])]
            direction = unembedding[pair[0]] - unembedding[pair[1]]
            shown = result.contribution.values[result.components.index(f"head {head}"), number]
            assert shown == pytest.approx((written[token] @ direction).item(), abs=1e-5)


def test_ablating_nothing_changes_nothing(inspected):
    trained_model = inspected.trained_model
    verdicts = exact_match(trained_model, inspected.sample)
    whole = ablation.exact_match_with(trained_model, inspected.sample, lambda lines: {})
    assert whole == verdicts.proportion


def test_ablation_scores_the_model_without_each_head_and_mlp(random_inspected_problem):
    inspected = random_inspected_problem(num_layers=2)
    result = ablation.ablation(inspected)
    labels = [part.component for part in result.without]
    assert labels == ["head 0.0", "head 0.1", "MLP 0", "head 1.0", "head 1.1", "MLP 1"]
    assert {part.zero.n for part in result.without} == {len(inspected.sample)}


def test_zero_ablation_of_a_head_equals_zeroing_its_output_matrix(certified):
    inspected = certified.look("12+34", num_problems=40)
    zero = [part.zero for part in ablation.ablation(inspected).without if "head" in part.component]
    output = inspected.trained_model.model.blocks[0].attention.output.weight
    before = output.detach().clone()
    width = inspected.trained_model.model.config.width_of_head
    for head, result in enumerate(zero):
        with torch.no_grad():
            output[:, head * width : (head + 1) * width] = 0
            trained_model = inspected.trained_model
            lost = exact_match(trained_model, inspected.sample)
            output.copy_(before)
        assert result == lost.proportion
    assert any(result.errors for result in zero)


def test_patching_all_embeddings_gives_the_prediction_for_the_partner(inspected):
    result = patching.patching(inspected)
    everywhere = dict(zip(result.components, result.effect_everywhere.values, strict=True))
    assert everywhere["last residual"] == pytest.approx(1, abs=1e-3)
    if inspected.trained_model.model.config.injection == "none":
        assert everywhere["embedding"] == pytest.approx(1, abs=1e-3)
    assert result.effect.values.shape == (len(result.components), len(result.tokens))


def test_patching_a_head_equals_a_hook_with_the_partners_activation(
    random_inspected_problem, with_partner
):
    inspected = with_partner(random_inspected_problem(), "453+67")
    model, own = inspected.trained_model.model, inspected.lines
    result = patching.patching(inspected)
    other = write_lines(inspected.trained_model, inspected.partner)
    _, cache = run_with_cache(model, other.tokens.ids, other.coordinates)
    token = result.predicting

    def hook(z):
        changed = z.clone()
        changed[0, token, 1] = cache["z", 0][0, token, 1]
        return changed

    def lead(lines, hooks=None):
        logits, _ = run_with_cache(model, lines.tokens.ids, lines.coordinates, hooks)
        return float(
            logits[0, token, own.labels[0, token]] - logits[0, token, other.labels[0, token]]
        )

    start, end = lead(own), lead(other)
    expected = (lead(own, {"blocks.0.attn.hook_z": hook}) - start) / (end - start)
    shown = result.effect.values[result.components.index("head 1"), token]
    assert shown == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("problem", ["458+67", "12345+67890", "999+111", "55+55", "1274+425"])
def test_the_generated_partner_differs_in_one_digit_and_one_carry(
    random_inspected_problem, problem
):
    inspected = random_inspected_problem(problem)
    task, partner = inspected.trained_model.task, patching.make_partner(inspected)
    (text,) = task.expressions(partner)
    assert sum(a != b for a, b in zip(text, problem, strict=True)) == 1
    assert (
        int(
            (
                carries(inspected.trained_model, partner)
                != carries(inspected.trained_model, inspected.problem)
            ).sum()
        )
        == 1
    )
    result = patching.patching(inspected)
    assert result.partner == text
    assert result.right != result.partner_right


def test_carries_are_those_of_integers(random_inspected_problem):
    inspected = random_inspected_problem("987+55")
    assert carries(inspected.trained_model, inspected.problem).tolist() == [[0, 1, 1, 1]]


def test_carries_of_running_sums_are_those_of_the_last_addition(random_inspected_problem):
    inspected = random_inspected_problem(**KINDS["running sums"])
    problems = inspected.trained_model.task.parse(["48+67+105", "95+5", "1+2+999"])
    result = carries(inspected.trained_model, problems)[:, :4].tolist()
    assert result == [[0, 1, 0, 0], [0, 1, 1, 0], [0, 1, 1, 1]]
    partner = patching.make_partner(inspected)
    (text,) = inspected.trained_model.task.expressions(partner)
    assert sum(a != b for a, b in zip(text, "48+67+105", strict=True)) == 1
    changed = carries(inspected.trained_model, partner) != carries(
        inspected.trained_model, inspected.problem
    )
    assert int(changed.sum()) == 1


def test_a_probe_is_the_direct_solution_of_its_equations():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(50, 4, generator=generator, dtype=torch.float64)
    bit = x[:, 0] + 0.1 * x[:, 1] > 0.3
    weights = carry_probe.fit(x, bit)
    design = np.hstack([x.numpy(), np.ones((50, 1))])
    rooted = np.sqrt(0.01 * 50) * np.eye(5)[:4]
    target = np.where(bit.numpy(), 1.0, -1.0)
    stacked, stacked_target = np.vstack([design, rooted]), np.concatenate([target, np.zeros(4)])
    direct, *_ = np.linalg.lstsq(stacked, stacked_target, rcond=None)
    np.testing.assert_allclose(weights.numpy(), direct, rtol=1e-9)
    assert float((carry_probe.decide(x, weights) == bit).double().mean()) > 0.9


def test_probes_are_scored_on_held_out_problems(certified):
    result = carry_probe.carry_probe(certified.look("12+34", num_problems=100))
    assert result.num_training_problems + result.num_held_out_problems == 100
    together = {probe.stage: probe for probe in result.probes if probe.place is None}
    last = together["MLP"]
    assert last.accuracy.value > last.majority
    by_place = [p for p in result.probes if p.place is not None and p.stage == "MLP"]
    assert all(probe.place > 1 for probe in by_place), "no carry goes into the units"
    assert sum(probe.accuracy.n for probe in by_place) <= last.accuracy.n


def test_probes_are_shown_with_the_accuracy_of_always_giving_the_same_answer(certified):
    record = carry_probe.carry_probe(certified.look("458+67", num_problems=40)).to_json()
    heat_map = lens_views.views("carry-probe", record)[1]
    assert heat_map.rows[-1] == "always the same answer"
    majorities = {probe["place"]: probe["majority"] for probe in record["probes"]}
    assert list(heat_map.values[-1]) == list(majorities.values())
    assert heat_map.low <= min(v for row in heat_map.values for v in row if v is not None)


def test_principal_components_are_those_of_numpy():
    rows = torch.randn(10, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    axes, explained = embeddings.principal_axes(rows)
    values, vectors = np.linalg.eigh(np.cov(rows.numpy().T))
    order = np.argsort(-values)[:3]
    np.testing.assert_allclose(explained, values[order] / values.sum(), rtol=1e-9)
    overlap = np.abs((axes.numpy() * vectors[:, order]).sum(axis=0))
    np.testing.assert_allclose(overlap, 1, rtol=1e-9)


@pytest.mark.parametrize("count", [9, 10])
def test_the_spectrum_is_the_variance_of_each_wave(count):
    rows = np.random.default_rng(0).normal(size=(count, 4))
    centred = rows - rows.mean(axis=0)
    power = (np.abs(np.fft.fft(centred, axis=0)) ** 2).sum(axis=1)
    expected = [
        (power[k] + (power[count - k] if k != count - k else 0)) / power.sum()
        for k in range(1, count // 2 + 1)
    ]
    shown = embeddings.spectrum(torch.from_numpy(rows))
    np.testing.assert_allclose(shown, expected, rtol=1e-9)
    angle = 2 * np.pi * 2 * np.arange(count) / count
    wave = torch.from_numpy(np.stack([np.cos(angle), np.sin(angle)], axis=1))
    assert embeddings.spectrum(wave)[1] == pytest.approx(1)


def test_embeddings_show_learned_places_too(random_inspected_problem):
    result = embeddings.embeddings(random_inspected_problem(positions="abacus"))
    assert [table.name for table in result.tables] == ["digits", "all symbols", "learned place"]
    assert result.tables[1].labels[-4:] == ["+", "=", "<end>", "<start>"]
    assert result.tables[1].spectrum.values.shape == (0,)
    assert result.tables[2].labels[0] == "1"
    for table in result.tables:
        assert table.points.values.shape == (len(table.labels), 3)
        np.testing.assert_allclose(table.points.values.mean(axis=0), 0, atol=1e-9)


def test_evolution_ends_with_the_present_tables(random_inspected_problem):
    inspected = random_inspected_problem()
    last = inspected.trained_model.model.embedding.weight.detach()
    inspected = replace(inspected, history={0: {"tokens": last * 0.5}, 10: {"tokens": last}})
    table, symbols = embeddings.evolution(inspected).tables
    now, _ = embeddings.embeddings(inspected).tables
    assert table.steps == symbols.steps == [0, 10]
    np.testing.assert_allclose(symbols.dimensions.values[1], last[:, :2], rtol=1e-6)
    np.testing.assert_allclose(table.points.values[-1], now.points.values, atol=1e-9)
    np.testing.assert_allclose(table.points.values[0], now.points.values / 2, atol=1e-6)
    np.testing.assert_allclose(table.spectrum.values[0], now.spectrum.values, rtol=1e-5)


def test_a_looped_model_is_nearest_to_the_fixed_point_at_the_end(random_inspected_problem):
    inspected = random_inspected_problem(recurrences=2, injection="add", norm_order="post")
    result = convergence(inspected)
    assert result.trained == 2
    assert result.distance.values.shape == (8,)
    assert result.distance.values[-1] == 0
    assert result.distance.values[-2] == pytest.approx(result.step.values[-1])


def test_the_first_mistake_is_the_first_wrong_digit(random_inspected_problem):
    inspected = random_inspected_problem()
    result, parts = first_mistake(inspected), attribution(inspected)
    number = int(np.flatnonzero(parts.lead.values <= 0)[0])
    assert result.is_mistake
    assert result.right == inspected.right_tokens[number]
    assert result.before == "".join(inspected.right_tokens[:number])
    assert result.contribution.values.sum() == pytest.approx(result.margin, abs=1e-4)
    assert list(result.contribution.values) == sorted(result.contribution.values)


def test_in_a_right_answer_the_least_certain_digit_is_explained(certified):
    result = first_mistake(certified.look("999+1"))
    assert not result.is_mistake
    assert result.margin > 0
    assert (result.carry_chain or 0) <= 3


def test_ablation_reports_the_number_of_problems(random_inspected_problem):
    result = ablation.ablation(random_inspected_problem())
    assert isinstance(result.whole, Proportion)
    assert result.to_json()["whole"]["n"] == 30


REFUSALS = {
    "convergence": ({}, "runs its layers once"),
    "evolution": ({}, "recorded no embeddings during training"),
    "carry-probe": ({"task": "multiply", "problem": "12*34"}, "a task of sums only"),
    "patching": ({"task": "multiply", "problem": "12*34"}, "after --with"),
    "attnetion": ({}, "did you mean 'attention'"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_a_lens_that_does_not_apply_says_why_in_one_line(random_inspected_problem, name):
    settings, message = REFUSALS[name]
    with pytest.raises(ConfigurationError, match=message) as caught:
        select_lenses([name], random_inspected_problem(**settings))
    assert "\n" not in str(caught.value)


def test_all_leaves_out_lenses_that_do_not_apply(random_inspected_problem):
    names = set(select_lenses(["all"], random_inspected_problem()))
    assert names == set(LENSES) - {"convergence", "evolution"}


@pytest.mark.parametrize(
    ("partner", "message"),
    [("45+67", "have different layouts"), ("459+66", "have the same answer")],
)
def test_an_unsuitable_partner_is_refused(random_inspected_problem, with_partner, partner, message):
    with pytest.raises(ProblemError, match=message):
        patching.patching(with_partner(random_inspected_problem(), partner))


def test_a_partner_that_differs_outside_the_receptive_field_is_refused(random_inspected_problem):
    with pytest.raises(ProblemError, match="does not see any difference"):
        patching.patching(random_inspected_problem(direction="both", format="parallel"))


def test_a_problem_without_a_partner_asks_for_one(random_inspected_problem):
    with pytest.raises(ProblemError, match="no single digit of 1\\+1 can be changed"):
        patching.patching(random_inspected_problem("1+1"))


def test_samples_leave_out_lines_that_are_too_long(random_inspected_problem, monkeypatch):
    inspected = random_inspected_problem()
    lengths = line_lengths(inspected.trained_model.format, inspected.sample)
    limit = int(lengths.median())
    monkeypatch.setattr("abacist.inspection.inspected_problem.LONGEST_LINE", limit)
    del inspected.__dict__["sample"]
    assert len(inspected.sample) == int((lengths <= limit).sum()) < len(lengths)
    monkeypatch.setattr("abacist.inspection.inspected_problem.LONGEST_LINE", 1)
    del inspected.__dict__["sample"]
    with pytest.raises(ProblemError, match="all lines of 30 test problems have more than 1 tokens"):
        _ = inspected.sample


def test_lines_that_are_too_long_are_refused(random_inspected_problem):
    with pytest.raises(ProblemError, match="lenses accept at most 512"):
        _ = random_inspected_problem(f"{'9' * 300}+1").lines


@pytest.mark.parametrize(
    ("name", "digits"), [("test-add", "0123456"), ("test-add-hexadecimal", "0123456789abcdef")]
)
def test_embeddings_show_the_digits_of_the_base(random_inspected_problem, name, digits):
    inspected = random_inspected_problem("12,3", column_task(name), "column-trace")
    labels = {table.name: table.labels for table in embeddings.embeddings(inspected).tables}
    assert labels["digits"] == list(digits)
