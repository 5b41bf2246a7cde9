import pytest
import torch
from small_models import FORMAT, SCHEME_NAMES, place_window, random_model, random_problems
from torch import Tensor

from abacist.errors import ConfigurationError, ProblemError
from abacist.formats.continuation import continue_lines
from abacist.models.config import POSITIONS, PositionScheme
from abacist.models.coordinates import Coordinates
from abacist.models.decoding import Generated, generate
from abacist.models.teacher_forcing import coordinates_of
from abacist.models.transformer import Transformer
from abacist.tasks.problems import Problems

SCHEMES = {
    **{name: POSITIONS[name] for name in SCHEME_NAMES},
    "place window (-1, 1)": place_window(-1, 1),
    "abacus and index-relative": (*POSITIONS["abacus"], *POSITIONS["index-relative"]),
    "place window and index-relative": (*place_window(0, 1), *POSITIONS["index-relative"]),
}
each_scheme = pytest.mark.parametrize("name", SCHEMES)
UNEQUAL = [(1, 1), (3, 5), (8, 2), (1, 9)]


def annotated(ids: Tensor) -> Coordinates:
    return coordinates_of(FORMAT.annotate(ids))


def cached(model: Transformer, problems: Problems, max_new_tokens: int) -> Generated:
    prompt = FORMAT.prompt(problems)
    continuation = continue_lines(FORMAT, prompt, max_new_tokens)
    return generate(model, prompt, continuation, max_new_tokens, FORMAT.end_id)


@torch.no_grad()
def uncached(
    model: Transformer, problem: Problems, max_new_tokens: int
) -> tuple[list[int], list[float]]:
    """Ids and margins of one problem, from a pass over the whole growing line for every token."""
    ids, margins = FORMAT.prompt(problem).ids, []
    for _ in range(max_new_tokens):
        logits = model(ids, annotated(ids), path="dense")[0, -1]
        best, second = logits.topk(2).values.tolist()
        margins.append(best - second)
        ids = torch.cat([ids, logits.argmax().view(1, 1)], dim=1)
        if ids[0, -1] == FORMAT.end_id:
            break
    return ids[0].tolist(), margins


def never_write(model: Transformer, *tokens: int) -> None:
    """Give tokens the mean logit of two digits, which is never the largest."""
    with torch.no_grad():
        model.head.weight[list(tokens)] = model.head.weight[[3, 8]].mean(dim=0)


def assert_equals_uncached(model: Transformer, problems: Problems, max_new_tokens: int) -> None:
    generated = cached(model, problems, max_new_tokens)
    for row in range(len(problems)):
        ids, margins = uncached(model, problems[row : row + 1], max_new_tokens)
        assert generated.ids[row, : len(ids)].tolist() == ids
        assert (generated.ids[row, len(ids) :] == FORMAT.end_id).all()
        steps = generated.margins[row].tolist()
        assert steps[: len(margins)] == pytest.approx(margins, rel=1e-6, abs=1e-9)
        assert all(margin == float("inf") for margin in steps[len(margins) :])


@pytest.mark.parametrize("num_layers", [1, 2])
@each_scheme
def test_cached_generation_equals_uncached_for_lines_of_unequal_lengths(
    name: str, num_layers: int
) -> None:
    model = random_model(SCHEMES[name], seed=1, num_layers=num_layers)
    never_write(model, FORMAT.start_id)
    assert_equals_uncached(model, random_problems(UNEQUAL), max_new_tokens=12)


@each_scheme
def test_cached_generation_equals_uncached_for_lines_that_never_end(name: str) -> None:
    model = random_model(SCHEMES[name], seed=2, num_layers=2)
    never_write(model, FORMAT.start_id, FORMAT.end_id)
    assert_equals_uncached(model, random_problems([(1, 2), (6, 3)]), max_new_tokens=20)


@each_scheme
def test_cached_generation_equals_uncached_beyond_64_tokens(name: str) -> None:
    model = random_model(SCHEMES[name], seed=3, num_layers=2)
    never_write(model, FORMAT.start_id, FORMAT.end_id)
    problems = random_problems([(35, 40), (2, 3), (20, 30)])
    assert FORMAT.prompt(problems).ids.shape[1] > 64
    assert_equals_uncached(model, problems, max_new_tokens=25)


def test_cached_generation_equals_uncached_when_a_line_grows_beyond_64_tokens() -> None:
    model = random_model(seed=4, num_layers=2)
    never_write(model, FORMAT.start_id, FORMAT.end_id)
    problems = random_problems([(20, 25), (1, 1)])
    assert FORMAT.prompt(problems).ids.shape[1] < 64
    assert_equals_uncached(model, problems, max_new_tokens=40)


@pytest.mark.parametrize("lengths", [UNEQUAL * 3, [(30, 33), (1, 1), (12, 40)]])
def test_cached_generation_equals_uncached_for_a_trained_model(
    half_trained: Transformer, lengths: list[tuple[int, int]]
) -> None:
    longest = max(max(pair) for pair in lengths)
    assert_equals_uncached(half_trained, random_problems(lengths), max_new_tokens=longest + 3)


def write_start_once(model: Transformer, problem: Problems) -> None:
    """Make the model write a start token, then another token: the start token's row of the head
    points along the residual at `=`, and at a right angle to the residual one token later."""
    prompt = FORMAT.prompt(problem).ids
    ids = torch.cat([prompt, torch.tensor([[FORMAT.start_id]])], dim=1)
    residuals: list[Tensor] = []
    handle = model.final_norm.register_forward_hook(lambda *call: residuals.append(call[2][:, 0]))
    with torch.no_grad():
        model(ids, annotated(ids), path="dense")
        before, after = residuals[0][-2:]
        sideways = before - (before @ after) / (after @ after) * after
        model.head.weight[FORMAT.start_id] = 10 * sideways
    handle.remove()
    never_write(model, FORMAT.end_id)


