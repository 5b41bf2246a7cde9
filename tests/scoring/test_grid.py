"""The suite `grid`: every cell agrees with slower ways to score it."""

from dataclasses import replace

import pytest
import torch
from trained_models import ignored, random_model

from abacist.data.split import in_split
from abacist.models.config import POSITIONS
from abacist.reports import score_plots
from abacist.scoring import grid as module
from abacist.scoring.exact_match import exact_match
from abacist.scoring.grid import GRID
from abacist.scoring.records import Section
from abacist.scoring.recurrence_counts import with_recurrences
from abacist.scoring.solving import solve
from abacist.tasks.config import TASKS


@pytest.fixture
def drawn(monkeypatch):
    """All problems that a grid draws, batch by batch."""
    batches = []
    draw = module.draw_of_lengths

    def recorded(*arguments):
        batches.append(draw(*arguments))
        return batches[-1]

    monkeypatch.setattr(module, "draw_of_lengths", recorded)
    return batches


def test_cells_agree_with_generation_problem_by_problem(half_right, drawn):
    section = GRID.run(half_right, ignored)
    size = 6
    right = [[0] * size for _ in range(size)]
    count = [[0] * size for _ in range(size)]
    for problems in drawn:
        assert bool(in_split(problems, "test", half_right.split).all())
        for solution in solve(half_right, problems):
            a, b = solution.problem.split("+")
            right[len(a) - 1][len(b) - 1] += solution.answer == str(int(a) + int(b))
            count[len(a) - 1][len(b) - 1] += 1
    assert section.details["right"] == right
    assert section.details["count"] == count
    assert 0 < sum(map(sum, right)) < sum(map(sum, count))


def test_cells_agree_with_exact_match_on_each_cell_alone(half_right, drawn):
    section = GRID.run(half_right, ignored)
    for problems in drawn:
        for a, b in problems.lengths_BN.unique(dim=0).tolist():
            cell = problems[(problems.lengths_BN == torch.tensor([a, b])).all(dim=1)]
            alone = exact_match(half_right, cell)
            assert section.details["right"][a - 1][b - 1] == alone.proportion.successes
            assert section.details["count"][a - 1][b - 1] == len(cell)


def test_the_average_counts_cells_alike_and_rows_count_problems(half_right):
    section = GRID.run(half_right, ignored)
    right, count = (torch.tensor(section.details[name]) for name in ("right", "count"))
    assert section.details["average"] == pytest.approx(float((right / count).mean()))
    rows = {row.name: row.proportion for row in section.rows}
    assert (rows["all cells"].successes, rows["all cells"].n) == (
        int(right.sum()),
        int(count.sum()),
    )
    regions = ("both ≤ 3 digits", "one > 3 digits", "both > 3 digits")
    assert sum(rows[name].n for name in regions) == rows["all cells"].n
    assert rows["equal lengths"].n == int(count.diagonal().sum())


def test_ctrl_c_leaves_whole_squares(half_right):
    def interrupt(name, done, total):
        if "square 4" in name:
            raise KeyboardInterrupt

    section = GRID.run(half_right, interrupt)
    count = torch.tensor(section.details["count"])
    assert section.complete is False
    assert "interrupted in square 4" in section.title
    assert bool((count[:3, :3] > 0).all())
    assert int(count[3:].sum()) == int(count[:, 3:].sum()) == 0
    assert section.details["average"] is not None


def test_a_looped_model_has_a_grid_for_each_number_of_recurrences():
    scoring = {"grid_size": 2, "grid_problems": 5, "recurrences": (1, 4)}
    trained_model = random_model(recurrences=2, injection="add", scoring=scoring)
    section = GRID.run(trained_model, ignored)
    by_count = section.details["recurrences"]
    assert list(by_count) == ["1", "2", "4"]
    assert by_count["2"]["right"] == section.details["right"]
    alone = replace(trained_model, scoring=replace(trained_model.scoring, recurrences=()))
    assert GRID.run(alone, ignored).details["right"] == section.details["right"]
    four = replace(alone, model=with_recurrences(alone.model, 4))
    assert GRID.run(four, ignored).details["right"] == by_count["4"]["right"]
    names = [row.name for row in section.rows]
    assert "all cells, 2 recurrences (as in training)" in names
    assert "all cells, 4 recurrences" in names
    titles = [heat_map.title for heat_map in score_plots.grids(section.details)]
    assert [title.partition(":")[0] for title in titles] == [
        "1 recurrence", "2 recurrences", "4 recurrences"
    ]  # fmt: skip
    not_looped = random_model(scoring=scoring)
    assert "runs its layers once" in GRID.obstacle(not_looped)


