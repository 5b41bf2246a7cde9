"""Generation by tables equals the model itself, for every setting of a model that they suit."""

import numpy as np
import pytest
import torch
from small_models import FORMAT, place_window, random_model, random_problems, write
from torch import Tensor, nn

from abacist.formats.annotated import AnnotatedTokens
from abacist.formats.config import FORMATS
from abacist.formats.continuation import continue_lines
from abacist.models import attention_tables, decoding
from abacist.models.attention_tables import AttentionTables, suits_tables
from abacist.models.config import POSITIONS, ModelConfig, PositionScheme
from abacist.models.decoding import generate
from abacist.models.id_cache import IdCache, LongLines, ShortLines
from abacist.models.module_functions import function_of
from abacist.models.teacher_forcing import coordinates_of
from abacist.models.transformer import Transformer
from abacist.tasks.config import ArithmeticConfig, SortingConfig

ALIBI = PositionScheme(encoding="alibi", coordinate="place", window=(-1, 2))
INDEX = PositionScheme(encoding="relative", coordinate="index", window=(-4, 0))
SETTINGS = {
    "default": {},
    "window (-1, 1)": {"positions": place_window(-1, 1)},
    "window (0, 0)": {"positions": place_window(0, 0)},
    "index window": {"positions": (INDEX,)},
    "alibi with a window": {"positions": (ALIBI,)},
    "three windows": {"positions": (INDEX, ALIBI, *place_window(-2, 3))},
    "post-norm": {"norm_order": "post"},
    "rms norm": {"norm": "rms", "norm_epsilon": 0.01},
    "geglu": {"activation": "geglu"},
    "swiglu": {"activation": "swiglu"},
    "gelu-tanh": {"activation": "gelu-tanh"},
    "relu": {"activation": "relu"},
    "no biases": {"biases": ()},
    "bias of the head": {"biases": ("head", "mlp-output")},
    "normalised queries": {"query_key_norm": True},
    "wide heads": {"head_width": 10},
    "embedding norm": {"embedding_norm": True},
    "final MLP": {"final_mlp": True},
    "no final norm": {"final_norm": False},
    "tied head": {"tied_head": True},
    "dropout, which evaluation ignores": {"dropout": 0.5},
}
EQUAL, UNEQUAL = [(4, 3)] * 5, [(1, 1), (3, 5), (8, 2), (1, 9)]


def lines_of_ids(model: Transformer, name: str, prompt: AnnotatedTokens, num_new: int) -> IdCache:
    tables = AttentionTables(model)
    coordinates = model.coordinates_by_scheme(coordinates_of(prompt))
    if name == "short":
        return ShortLines(tables, coordinates, num_new)
    return LongLines(tables, coordinates, continue_lines(FORMAT, prompt, num_new).falls)


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("lines", ["short", "long"])
@pytest.mark.parametrize("lengths", [EQUAL, UNEQUAL, UNEQUAL[1:2]], ids=len)
@torch.no_grad()
def test_logits_of_every_step_are_those_of_the_whole_line(
    name: str, lines: str, lengths: list[tuple[int, int]]
) -> None:
    model = random_model(**SETTINGS[name])
    assert suits_tables(model)
    problems = random_problems(lengths)
    prompt, whole = FORMAT.prompt(problems), write(problems)
    expected = model(whole.ids, coordinates_of(whole), path="dense")
    counts = (whole.lengths - prompt.lengths).numpy()
    num_new = int(counts.max())
    cache = lines_of_ids(model, lines, prompt, num_new)
    continuation = continue_lines(FORMAT, prompt, num_new)
    logits = cache.prefill(prompt.ids, prompt.lengths)
    batch, index = np.arange(len(problems)), prompt.lengths.numpy()
    for step in range(num_new):
        running = step < counts
        torch.testing.assert_close(logits[running], expected[batch, index - 1][running])
        token = whole.ids.numpy()[batch, np.minimum(index, whole.ids.shape[1] - 1)].astype(np.int64)
        place = continuation.append(token).place
        new = [index, *(index if s.coordinate == "index" else place for s in model.schemes)]
        logits = cache.step(token, new, step + 1 < counts)
        index = index + 1


@pytest.mark.parametrize(
    "settings",
    [
        {"num_layers": 2},
        {"recurrences": 2},
        {"injection": "add"},
        {"length_scaling": True},
        {"direction": "both"},
        {"positions": "nope"},
        {"positions": "place-relative-soft"},
        {"positions": (*POSITIONS["place-relative"], *POSITIONS["rope"])},
        {"positions": (*POSITIONS["place-relative"], *POSITIONS["abacus"])},
        {"positions": (PositionScheme(encoding="fire", coordinate="place", window=(0, 1)),)},
    ],
    ids=str,
)
def test_other_models_keep_keys_and_values(settings: dict[str, object]) -> None:
    assert not suits_tables(random_model(**settings))


def test_a_large_vocabulary_gets_no_table_of_pairs() -> None:
    assert not suits_tables(Transformer(ModelConfig(), vocabulary_size=1_000))