def assert_writes_start_then_a_digit(model: Transformer, problem: Problems) -> None:
    prompt_length = FORMAT.prompt(problem).ids.shape[1]
    start, digit = uncached(model, problem, 2)[0][prompt_length:]
    assert start == FORMAT.start_id
    assert digit < 10


@pytest.mark.parametrize("name", ["place-relative-soft", "gpt2"])
def test_a_start_token_written_into_the_answer_is_seen_by_later_tokens(name: str) -> None:
    problem = random_problems([(2, 3)])
    model = random_model(name, seed=1)
    write_start_once(model, problem)
    assert_writes_start_then_a_digit(model, problem)
    assert_equals_uncached(model, problem, max_new_tokens=6)


def test_a_start_token_written_into_the_answer_is_seen_in_every_window() -> None:
    problem = random_problems([(2, 3)])
    model = random_model("place-relative", seed=1)
    write_start_once(model, problem)
    assert_writes_start_then_a_digit(model, problem)
    assert_equals_uncached(model, problem, max_new_tokens=6)


def test_generated_lines_begin_with_the_prompt(half_trained: Transformer) -> None:
    problems = random_problems(UNEQUAL)
    prompt = FORMAT.prompt(problems)
    ids = cached(half_trained, problems, 12).ids
    for row, length in enumerate(prompt.lengths.tolist()):
        assert torch.equal(ids[row, :length], prompt.ids[row, :length])


def test_generation_does_not_change_the_prompt_passed_to_it(half_trained: Transformer) -> None:
    prompt = FORMAT.prompt(random_problems(UNEQUAL))
    before = prompt.ids.clone(), prompt.lengths.clone()
    generate(half_trained, prompt, continue_lines(FORMAT, prompt, 5), 5, FORMAT.end_id)
    assert torch.equal(prompt.ids, before[0])
    assert torch.equal(prompt.lengths, before[1])


def test_generation_stops_when_the_last_line_has_ended(half_trained: Transformer) -> None:
    problems = Problems.from_integers([(1, 2), (60000, 70000), (1, 9999999)])
    generated = cached(half_trained, problems, max_new_tokens=50)
    prompt_lengths = FORMAT.prompt(problems).lengths
    num_written = FORMAT.annotate(generated.ids).lengths - prompt_lengths
    assert None not in FORMAT.read(generated.ids)
    assert num_written.unique().numel() > 1
    assert generated.margins.shape == (3, int(num_written.max()))
    assert generated.ids.shape[1] == int((prompt_lengths + num_written).max())


def test_generation_stops_after_the_largest_number_of_tokens() -> None:
    model = random_model(seed=2)
    never_write(model, FORMAT.start_id, FORMAT.end_id)
    problem = random_problems([(2, 2)])
    generated = cached(model, problem, max_new_tokens=7)
    assert generated.margins.shape == (1, 7)
    assert generated.ids.shape[1] == FORMAT.prompt(problem).ids.shape[1] + 7
    assert FORMAT.read(generated.ids) == [None]


def test_generation_of_no_token_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="must be 1 or more, got 0"):
        cached(random_model(seed=2), random_problems([(2, 2)]), max_new_tokens=0)


def test_the_last_token_may_come_after_the_last_learned_position() -> None:
    problems = random_problems([(3, 3)])
    width = FORMAT.prompt(problems).ids.shape[1]
    fitting = PositionScheme(encoding="learned", coordinate="index", num_positions=width + 3)
    model = random_model((fitting,))
    never_write(model, FORMAT.end_id, FORMAT.start_id)
    assert cached(model, problems, max_new_tokens=4).margins.shape == (1, 4)
    with pytest.raises(ProblemError, match="learned positions end at index"):
        cached(model, problems, max_new_tokens=5)


def test_a_line_cut_off_before_its_end_has_not_ended() -> None:
    model = random_model(seed=2)
    never_write(model, *range(10, len(FORMAT.vocabulary)))
    with torch.no_grad():
        model.head.weight[0] = model.head.weight[[3, 8]].mean(dim=0)
    alone, longer = random_problems([(2, 2)]), random_problems([(2, 2), (9, 9)])
    assert cached(model, alone, max_new_tokens=4).ended.tolist() == [False]
    assert cached(model, longer, max_new_tokens=4).ended.tolist() == [False, False]


def test_on_step_receives_the_number_of_tokens_written() -> None:
    model = random_model(seed=2)
    never_write(model, FORMAT.start_id, FORMAT.end_id)
    prompt = FORMAT.prompt(random_problems([(2, 2)]))
    counts: list[int] = []
    continuation = continue_lines(FORMAT, prompt, 4)
    generate(model, prompt, continuation, 4, FORMAT.end_id, on_step=counts.append)
    assert counts == [1, 2, 3, 4]


def test_a_problem_gets_the_same_answer_in_any_batch(half_trained: Transformer) -> None:
    problems = random_problems([(a, b) for a in range(1, 8) for b in (1, 6)])
    together = FORMAT.read(cached(half_trained, problems, 12).ids)
    alone = [
        FORMAT.read(cached(half_trained, problems[row : row + 1], 12).ids)[0]
        for row in range(len(problems))
    ]
    assert together == alone
    assert together != [None] * len(problems)
