"""Jacobi decoding writes the tokens of one-by-one decoding, in fewer passes where guesses turn out right."""

from collections.abc import Callable

import pytest
import torch
from small_models import FORMAT, TASK, place_window, random_model, random_problems

from abacist.formats.config import FORMATS
from abacist.formats.continuation import PlannedContinuation, continue_lines
from abacist.formats.format import Format
from abacist.models import decoding
from abacist.models.attention_tables import AttentionTables
from abacist.models.config import PositionScheme
from abacist.models.decoding import Generated, Sampling, generate
from abacist.models.transformer import Transformer
from abacist.tasks.config import ArithmeticConfig
from abacist.tasks.problems import Problems

INDEX = PositionScheme(encoding="relative", coordinate="index", window=(-4, 0))
LONG = [(70, 70), (33, 80), (90, 1)]


def write(
    model: Transformer,
    problems: Problems,
    max_new_tokens: int,
    format: Format = FORMAT,
    on_step: Callable[[int], None] | None = None,
    sampling: Sampling | None = None,
) -> Generated:
    prompt = format.prompt(problems)
    continuation = continue_lines(format, prompt, max_new_tokens)
    return generate(model, prompt, continuation, max_new_tokens, format.end_id, on_step, sampling)


def write_one_by_one(
    monkeypatch: pytest.MonkeyPatch,
    model: Transformer,
    problems: Problems,
    max_new_tokens: int,
    format: Format = FORMAT,
) -> Generated:
    def fail(*_: object) -> None:
        raise AssertionError("tokens are guessed")

    with monkeypatch.context() as patch:
        for owner in {
            PlannedContinuation,
            type(continue_lines(format, format.prompt(problems), 1)),
        }:
            patch.setattr(owner, "known_beforehand", None)
        patch.setattr(decoding, "write_line", fail)
        return write(model, problems, max_new_tokens, format)


def assert_same(actual: Generated, expected: Generated) -> None:
    assert actual.ids.tolist() == expected.ids.tolist()
    assert actual.ended.tolist() == expected.ended.tolist()
    torch.testing.assert_close(actual.margins, expected.margins, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(actual.losses, expected.losses, rtol=1e-4, atol=1e-4)


def count_passes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Record the number of queries of each pass of a model from here on."""
    sizes: list[int] = []
    logits = AttentionTables.logits

    def counted(self: AttentionTables, token_B, keys_CB, rows_CG):  # type: ignore[no-untyped-def]
        sizes.append(len(token_B))
        return logits(self, token_B, keys_CB, rows_CG)

    monkeypatch.setattr(AttentionTables, "logits", counted)
    return sizes


@pytest.mark.parametrize(
    "positions",
    ["place-relative", place_window(-1, 2), (INDEX,), (INDEX, *place_window(0, 1))],
    ids=["place", "wide", "index", "both"],
)
@pytest.mark.parametrize("seed", range(3))
@torch.no_grad()
def test_lines_of_random_models_are_those_of_one_by_one_decoding(
    monkeypatch: pytest.MonkeyPatch, positions: str | tuple[PositionScheme, ...], seed: int
) -> None:
    model = random_model(positions, seed=seed)
    problems = random_problems(LONG, seed)
    expected = write_one_by_one(monkeypatch, model, problems, 120)
    assert_same(write(model, problems, 120), expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_lines_of_a_trained_model_are_those_of_one_by_one_decoding(
    monkeypatch: pytest.MonkeyPatch, half_trained: Transformer, dtype: torch.dtype
) -> None:
    model = half_trained.to(dtype)
    problems = random_problems([*LONG, (200, 199)])
    try:
        expected = write_one_by_one(monkeypatch, model, problems, 202)
        assert_same(write(model, problems, 202), expected)
    finally:
        half_trained.double()


@pytest.mark.parametrize(
    ("operations", "format", "positions", "problems"),
    [
        (("*",), "long-multiplication", "cell-relative", ["12345678*8765432"]),
        (
            ("+", "-", "*", "//"),
            "calculator",
            "row-place-step-relative",
            ["98765*4321", "9" * 80 + "-" + "8" * 79],
        ),
        (
            ("+", "-", "*", "//"),
            "calculator",
            "row-place-step-relative",
            ["98765//43", "9" * 80 + "+1"],
        ),
    ],
    ids=["products", "calculator", "calculator, with a division"],
)
def test_lines_of_other_formats_are_those_of_one_by_one_decoding(
    monkeypatch: pytest.MonkeyPatch,
    operations: tuple[str, ...],
    format: str,
    positions: str,
    problems: list[str],
) -> None:
    task_config = ArithmeticConfig(operations=operations)
    built = FORMATS[format].build(task_config)
    parsed = task_config.build().parse(problems)
    model = random_model(positions, seed=1, vocabulary_size=len(built.vocabulary))
    length = int(built.target_lengths(parsed).max())
    expected = write_one_by_one(monkeypatch, model, parsed, length, built)
    assert_same(write(model, parsed, length, built), expected)


def test_right_guesses_spare_passes(
    monkeypatch: pytest.MonkeyPatch, half_trained: Transformer
) -> None:
    sizes = count_passes(monkeypatch)
    problems = random_problems([(400, 400)])
    write(half_trained, problems, 402)
    assert len(sizes) < 60
    assert max(sizes) > 64


def test_wrong_guesses_cost_no_more_passes_than_tokens(
    monkeypatch: pytest.MonkeyPatch, half_trained: Transformer
) -> None:
    """Every digit of this sum is 9, which no digit shows before the one to its right is known."""
    sizes = count_passes(monkeypatch)
    problems = TASK.parse(["5" * 200 + "+" + "4" * 200])
    write(half_trained, problems, 202)
    assert len(sizes) <= 202
    assert sum(size > 8 for size in sizes) < 20


def test_a_line_ends_with_its_end_token_in_the_middle_of_a_block(
    half_trained: Transformer,
) -> None:
    generated = write(half_trained, random_problems([(70, 70)]), max_new_tokens=500)
    assert generated.ended.tolist() == [True]
    assert generated.ids[0, -1] == FORMAT.end_id
    assert generated.ids[0].tolist().count(FORMAT.end_id) == 1
    assert generated.margins.shape[1] in (71, 72)


def test_a_line_cut_off_in_the_middle_of_a_block_has_not_ended(half_trained: Transformer) -> None:
    problems = random_problems([(70, 70)])
    whole, cut = (write(half_trained, problems, count) for count in (72, 21))
    assert cut.ended.tolist() == [False]
    assert cut.ids[0].tolist() == whole.ids[0, : cut.ids.shape[1]].tolist()
    assert cut.margins.shape[1] == 21


def test_on_step_receives_the_mean_number_of_tokens_written_per_line(
    half_trained: Transformer,
) -> None:
    steps: list[int] = []
    write(half_trained, random_problems([(90, 90)] * 2), 92, on_step=steps.append)
    assert steps == sorted(steps)
    assert steps[-1] in (91, 92)


def test_drawn_tokens_are_not_guessed(
    monkeypatch: pytest.MonkeyPatch, half_trained: Transformer
) -> None:
    sizes = count_passes(monkeypatch)
    sampling = Sampling(torch.Generator().manual_seed(0))
    write(half_trained, random_problems([(70, 70)]), 72, sampling=sampling)
    assert set(sizes) == {1}