def test_wide_windows_get_no_table_of_all_combinations() -> None:
    wide = [
        PositionScheme(encoding="alibi", coordinate=name, window=(-1_000, 1_000))
        for name in ("index", "place")
    ]
    assert suits_tables(random_model(positions=tuple(wide[:1])))
    assert not suits_tables(random_model(positions=tuple(wide)))


CALCULATIONS = [
    ("long-multiplication", ArithmeticConfig(operations=("*",), max_digits=6), "cell-relative"),
    ("non-restoring-division", ArithmeticConfig(operations=("//", "%"), max_digits=6),
     "row-place-step-relative"),
    ("running-sums", ArithmeticConfig(max_operands=6, max_digits=5), "place-row-relative"),
    ("insertion-sort", SortingConfig(max_numbers=5, max_digits=3), "pointer-relative"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "config", "positions"), CALCULATIONS)
@pytest.mark.parametrize("compared", [0, 10_000])
def test_calculations_are_generated_as_by_keys_and_values(
    name, config, positions, compared, monkeypatch
) -> None:
    task, format = config.build(), FORMATS[name].build(config)
    torch.manual_seed(0)
    model = Transformer(
        ModelConfig(width=12, num_heads=2, mlp_width=16, positions=POSITIONS[positions]),
        len(format.vocabulary),
    ).eval().double()  # fmt: skip
    generator = torch.Generator().manual_seed(0)
    problems = task.draw(task.draw_shapes(9, generator), generator)
    prompt = format.prompt(problems)
    longest = min(60, int(format.target_lengths(problems).max()))

    def generated():
        continuation = continue_lines(format, prompt, longest)
        return generate(model, prompt, continuation, longest, format.end_id)

    monkeypatch.setattr(decoding, "_LONGEST_COMPARED", compared)
    monkeypatch.setattr(decoding, "_LONGEST_COMPARED_IN_BATCH", compared)
    by_tables = generated()
    monkeypatch.setattr(decoding, "suits_tables", lambda model: False)
    by_keys = generated()
    assert torch.equal(by_tables.ids, by_keys.ids)
    torch.testing.assert_close(by_tables.margins, by_keys.margins)
    torch.testing.assert_close(by_tables.losses, by_keys.losses)


@torch.no_grad()
def test_losses_are_the_cross_entropies_of_what_was_written() -> None:
    model = random_model()
    prompt = FORMAT.prompt(random_problems(UNEQUAL))
    for steps_per_summary in (1, 2, 256):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(decoding, "_STEPS_PER_SUMMARY", steps_per_summary)
            generated = generate(model, prompt, continue_lines(FORMAT, prompt, 5), 5, FORMAT.end_id)
        lines = FORMAT.annotate(generated.ids)
        log_probabilities: Tensor = model(lines.ids, coordinates_of(lines)).log_softmax(dim=-1)
        for row, length in enumerate(prompt.lengths.tolist()):
            written = generated.ids[row, length : length + 5].tolist()
            if FORMAT.end_id in written:
                written = written[: written.index(FORMAT.end_id) + 1]
            expected = [
                -float(log_probabilities[row, length + step - 1, token])
                for step, token in enumerate(written)
            ]
            expected += [0.0] * (generated.losses.shape[1] - len(expected))
            assert generated.losses[row].tolist() == pytest.approx(expected)


def test_a_batch_in_parts_has_the_logits_of_the_whole_batch(monkeypatch) -> None:
    tables = AttentionTables(random_model())
    token, keys = np.arange(5), np.arange(10).reshape(2, 5)
    rows = np.zeros((2, 1), np.int64)
    whole = tables.logits(token, keys, rows)
    monkeypatch.setattr(attention_tables, "_ROWS_IN_CACHE", 2)
    torch.testing.assert_close(tables.logits(token, keys, rows), whole)


def test_generated_lines_can_take_part_in_a_pass_with_gradients() -> None:
    model = random_model()
    prompt = FORMAT.prompt(random_problems(UNEQUAL))
    generated = generate(model, prompt, continue_lines(FORMAT, prompt, 5), 5, FORMAT.end_id)
    lines = FORMAT.annotate(generated.ids)
    model(lines.ids, coordinates_of(lines)).sum().backward()
    assert model.embedding.weight.grad is not None


def test_a_module_without_a_function_of_its_own_is_called() -> None:
    module = nn.Tanh()
    assert function_of(module) is module


@torch.no_grad()
def test_one_line_of_a_diverged_model_is_written_without_a_warning(
    recwarn: pytest.WarningsRecorder,
) -> None:
    model = random_model(dtype=torch.float32)
    model.blocks[0].attention.query.weight *= 1e38
    model.blocks[0].attention.key.weight *= 1e10
    prompt = FORMAT.prompt(random_problems([(3, 3)]))
    generate(model, prompt, continue_lines(FORMAT, prompt, 5), 5, FORMAT.end_id)
    assert not recwarn.list
