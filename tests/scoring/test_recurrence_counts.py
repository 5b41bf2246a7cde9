"""The suite `recurrences`: the same weights, run more or fewer times."""

import torch
from trained_models import ignored, random_model

from abacist.models.teacher_forcing import teacher_forced
from abacist.scoring.exact_match import exact_match
from abacist.scoring.recurrence_counts import RECURRENCES, with_recurrences
from abacist.scoring.samples import as_in_training


def test_every_number_of_loops_has_a_row_on_trained_and_doubled_lengths():
    trained_model = random_model(recurrences=3, injection="add")
    section = RECURRENCES.run(trained_model, ignored)
    names = [row.name for row in section.rows]
    assert [name for name in names if name.startswith("trained")] == [
        "trained lengths, 1 loop",
        "trained lengths, 2 loops",
        "trained lengths, 3 loops (as in training)",
        "trained lengths, 4 loops",
        "trained lengths, 8 loops",
        "trained lengths, 16 loops",
        "trained lengths, 32 loops",
    ]
    assert names[7] == "6 digits, 1 loop"
    as_trained = section.rows[2]
    problems = as_in_training(trained_model, 10, "recurrences")
    judged = exact_match(trained_model, problems)
    assert as_trained.proportion == judged.proportion
    assert as_trained.smallest_margin == float(judged.margins.min())


def test_a_looped_copy_computes_what_the_model_does_when_told_so():
    trained_model = random_model(recurrences=2, injection="linear")
    problems = as_in_training(trained_model, 10, "recurrences")
    lines = trained_model.format.write(problems, trained_model.task.answer(problems))
    for count in (1, 2, 5):
        told = teacher_forced(trained_model.model, lines, recurrences=count).logits
        copied = teacher_forced(with_recurrences(trained_model.model, count), lines).logits
        torch.testing.assert_close(told, copied, rtol=0, atol=0)


def test_a_model_without_recurrence_is_refused_with_what_to_type():
    assert "Train with --model.recurrences 8" in RECURRENCES.obstacle(random_model())
