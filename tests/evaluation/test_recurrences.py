"""The suite `recurrences`: the same weights, run more or fewer times."""

import torch
from subjects import ignored, random_subject

from abacist.evaluation.exact_match import exact_match
from abacist.evaluation.recurrences import RECURRENCES, with_recurrences
from abacist.evaluation.samples import as_in_training
from abacist.models.teacher_forcing import teacher_forced


def test_every_number_of_loops_has_a_row_on_trained_and_doubled_lengths():
    subject = random_subject(recurrences=3, injection="add")
    section = RECURRENCES.run(subject, ignored)
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
    problems = as_in_training(subject, 10, "recurrences")
    judged = exact_match(subject.model, subject.task, subject.format, problems)
    assert as_trained.proportion == judged.proportion
    assert as_trained.smallest_margin == float(judged.margins.min())


def test_a_looped_copy_computes_what_the_model_does_when_told_so():
    subject = random_subject(recurrences=2, injection="linear")
    problems = as_in_training(subject, 10, "recurrences")
    lines = subject.format.write(problems, subject.task.answer(problems))
    for count in (1, 2, 5):
        told = teacher_forced(subject.model, lines, recurrences=count).logits
        copied = teacher_forced(with_recurrences(subject.model, count), lines).logits
        torch.testing.assert_close(told, copied, rtol=0, atol=0)


def test_a_model_without_recurrence_is_refused_with_what_to_type():
    assert "Train with --model.recurrences 8" in RECURRENCES.obstacle(random_subject())
