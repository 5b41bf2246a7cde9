"""Every lens against a direct computation."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from abacist.errors import ConfigurationError, ProblemError
from abacist.evaluation.exact_match import exact_match, line_lengths
from abacist.formats.annotated import EVERYWHERE, Field
from abacist.inspection import ablation, carry_probe, embeddings, patching
from abacist.inspection.attention import attention
from abacist.inspection.attribution import attribution
from abacist.inspection.cache import run_with_cache
from abacist.inspection.carries import carries
from abacist.inspection.first_mistake import first_mistake
from abacist.inspection.lens import LENSES, chosen
from abacist.inspection.lines import write_lines
from abacist.inspection.logit_lens import logit_lens
from abacist.inspection.next_tokens import next_tokens
from abacist.inspection.place_attention import DIFFERENCES, WIDEST, place_attention
from abacist.inspection.recurrences import recurrences
from abacist.intervals import Proportion
from abacist.models.teacher_forcing import teacher_forced
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
def specimen(request, random_specimen):
    return random_specimen(**request.param)


@pytest.fixture
def logits(specimen):
    model, lines = specimen.subject.model, specimen.lines
    with torch.no_grad():
        return model(lines.tokens.ids, lines.coordinates)[0]


def test_every_lens_that_has_a_use_tells_json(specimen):
    for name, lens in chosen(["all"], specimen).items():
        told = json.loads(json.dumps(lens.look(specimen).to_json(), allow_nan=False))
        assert told, name


@pytest.mark.parametrize("kind", NO_CARRIES)
def test_lenses_look_at_what_has_no_carries_too(random_specimen, kind):
    specimen = random_specimen(**NO_CARRIES[kind])
    lenses = chosen(["all"], specimen)
    assert set(LENSES) - set(lenses) == {"recurrences", "evolution", "patching", "carry-probe"}
    for name, lens in lenses.items():
        told = json.loads(json.dumps(lens.look(specimen).to_json(), allow_nan=False))
        assert told, name
    assert first_mistake(specimen).carry_chain is None


def test_next_tokens_are_the_largest_probabilities(specimen, logits):
    found = next_tokens(specimen, count=4)
    probability = logits.double().softmax(dim=-1).numpy()
    tokens = specimen.subject.format.vocabulary.tokens
    for row, names, shown in zip(
        probability, found.likeliest, found.probability.values, strict=True
    ):
        order = np.argsort(-row)[:4]
        assert names == [tokens[token] for token in order]
        np.testing.assert_allclose(shown, row[order], rtol=1e-4)


def test_what_tokens_predict_is_what_scoring_asks_for(specimen):
    subject = specimen.subject
    whole = subject.format.write(specimen.problem, subject.task.answer(specimen.problem))
    forced = teacher_forced(subject.model, whole)
    labels = forced.labels[0].tolist()
    vocabulary = subject.format.vocabulary
    assert specimen.right == [vocabulary.tokens[label] for label in labels if label >= 0]


def test_attention_rows_sum_to_1(specimen):
    pattern = attention(specimen).pattern
    assert pattern.axes == ("depth", "head", "query", "key")
    assert pattern.values.shape[0] == specimen.subject.model.depth
    np.testing.assert_allclose(pattern.values.sum(axis=-1), 1, rtol=1e-5)


def test_attention_by_difference_of_place_is_that_of_a_loop(random_specimen):
    specimen = random_specimen(positions="nope", num_layers=2)
    found = place_attention(specimen)
    totals = np.zeros((2, 2, len(found.fields), len(DIFFERENCES)))
    count = 0
    for row in range(len(specimen.sample)):
        one = replace(specimen, problem=specimen.sample[row : row + 1])
        pattern, tokens = attention(one).pattern.values, one.lines.tokens
        place, field = tokens.place[0].tolist(), tokens.field[0].tolist()
        for query in one.predicting:
            count += 1
            for key in range(len(place)):
                kind = Field(field[key]).name.lower() if field[key] < Field.OPERAND else None
                name = kind or f"operand {field[key] - Field.OPERAND + 1}"
                if name not in found.fields:
                    assert pattern[:, :, query, key].max() == 0
                    continue
                apart = max(-WIDEST, min(WIDEST, place[key] - place[query]))
                label = DIFFERENCES[apart + WIDEST]
                if place[key] == EVERYWHERE:
                    label = "every column"
                elif place[key] < 0 or place[query] < 0:
                    label = "no column"
                at = (found.fields.index(name), DIFFERENCES.index(label))
                totals[:, :, at[0], at[1]] += pattern[:, :, query, key]
    assert found.num_tokens == count
    assert found.num_problems == len(specimen.sample)
    np.testing.assert_allclose(found.weight.values, totals / count, atol=1e-6)


def test_attention_by_difference_of_place_sums_to_1(specimen):
    found = place_attention(specimen)
    np.testing.assert_allclose(found.weight.values.sum(axis=(2, 3)), 1, rtol=1e-5)


def test_a_window_shows_in_the_attention_by_place(random_specimen):
    found = place_attention(random_specimen())
    far = [d for d in DIFFERENCES if d not in ("0", "+1", "every column", "no column")]
    columns = [DIFFERENCES.index(d) for d in far]
    assert found.weight.values[..., columns].max() == 0


def test_the_last_stage_of_the_logit_lens_is_the_models_own_answer(specimen, logits):
    found = logit_lens(specimen)
    labels = specimen.lines.labels[0, specimen.predicting]
    probability = logits[specimen.predicting].softmax(dim=-1)
    own = probability.gather(-1, labels.unsqueeze(-1)).squeeze(-1)
    np.testing.assert_allclose(found.probability.values[-1], own, rtol=1e-4, atol=1e-7)
    assert len(found.stages) == len(found.likeliest) == 1 + 2 * specimen.subject.model.depth


def test_contributions_sum_to_the_lead_of_the_right_token(specimen, logits):
    found = attribution(specimen)
    labels = specimen.lines.labels[0]
    for number, token in enumerate(specimen.predicting):
        row = logits[token].double()
        right = float(row[labels[token]])
        row[labels[token]] = -torch.inf
        assert found.lead.values[number] == pytest.approx(right - float(row.max()), abs=1e-4)
    total = found.contribution.values.sum(axis=0)
    np.testing.assert_allclose(total, found.lead.values, atol=2e-4)


def test_the_contribution_of_a_head_is_what_its_output_gives_alone(random_specimen):
    specimen = random_specimen(final_norm=False, biases=())
    model, lines, found = specimen.subject.model, specimen.lines, attribution(specimen)
    _, cache = run_with_cache(model, lines.tokens.ids, lines.coordinates)
    names = specimen.subject.format.vocabulary.tokens
    width, output = model.config.width_of_head, model.blocks[0].attention.output.weight.detach()
    unembedding = model.head.weight.detach()
    for head in range(2):
        z = cache["z", 0][0, :, head]
        written = z @ output[:, head * width : (head + 1) * width].t()
        for number, token in enumerate(specimen.predicting):
            pair = [names.index(found.right[number]), names.index(found.runner_up[number])]
            direction = unembedding[pair[0]] - unembedding[pair[1]]
            shown = found.contribution.values[found.components.index(f"head {head}"), number]
            assert shown == pytest.approx((written[token] @ direction).item(), abs=1e-5)


def test_ablating_nothing_changes_nothing(specimen):
    subject = specimen.subject
    verdicts = exact_match(subject.model, subject.task, subject.format, specimen.sample)
    whole = ablation.exact_match_with(subject, specimen.sample, lambda lines: {})
    assert whole == verdicts.proportion


def test_ablation_scores_every_head_and_mlp_without_it(random_specimen):
    specimen = random_specimen(num_layers=2)
    found = ablation.ablation(specimen)
    labels = [part.component for part in found.without]
    assert labels == ["head 0.0", "head 0.1", "MLP 0", "head 1.0", "head 1.1", "MLP 1"]
    assert {part.zero.n for part in found.without} == {len(specimen.sample)}


def test_zero_ablation_of_a_head_is_an_output_matrix_without_it(certified):
    specimen = certified.look("12+34", num_problems=40)
    zero = [part.zero for part in ablation.ablation(specimen).without if "head" in part.component]
    output = specimen.subject.model.blocks[0].attention.output.weight
    before = output.detach().clone()
    width = specimen.subject.model.config.width_of_head
    for head, found in enumerate(zero):
        with torch.no_grad():
            output[:, head * width : (head + 1) * width] = 0
            subject = specimen.subject
            lost = exact_match(subject.model, subject.task, subject.format, specimen.sample)
            output.copy_(before)
        assert found == lost.proportion
    assert any(found.errors for found in zero)


def test_patching_every_token_before_the_first_layer_gives_the_other_run(specimen):
    found = patching.patching(specimen)
    everywhere = dict(zip(found.components, found.effect_everywhere.values, strict=True))
    assert everywhere["last residual"] == pytest.approx(1, abs=1e-3)
    if specimen.subject.model.config.injection == "none":
        assert everywhere["embedding"] == pytest.approx(1, abs=1e-3)
    assert found.effect.values.shape == (len(found.components), len(found.tokens))


def test_patching_a_head_is_a_run_with_its_mixture_of_the_other_problem(
    random_specimen, with_partner
):
    specimen = with_partner(random_specimen(), "453+67")
    model, own = specimen.subject.model, specimen.lines
    found = patching.patching(specimen)
    other = write_lines(specimen.subject, specimen.partner)
    _, cache = run_with_cache(model, other.tokens.ids, other.coordinates)
    token = found.predicting

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
    shown = found.effect.values[found.components.index("head 1"), token]
    assert shown == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("problem", ["458+67", "12345+67890", "999+111", "55+55", "1274+425"])
def test_the_partner_made_differs_in_one_digit_and_one_carry(random_specimen, problem):
    specimen = random_specimen(problem)
    task, partner = specimen.subject.task, patching.make_partner(specimen)
    (text,) = task.expressions(partner)
    assert sum(a != b for a, b in zip(text, problem, strict=True)) == 1
    assert (
        int(
            (
                carries(specimen.subject, partner) != carries(specimen.subject, specimen.problem)
            ).sum()
        )
        == 1
    )
    found = patching.patching(specimen)
    assert found.partner == text
    assert found.right != found.partner_right


def test_carries_are_those_of_integers(random_specimen):
    specimen = random_specimen("987+55")
    assert carries(specimen.subject, specimen.problem).tolist() == [[0, 1, 1, 1]]


def test_carries_of_running_sums_are_those_of_the_last_addition(random_specimen):
    specimen = random_specimen(**KINDS["running sums"])
    problems = specimen.subject.task.parse(["48+67+105", "95+5", "1+2+999"])
    found = carries(specimen.subject, problems)[:, :4].tolist()
    assert found == [[0, 1, 0, 0], [0, 1, 1, 0], [0, 1, 1, 1]]
    partner = patching.make_partner(specimen)
    (text,) = specimen.subject.task.expressions(partner)
    assert sum(a != b for a, b in zip(text, "48+67+105", strict=True)) == 1
    changed = carries(specimen.subject, partner) != carries(specimen.subject, specimen.problem)
    assert int(changed.sum()) == 1


def test_a_probe_is_the_direct_solution_of_its_equations():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(50, 4, generator=generator, dtype=torch.float64)
    bit = x[:, 0] + 0.1 * x[:, 1] > 0.3
    weights = carry_probe.fit(x, bit)
    design = np.hstack([x.numpy(), np.ones((50, 1))])
    rooted = np.sqrt(0.01 * 50) * np.eye(5)[:4]
    target = np.where(bit.numpy(), 1.0, -1.0)
    stacked, wanted = np.vstack([design, rooted]), np.concatenate([target, np.zeros(4)])
    direct, *_ = np.linalg.lstsq(stacked, wanted, rcond=None)
    np.testing.assert_allclose(weights.numpy(), direct, rtol=1e-9)
    assert float((carry_probe.decide(x, weights) == bit).double().mean()) > 0.9


def test_probes_are_judged_on_problems_they_have_not_seen(certified):
    found = carry_probe.carry_probe(certified.look("12+34", num_problems=100))
    assert found.num_training_problems + found.num_held_out_problems == 100
    together = {probe.stage: probe for probe in found.probes if probe.place is None}
    last = together["0 MLP"]
    assert last.accuracy.value > last.majority
    by_place = [p for p in found.probes if p.place is not None and p.stage == "0 MLP"]
    assert all(probe.place > 1 for probe in by_place), "no carry goes into the units"
    assert sum(probe.accuracy.n for probe in by_place) <= last.accuracy.n


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


def test_embeddings_show_learned_places_too(random_specimen):
    found = embeddings.embeddings(random_specimen(positions="abacus"))
    assert [table.name for table in found.tables] == ["digits", "learned place"]
    assert found.tables[1].labels[0] == "1"
    for table in found.tables:
        assert table.points.values.shape == (len(table.labels), 3)
        np.testing.assert_allclose(table.points.values.mean(axis=0), 0, atol=1e-9)


def test_evolution_ends_with_the_tables_as_they_are(random_specimen):
    specimen = random_specimen()
    last = specimen.subject.model.embedding.weight.detach()
    specimen = replace(specimen, history={0: {"tokens": last * 0.5}, 10: {"tokens": last}})
    (table,) = embeddings.evolution(specimen).tables
    (now,) = embeddings.embeddings(specimen).tables
    assert table.steps == [0, 10]
    np.testing.assert_allclose(table.points.values[-1], now.points.values, atol=1e-9)
    np.testing.assert_allclose(table.points.values[0], now.points.values / 2, atol=1e-6)
    np.testing.assert_allclose(table.spectrum.values[0], now.spectrum.values, rtol=1e-5)


def test_a_looped_model_is_nearest_to_the_fixed_point_at_the_end(random_specimen):
    specimen = random_specimen(recurrences=2, injection="add", norm_order="post")
    found = recurrences(specimen)
    assert found.trained == 2
    assert found.distance.values.shape == (8,)
    assert found.distance.values[-1] == 0
    assert found.distance.values[-2] == pytest.approx(found.step.values[-1])


def test_the_first_mistake_is_the_first_wrong_digit(random_specimen):
    specimen = random_specimen()
    found, parts = first_mistake(specimen), attribution(specimen)
    number = int(np.flatnonzero(parts.lead.values <= 0)[0])
    assert found.is_mistake
    assert found.right == specimen.right[number]
    assert found.before == "".join(specimen.right[:number])
    assert found.contribution.values.sum() == pytest.approx(found.margin, abs=1e-4)
    assert list(found.contribution.values) == sorted(found.contribution.values)


def test_without_a_mistake_the_least_certain_digit_is_explained(certified):
    found = first_mistake(certified.look("999+1"))
    assert not found.is_mistake
    assert found.margin > 0
    assert (found.carry_chain or 0) <= 3


def test_wrong_answers_of_whole_samples_are_told_with_their_number(random_specimen):
    found = ablation.ablation(random_specimen())
    assert isinstance(found.whole, Proportion)
    assert found.to_json()["whole"]["n"] == 30


REFUSALS = {
    "recurrences": ({}, "runs its layers once"),
    "evolution": ({}, "no copies of the embeddings were kept"),
    "carry-probe": ({"task": "multiply", "problem": "12*34"}, "a task of sums only"),
    "patching": ({"task": "multiply", "problem": "12*34"}, "behind --with"),
    "attnetion": ({}, "did you mean 'attention'"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_a_lens_without_use_says_why_in_one_line(random_specimen, name):
    settings, said = REFUSALS[name]
    with pytest.raises(ConfigurationError, match=said) as caught:
        chosen([name], random_specimen(**settings))
    assert "\n" not in str(caught.value)


def test_all_leaves_out_what_has_no_use(random_specimen):
    names = set(chosen(["all"], random_specimen()))
    assert names == set(LENSES) - {"recurrences", "evolution"}


@pytest.mark.parametrize(
    ("partner", "said"),
    [("45+67", "not written alike"), ("459+66", "have the same answer")],
)
def test_a_partner_that_cannot_be_patched_from_is_refused(
    random_specimen, with_partner, partner, said
):
    with pytest.raises(ProblemError, match=said):
        patching.patching(with_partner(random_specimen(), partner))


def test_a_partner_whose_difference_is_out_of_reach_is_refused(random_specimen):
    with pytest.raises(ProblemError, match="does not see what differs"):
        patching.patching(random_specimen(direction="both", format="parallel"))


def test_a_problem_without_a_partner_asks_for_one(random_specimen):
    with pytest.raises(ProblemError, match="no single digit of 1\\+1 can be changed"):
        patching.patching(random_specimen("1+1"))


def test_means_leave_out_lines_too_long(random_specimen, monkeypatch):
    specimen = random_specimen()
    lengths = line_lengths(specimen.subject.format, specimen.sample)
    limit = int(lengths.median())
    monkeypatch.setattr("abacist.inspection.specimen.LONGEST_LINE", limit)
    del specimen.__dict__["sample"]
    assert len(specimen.sample) == int((lengths <= limit).sum()) < len(lengths)
    monkeypatch.setattr("abacist.inspection.specimen.LONGEST_LINE", 1)
    del specimen.__dict__["sample"]
    with pytest.raises(ProblemError, match="no line of 30 test problems has 1 tokens or fewer"):
        _ = specimen.sample


def test_lines_too_long_to_look_into_are_refused(random_specimen):
    with pytest.raises(ProblemError, match="too long to look into, at most 512"):
        _ = random_specimen(f"{'9' * 300}+1").lines
