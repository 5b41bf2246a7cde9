"""The suite `recurrences`: the same weights, run more or fewer times."""

import torch
from trained_models import ignored, random_model

from abacist.models.teacher_forcing import teacher_forced
from abacist.scoring.exact_match import exact_match
from abacist.scoring.recurrence_counts import RECURRENCES, with_recurrences
from abacist.scoring.samples import as_in_training


def test_every_number_of_recurrences_has_a_row_on_trained_and_doubled_lengths():
    trained_model = random_model(recurrences=3, injection="add")
    section = RECURRENCES.run(trained_model, ignored)
    names = [row.name for row in section.rows]
    assert [name for name in names if name.startswith("trained")] == [
        "trained lengths, 1 recurrence",
        "trained lengths, 2 recurrences",
        "trained lengths, 3 recurrences (as in training)",
        "trained lengths, 4 recurrences",
        "trained lengths, 8 recurrences",
        "trained lengths, 16 recurrences",
        "trained lengths, 32 recurrences",
    ]
    assert names[7] == "6 digits, 1 recurrence"
    as_trained = section.rows[2]
    problems = as_in_training(trained_model, 10, "recurrences")
    verdicts = exact_match(trained_model, problems)
    assert as_trained.proportion == verdicts.proportion
    assert as_trained.smallest_margin == float(verdicts.margins.min())


def test_a_copy_with_other_recurrences_equals_the_model_run_that_many_times():
    trained_model = random_model(recurrences=2, injection="linear")
    problems = as_in_training(trained_model, 10, "recurrences")
    lines = trained_model.format.write(problems, trained_model.task.answer(problems))
    for count in (1, 2, 5):
        logits = teacher_forced(trained_model.model, lines, recurrences=count).logits
        copied = teacher_forced(with_recurrences(trained_model.model, count), lines).logits
        torch.testing.assert_close(logits, copied, rtol=0, atol=0)


def test_a_model_without_recurrence_is_refused_with_what_to_type():
    assert "Train with --model.recurrences 8" in RECURRENCES.obstacle(random_model())
