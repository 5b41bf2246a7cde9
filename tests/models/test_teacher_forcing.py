import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_models import FORMAT, SCHEME_NAMES, TASK, random_model, random_problems, write

from abacist.formats.annotated import Field
from abacist.formats.continuation import continue_lines
from abacist.models.decoding import generate
from abacist.models.teacher_forcing import IGNORED, Predictions, coordinates_of, teacher_forced
from abacist.models.transformer import Transformer
from abacist.tasks.problems import Problems


def written_rightly(model: Transformer, problems: Problems) -> list[bool]:
    """Whether greedy generation writes exactly the right line, to the end token."""
    prompt, lines = FORMAT.prompt(problems), write(problems)
    longest = int(problems.lengths_BN.max()) + 3
    generated = generate(
        model,
        prompt,
        continue_lines(FORMAT, prompt, longest),
        max_new_tokens=longest,
        end_id=FORMAT.end_id,
    )
    return [
        torch.equal(written[:length], right[:length])
        for written, right, length in zip(generated.ids, lines.ids, lines.lengths, strict=True)
    ]


@torch.no_grad()
def judged_right(model: Transformer, problems: Problems) -> list[bool]:
    verdicts: list[bool] = (
        teacher_forced(model, write(problems)).correct_tokens().all(dim=1).tolist()
    )
    return verdicts


def test_one_pass_agrees_with_generation_where_some_answers_are_right_and_some_wrong(
    half_trained: Transformer,
) -> None:
    lengths = [(a, b) for a in range(1, 16) for b in range(1, 16)]
    problems = random_problems(lengths)
    judged = judged_right(half_trained, problems)
    assert judged == written_rightly(half_trained, problems)
    assert 20 < sum(judged) < len(judged) - 20


def test_one_pass_agrees_with_generation_beyond_64_tokens(half_trained: Transformer) -> None:
    problems = random_problems([(length, 33) for length in range(15, 40)])
    assert judged_right(half_trained, problems) == written_rightly(half_trained, problems)


NATURALS = st.integers(0, 99) | st.integers(0, 10**14)


@settings(deadline=None, max_examples=25)
@given(rows=st.lists(st.tuples(NATURALS, NATURALS), min_size=1, max_size=4))
def test_one_pass_agrees_with_generation_on_any_problem(
    half_trained: Transformer, rows: list[tuple[int, int]]
) -> None:
    problems = Problems.from_integers(list(rows))
    assert judged_right(half_trained, problems) == written_rightly(half_trained, problems)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("positions", SCHEME_NAMES)
def test_one_pass_agrees_with_generation_for_models_with_random_weights(
    positions: str, seed: int
) -> None:
    model = random_model(positions, seed)
    problems = random_problems([(1, 1)] * 60 + [(2, 1)] * 20, seed)
    assert judged_right(model, problems) == written_rightly(model, problems)


def test_margins_are_positive_exactly_where_predictions_are_right(
    half_trained: Transformer,
) -> None:
    problems = random_problems([(a, b) for a in range(1, 13) for b in range(1, 13)])
    with torch.no_grad():
        predictions = teacher_forced(half_trained, write(problems))
    right = predictions.correct_tokens()
    assert torch.equal(predictions.margins() > 0, right)
    assert (~right).any()


def test_margin_is_the_correct_logit_minus_the_largest_other_one() -> None:
    logits = torch.tensor([[[1.0, 5.0, 3.0], [1.0, 5.0, 3.0], [0.0, 0.0, 9.0]]])
    predictions = Predictions(logits, torch.tensor([[1, 2, IGNORED]]))
    assert predictions.margins().tolist() == [[2.0, -2.0, float("inf")]]
    assert predictions.correct_tokens().tolist() == [[True, False, True]]


def test_margin_does_not_depend_on_a_shift_of_all_logits() -> None:
    logits = torch.tensor([[[-11.0, -7.0, -9.0], [9.0, 13.0, 11.0]]])
    assert Predictions(logits, torch.tensor([[1, 1]])).margins().tolist() == [[2.0, 2.0]]


def test_a_tie_is_not_correct() -> None:
    predictions = Predictions(torch.zeros(1, 1, 3), torch.tensor([[0]]))
    assert torch.equal(predictions.margins() > 0, predictions.correct_tokens())


def test_labels_are_the_targets_of_the_lines_and_nothing_else() -> None:
    lines = write(random_problems([(1, 1), (3, 5), (7, 2)]))
    labels = teacher_forced(random_model(), lines).labels
    for row in range(3):
        expected_labels = lines.ids[row][lines.target[row]]
        assert labels[row][labels[row] != IGNORED].tolist() == expected_labels.tolist()


def test_every_target_is_predicted_from_the_token_before_it() -> None:
    model = random_model()
    lines = write(random_problems([(1, 1), (3, 5), (7, 2)]))
    predictions = teacher_forced(model, lines)
    logits = model(lines.ids, coordinates_of(lines), path="dense")
    for row in range(3):
        before = lines.target[row].nonzero()[:, 0] - 1
        predicted = predictions.logits[row][predictions.labels[row] != IGNORED]
        torch.testing.assert_close(predicted, logits[row, before], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("positions", SCHEME_NAMES)
@pytest.mark.parametrize("path", ["auto", "dense"])
def test_shared_coordinates_change_nothing_for_lines_of_equal_lengths(
    positions: str, path: str
) -> None:
    model = random_model(positions, num_layers=2)
    lines = write(random_problems([(5, 5)] * 40))
    assert (lines.field[:, -1] == Field.PADDING).any()
    assert (lines.field[:, -1] != Field.PADDING).any()
    shared = teacher_forced(model, lines, equal_lengths=True, path=path)
    own = teacher_forced(model, lines, path=path)
    assert torch.equal(shared.labels, own.labels)
    predicting = own.labels != IGNORED
    torch.testing.assert_close(
        shared.logits[predicting], own.logits[predicting], rtol=1e-9, atol=1e-9
    )


def test_padding_of_lines_of_unequal_lengths_has_no_label() -> None:
    problems = random_problems([(1, 1), (12, 12)])
    predictions = teacher_forced(random_model(), write(problems))
    answer_tokens = TASK.answer(problems).lengths_B + 1
    assert (predictions.labels != IGNORED).sum(dim=1).tolist() == answer_tokens.tolist()
    nothing = predictions.labels == IGNORED
    assert predictions.correct_tokens()[nothing].all()
    assert predictions.margins()[nothing].isinf().all()