def test_a_grid_names_its_best_and_its_worst_cell():
    details = {"right": [[5, 5], [4, 1]], "count": [[5, 5], [5, 5]], "average": 0.75}
    section = Section("grid", [], details=details)
    assert "Best cell: 1 and 2 digits, 5 of 5 right; worst cell: 2 and 2 digits, 1 of 5 right" in (
        score_plots.remarks(section)
    )


def test_pieces_cover_a_square_and_bound_the_number_of_digits_drawn_together(monkeypatch):
    monkeypatch.setattr(module, "_DIGITS_AT_ONCE", 100)
    for square, per_cell in ((1, 7), (5, 3), (5, 30), (40, 4), (200, 2)):
        pieces = list(module._pieces(square, per_cell))
        cells = torch.cat(pieces)
        assert len(cells) == (2 * square - 1) * per_cell
        assert len(cells.unique(dim=0)) == 2 * square - 1
        assert bool((cells.amax(dim=1) == square).all())
        assert all(len(piece) <= max(1, 100 // (2 * square)) for piece in pieces)


def test_progress_ends_at_its_total(half_right):
    progress = []
    GRID.run(half_right, lambda name, done, total: progress.append((done, total)))
    assert [done for done, _ in progress] == sorted(done for done, _ in progress)
    assert progress[-1][0] == progress[-1][1]


def test_several_operations_share_a_cell():
    trained_model = random_model(
        TASKS["five-operations"], scoring={"grid_size": 3, "grid_problems": 20}
    )
    section = GRID.run(trained_model, ignored)
    assert section.details["count"][2][1] == 20


def test_a_grid_beyond_learned_positions_says_what_can_be_scored():
    (scheme,) = POSITIONS["gpt2"]
    trained_model = random_model(positions="gpt2")
    few = replace(scheme, num_positions=32)
    trained_model = random_model(positions="nope")
    trained_model = replace(trained_model, model=_with_positions(trained_model, few))
    asked = replace(trained_model, scoring=replace(trained_model.scoring, grid_size=30))
    message = GRID.obstacle(asked)
    assert "learned positions end at index 31" in message
    assert "Lengths up to 9 by 9 digits can be scored: type --grid-size 9." in message
    assert "\n" not in message
    assert GRID.obstacle(replace(asked, scoring=replace(asked.scoring, grid_size=9))) is None
    assert GRID.obstacle(trained_model) is None
    few_problems = replace(trained_model, scoring=replace(trained_model.scoring, grid_problems=2))
    assert len(GRID.run(few_problems, ignored).details["count"]) == 6


def _with_positions(trained_model, scheme):
    from abacist.models.transformer import Transformer

    config = replace(trained_model.model.config, positions=(scheme,))
    return Transformer(config, len(trained_model.format.vocabulary)).eval()


def test_a_grid_beyond_a_padded_notation_says_what_can_be_scored():
    trained_model = random_model(format="zero-padded", scoring={"grid_size": 5})
    assert "type --grid-size 3" in GRID.obstacle(trained_model)


@pytest.mark.parametrize("task", ["add-many", "sort", "add-modulo"])
def test_a_grid_is_for_two_operands(task):
    format = {"sort": "labels", "add-modulo": "residues"}.get(task, "reversed")
    trained_model = random_model(TASKS[task], format, positions="index-relative")
    assert "lengths of two operands" in GRID.obstacle(trained_model)


def test_the_size_is_twice_the_training_lengths_and_at_most_40(half_trained, certified):
    assert module._size(half_trained.trained_model()) == 6
    assert module._size(certified.trained_model()) == 20
    assert module._size(certified.trained_model(grid_size=3)) == 3
