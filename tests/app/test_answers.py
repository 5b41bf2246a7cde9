"""The page reports of an answer what the model did."""

import math

import pytest
import torch

import abacist
from abacist.app import shown_runs
from abacist.app.answers import LONGEST_SHOWN, answer
from abacist.app.shown_runs import Gallery, ShownRun, open_gallery
from abacist.errors import AbacistError, ConfigurationError, ProblemError, UserError
from abacist.inspection.ablation import exact_match_with
from abacist.inspection.attention import attention
from abacist.inspection.generation import combine_hooks

KINDS = {
    "decoder": {},
    "usual order": {"format": "usual", "model.positions": "gpt2"},
    "padded": {"format": "coupled", "model.positions": "coupling"},
    "spaced": {"format.spaces": "around"},
    "encoder": {"format": "parallel", "model.direction": "both"},
    "encoder without slots": {
        "format": "mirrored",
        "model.direction": "both",
        "model.positions": "gpt2",
    },
    "looped": {"model.recurrences": 2, "model.num_layers": 2, "model.injection": "add"},
    "products": {"task": "multiply", "format": "long-multiplication", "task.max_digits": 2},
    "division": {"task": "divide", "format": "long-division", "task.max_digits": 2},
    "non-restoring division": {
        "task": "divide",
        "format": "non-restoring-division",
        "task.max_digits": 2,
    },
    "differences": {"task": "subtract", "format": "complement"},
    "sorting": {"task": "sort", "format": "labels", "task.max_numbers": 3, "task.max_digits": 2},
    "insertion sort": {"task": "sort", "format": "insertion-sort", "task.max_numbers": 3},
    "residues": {
        "task": "add-modulo",
        "task.modulus": 53,
        "format": "residues",
        "model.positions": "gpt2",
    },
}


@pytest.fixture(scope="session", params=KINDS)
def any_kind(request, tmp_path_factory, quick_settings) -> ShownRun:
    """A hardly trained run of each kind of task, format and model."""
    settings = quick_settings | KINDS[request.param] | {"training.num_steps": 10}
    if request.param == "residues":
        del settings["task.max_digits"]
    out = tmp_path_factory.mktemp("kinds") / "run"
    return ShownRun(request.param, abacist.train("add", out=out, settings=settings, threads=1))


def test_the_answer_is_that_of_solve(any_kind):
    result = answer(any_kind, any_kind.example)
    solution = any_kind.run.solve(any_kind.example)[0]
    assert (result.problem, result.answer, result.expected, result.correct) == (
        solution.problem,
        solution.answer,
        solution.expected,
        solution.correct,
    )
    assert result.correct == (
        [token.text for token in result.written] == [token.right for token in result.written]
    )


def test_a_line_is_reported_token_by_token(any_kind):
    result = answer(any_kind, any_kind.example)
    inside = result.inside
    assert [cell.written for cell in result.cells if cell.written is not None] == list(
        range(len(result.written))
    )
    keys = [cell.key for cell in result.cells if cell.key is not None]
    assert keys == list(range(len(keys)))
    assert len(inside.attention) == len(result.written)
    for weights in inside.attention:
        assert len(weights) == len(inside.heads) == len(any_kind.heads)
        for head in weights:
            assert 0 < sum(share for _, share in head) <= 1.01
            assert {key for key, _ in head} <= set(keys)
    # Whoever stops after the last layer writes what is written.
    assert inside.likeliest[-1] == [token.text for token in result.written]
    for token, probability in zip(result.written, inside.probability[-1], strict=True):
        assert math.isclose(token.probability, probability, abs_tol=1e-3)
        assert token.rival_probability <= token.probability


def test_parts_can_be_switched_off_in_every_kind(any_kind):
    assert answer(any_kind, any_kind.example, []).off == []
    result = answer(any_kind, any_kind.example, any_kind.parts)
    assert result.off == any_kind.parts
    means = answer(any_kind, any_kind.example, any_kind.parts[:1], "mean")
    assert len(means.written) >= 1


def test_attention_of_a_right_answer_is_that_of_the_lens(shown_run):
    result = answer(shown_run, "458+67")
    assert result.correct
    lens = attention(shown_run.run.look("458+67"))
    for number, query in enumerate(lens.predicting):
        for head, weights in enumerate(result.inside.attention[number]):
            for key, share in weights:
                assert math.isclose(lens.pattern.values[0, head, query, key], share, abs_tol=1e-3)


