"""The scorecard: honest samples, and real failures."""

import json

import pytest
import torch

from abacist.data.split import in_split
from abacist.scoring import lengths as module
from abacist.scoring.exact_match import batches_by_length, exact_match, line_lengths
from abacist.tasks.problems import Problems, Shapes


def _draws(run):
    return list(module._draws(run.task, run.recipe.split, run.recipe.scoring, run.seed))


def test_every_scored_problem_but_the_probes_is_of_the_test_split(untrained):
    for draw in _draws(untrained):
        problems = draw.draw()
        if draw.kind != "probe":
            assert bool(in_split(problems, "test", untrained.recipe.split).all()), draw.name


def test_no_problem_is_counted_twice(untrained):
    for draw in _draws(untrained):
        expressions = untrained.task.expressions(draw.draw())
        assert len(set(expressions)) == len(expressions), draw.name


def test_long_operands_get_the_stated_number_of_problems(certified):
    counts = {draw.name: draw.num_problems for draw in _draws(certified)}
    assert counts["≤ 10 digits, all pairs"] == 10_000
    assert counts["100 digits"] == counts["100 digits, unequal"] == 1_000
    assert counts["1,000 digits"] == 200
    assert counts["10,000 digits"] == 20


def test_a_certified_model_makes_no_error_on_the_scorecard(certified):
    card = certified.score(num_problems=50)
    assert card.errors == 0
    assert card.failures == []
    assert all(row.smallest_margin > 0 for row in card.rows)
    assert json.loads(certified.directory.scorecard.read_text())["errors"] == 0


def test_failures_are_real_and_kept_with_what_the_model_wrote(untrained):
    card = untrained.score()
    assert card.errors > 0
    assert 0 < len(card.failures) <= 100
    lines = untrained.directory.failures.read_text().splitlines()
    assert len(lines) == len(card.failures)
    for line in lines:
        failure = json.loads(line)
        a, b = map(int, failure["problem"].split("+"))
        assert failure["expected"] == str(a + b)
        assert failure["answer"] != failure["expected"]
        assert failure["correct"] is False


def test_one_pass_and_generation_give_the_same_verdicts(untrained, certified):
    for run in (untrained, certified):
        problems = untrained.task.draw(
            untrained.task.draw_shapes(300, torch.Generator().manual_seed(1)),
            torch.Generator().manual_seed(2),
        )
        verdicts = exact_match(run.trained_model(), problems).correct
        solutions = run.solve(run.task.expressions(problems))
        assert verdicts.tolist() == [solution.correct for solution in solutions]


def test_margins_of_the_one_pass_are_those_of_generation_where_the_answer_is_right(certified):
    problems = Problems.from_integers([(12, 34), (999, 1), (5, 123456)])
    one_pass = exact_match(certified.trained_model(), problems).margins
    generated = [s.margin for s in certified.solve(certified.task.expressions(problems))]
    torch.testing.assert_close(one_pass, torch.tensor(generated).double(), atol=1e-3, rtol=1e-4)


def test_batches_cover_every_problem_once_and_bound_their_tokens(untrained):
    lengths = torch.randint(1, 3_000, (500, 2), generator=torch.Generator().manual_seed(0))
    problems = Problems(torch.zeros(500, 2, 1, dtype=torch.uint8), Shapes.of(lengths, "+"))
    sizes = line_lengths(untrained.format, problems)
    batches = list(batches_by_length(sizes))
    assert sorted(torch.cat(batches).tolist()) == list(range(500))
    for rows in batches:
        tokens = (lengths[rows].sum(dim=1) + lengths[rows].amax(dim=1) + 5).max() * len(rows)
        assert tokens <= 65_536


def test_rows_beyond_learned_positions_have_no_score_and_a_note(tmp_path, quick_settings):
    import abacist

    settings = quick_settings | {
        "model.positions": "gpt2",
        "model.positions.0.num_positions": "64",
        "scoring.longest": 100,
    }
    run = abacist.train("add", out=tmp_path / "gpt2", settings=settings, threads=1)
    rows = {row.name: row for row in run.score().rows}
    assert rows["50 digits"].proportion is None
    assert "learned positions end at index 63" in rows["50 digits"].note
    assert rows["3 digits"].proportion is not None


def test_batches_bound_the_pairs_of_models_without_a_window(untrained):
    lengths = torch.randint(1, 900, (200, 2), generator=torch.Generator().manual_seed(0))
    problems = Problems(torch.zeros(200, 2, 1, dtype=torch.uint8), Shapes.of(lengths, "+"))
    sizes = line_lengths(untrained.format, problems)
    batches = list(batches_by_length(sizes, quadratic=True))
    assert sorted(torch.cat(batches).tolist()) == list(range(200))
    for rows in batches:
        tokens = (lengths[rows].sum(dim=1) + lengths[rows].amax(dim=1) + 5).max()
        assert len(rows) == 1 or tokens**2 * len(rows) <= 1 << 23


def test_a_line_too_long_for_all_pairs_is_refused_with_the_limit(tmp_path, quick_settings):
    import abacist
    from abacist.errors import ProblemError

    settings = quick_settings | {"model.positions": "nope"}
    run = abacist.train("add", out=tmp_path / "nope", settings=settings, threads=1)
    with pytest.raises(ProblemError, match="at most 8,192"):
        run.solve(["1" * 5_000 + "+" + "1" * 5_000])
