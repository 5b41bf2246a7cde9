"""Each digit of a sum or difference is explained by its column."""

from abacist.app.explanations import explanations
from abacist.data.config import SplitConfig
from abacist.formats.config import FORMATS
from abacist.scoring.config import ScoringConfig
from abacist.scoring.trained_model import TrainedModel
from abacist.tasks.config import TASKS


def explained(shown_run, task_name, format_name, text, count):
    """Explanations for a task and format; the model only has to be a decoder."""
    task, format = TASKS[task_name].build(), FORMATS[format_name].build(TASKS[task_name])
    model = shown_run.trained_model.model
    trained_model = TrainedModel(model, task, format, SplitConfig(), ScoringConfig(), seed=0)
    return explanations(trained_model, task.parse([text]), count)


def test_sums_are_explained_with_their_carries(shown_run):
    assert explained(shown_run, "add", "reversed", "58+967", 5) == [
        "Units: 8 + 7 = 15. Write 5, carry 1.",
        "Tens: 5 + 6, plus the carry 1, is 12. Write 2, carry 1.",
        "Hundreds: 9, plus the carry 1, is 10. Write 0, carry 1.",
        "Both numbers have ended. Write the carry 1.",
        "Nothing is left to do. Write the end sign ⟩.",
    ]


def test_differences_are_explained_with_what_is_borrowed(shown_run):
    assert explained(shown_run, "subtract", "complement", "12-45", 4) == [
        "Units: 2 − 5 = −3. Write 7, borrow 1 from the next column.",
        "Tens: 1 − 4, minus the borrowed 1, is −4. Write 6, borrow 1 from the next column.",
        "Something is still borrowed, so the answer is below 0. Write the sign -.",
        "Nothing is left to do. Write the end sign ⟩.",
    ]


def test_explanations_agree_with_the_right_tokens(shown_run):
    task, format = shown_run.trained_model.task, shown_run.trained_model.format
    for text in ("1+1", "95+307", "999+1", "5000+5000", "12345+67890"):
        problem = task.parse([text])
        answer = task.answer(problem).texts()[0]
        sentences = explanations(shown_run.trained_model, problem, len(answer) + 1)
        for digit, sentence in zip(reversed(answer), sentences, strict=False):
            assert f"Write {digit}" in sentence or f"Write the carry {digit}" in sentence
        assert "end sign" in sentences[-1]
        assert format.end_id is not None


def test_other_tasks_and_orders_are_not_explained(shown_run):
    assert explained(shown_run, "multiply", "long-multiplication", "12*34", 2) == [None, None]
    assert explained(shown_run, "add", "usual", "12+34", 2) == [None, None]