def test_a_model_with_all_heads_off_writes_what_ablation_scores(shown_run):
    off = shown_run.heads
    result = answer(shown_run, "458+67", off)
    hooks_for = shown_run.hooks(off, "zero")
    problem = shown_run.trained_model.task.parse(["458+67"])
    right = exact_match_with(shown_run.trained_model, problem, hooks_for)
    assert result.correct == bool(right.successes)
    assert not result.correct


def test_several_parts_can_be_switched_off_together(shown_run):
    one, both = (
        answer(shown_run, "458+67", shown_run.heads[:count]).written[0].probability
        for count in (1, 2)
    )
    assert one != both
    assert combine_hooks([])(None) == {}


def test_hooks_that_change_nothing_give_the_same_answer(shown_run, looped):
    for shown in (shown_run, looped):
        from abacist.inspection.generation import generate_answer

        problem = shown.trained_model.task.parse(["95+307"])
        plain = generate_answer(shown.trained_model, problem)
        hooked = generate_answer(shown.trained_model, problem, lambda lines: {})
        assert torch.equal(plain.ids, hooked.ids)
        assert plain.answer == hooked.answer


def test_long_lines_are_answered_without_attention(shown_run):
    problem = f"{10**99}+{10**99}"
    result = answer(shown_run, problem)
    assert result.inside is None
    assert result.cells == []
    assert len(result.written) >= 100
    with pytest.raises(ProblemError, match=f"the limit is {LONGEST_SHOWN}"):
        answer(shown_run, problem, shown_run.heads[:1])


@pytest.mark.parametrize(
    ("problem", "message"),
    [
        ("", "empty problem: type a sum, such as 12"),
        ("   ", "empty problem"),
        ("🧮+🦀", "cannot read"),
        ("<script>alert(1)</script>", "cannot read"),
        ("1+" + "9" * 100_000, "characters here, got 100,002"),
        ("1+" + "9" * 90_000, "an operand of 90,000 digits; at most 1,000 are accepted"),
        ("1+2+3", "it has 3 numbers"),
        ("1" * 50 + "+\n\n+2", "cannot read"),
        (5, "a problem is a text such as 12"),
    ],
)
def test_invalid_problems_are_refused_in_one_line(shown_run, problem, message):
    with pytest.raises(UserError) as caught:
        answer(shown_run, problem)
    result = str(caught.value)
    assert message in result
    assert "\n" not in result
    assert len(result) < 300


@pytest.mark.parametrize("digits", [400, 1_000])
def test_the_longest_problems_are_answered(shown_run, digits, monkeypatch):
    # A busy machine takes longer than a visitor would wait.
    monkeypatch.setattr(shown_runs, "MAX_SECONDS", 300.0)
    result = answer(shown_run, f"{'9' * digits}+1")
    assert len(result.expected) == digits + 1


def test_a_line_that_would_be_too_long_is_refused(tmp_path, quick_settings):
    settings = quick_settings | KINDS["products"] | {"training.num_steps": 10}
    run = abacist.train("add", out=tmp_path / "run", settings=settings, threads=1)
    with pytest.raises(
        UserError, match=r"can have [\d,]+ tokens, and the page accepts at most 4,000"
    ):
        answer(ShownRun("products", run), f"{'9' * 500}*{'9' * 500}")


def test_a_model_that_writes_for_too_long_is_stopped(shown_run, monkeypatch):
    monkeypatch.setattr(shown_runs, "MAX_SECONDS", 0.0)
    monkeypatch.setattr(shown_run, "seconds_per_token", None)
    with pytest.raises(ProblemError, match="not finished after 0 s"):
        answer(shown_run, "12+34")


def test_unknown_parts_values_and_runs_are_refused(shown_run):
    with pytest.raises(ConfigurationError, match="did you mean 'head"):
        answer(shown_run, "12+34", ["head O"])
    with pytest.raises(ConfigurationError, match="zero or mean"):
        answer(shown_run, "12+34", ["head 0"], "half")
    with pytest.raises(ConfigurationError, match="unknown run"):
        Gallery([shown_run]).find("another")
    with pytest.raises(AbacistError, match="at most 8 runs"):
        open_gallery(["run"] * 9)


def test_runs_of_equal_name_are_numbered(learned):
    path = str(learned.path)
    assert open_gallery([path, path], "cpu").names == ["learned", "learned (2)"]
