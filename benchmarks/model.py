"""How fast the model trains, generates and is scored, compared with the usual implementations.

    python benchmarks/model.py [--threads 1] [--out results/model.json]

All contenders have the same sizes, train on the same batches with AdamW, and are timed in turn, block
by block, in one run; medians of processor seconds are compared. The others use fused attention, the
fused optimiser and learned positions. GPT-2 of the transformers library takes part if the library is installed.
A profile of our step then shows which operations it consists of.
"""

import argparse
import importlib
import importlib.util
import json
import resource
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from abacist.data.config import SplitConfig
from abacist.data.stream import TrainingStream
from abacist.formats.annotated import AnnotatedTokens
from abacist.formats.config import FORMATS
from abacist.formats.continuation import continue_lines
from abacist.formats.format import Format
from abacist.models.config import POSITIONS, ModelConfig, PositionScheme
from abacist.models.decoding import generate
from abacist.models.parameter_count import components
from abacist.models.teacher_forcing import IGNORED, coordinates_of, teacher_forced
from abacist.models.transformer import Transformer
from abacist.runs.circumstances import circumstances
from abacist.scoring.exact_match import exact_match
from abacist.scoring.trained_model import TrainedModel
from abacist.tasks.config import ArithmeticConfig
from abacist.tasks.problems import Shapes
from abacist.tasks.task import Task
from abacist.training.config import TrainingConfig
from abacist.training.optimizer import Optimizer
from abacist.training.step import training_step

BLOCKS = 8
STEPS_PER_BLOCK = 6
PRODUCTS = ("aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm")
"""The operations of torch that are matrix products."""
INDEX = PositionScheme(encoding="learned", coordinate="index", num_positions=64)


@dataclass(frozen=True)
class Size:
    """One size of model, with the task and the batches on which contenders are compared."""

    name: str
    task: ArithmeticConfig
    format: str
    batch: int
    model: ModelConfig


SIZES = (
    Size(
        "19,360 parameters, 512 × 12 tokens",
        ArithmeticConfig(max_digits=3, sampling="values"),
        "zero-padded",
        512,
        ModelConfig(
            num_layers=2,
            mlp_width=64,
            biases=("mlp-hidden", "mlp-output"),
            tied_head=True,
            positions=(INDEX,),
        ),
    ),
    Size(
        "100 k parameters, 128 lines of ≤ 10 digits",
        ArithmeticConfig(),
        "reversed",
        128,
        ModelConfig(width=64, num_layers=2, mlp_width=256, positions=(INDEX,)),
    ),
    Size(
        "0.8 M parameters, 256 lines of ≤ 10 digits",
        ArithmeticConfig(),
        "reversed",
        256,
        ModelConfig(width=128, num_layers=4, mlp_width=512, positions=(INDEX,)),
    ),
)


class PlainBlock(nn.Module):
    """A layer with attention and MLP as most repositories implement it."""

    def __init__(self, width: int, heads: int, mlp_width: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.Linear(width, mlp_width), nn.GELU(), nn.Linear(mlp_width, width)
        )

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, width = x.shape
        q, k, v = (
            part.view(batch, tokens, self.heads, -1).transpose(1, 2)
            for part in self.qkv(self.norm1(x)).chunk(3, dim=-1)
        )
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, tokens, width))
        out: Tensor = x + self.mlp(self.norm2(x))
        return out


class Plain(nn.Module):
    """A plain decoder after nanoGPT."""

    def __init__(self, config: ModelConfig, vocabulary: int) -> None:
        super().__init__()
        self.tokens, self.index = (
            nn.Embedding(vocabulary, config.width),
            nn.Embedding(64, config.width),
        )
        self.blocks = nn.Sequential(
            *(
                PlainBlock(config.width, config.num_heads, config.mlp_width)
                for _ in range(config.num_layers)
            )
        )
        self.norm = nn.LayerNorm(config.width)
        self.head = nn.Linear(config.width, vocabulary, bias=False)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.tokens(ids) + self.index.weight[: ids.shape[1]]
        logits: Tensor = self.head(self.norm(self.blocks(x)))
        return logits


class Torch(nn.Module):
    """A decoder made of torch.nn.TransformerEncoder with a causal mask."""

    def __init__(self, config: ModelConfig, vocabulary: int) -> None:
        super().__init__()
        self.tokens, self.index = (
            nn.Embedding(vocabulary, config.width),
            nn.Embedding(64, config.width),
        )
        layer = nn.TransformerEncoderLayer(
            config.width,
            config.num_heads,
            config.mlp_width,
            dropout=0.0,
            activation="gelu",
            batch_first=True,
            norm_first=True,
        )
        self.encoder = nn.TransformerEncoder(layer, config.num_layers, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(config.width)
        self.head = nn.Linear(config.width, vocabulary, bias=False)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.tokens(ids) + self.index.weight[: ids.shape[1]]
        mask = nn.Transformer.generate_square_subsequent_mask(ids.shape[1])
        logits: Tensor = self.head(self.norm(self.encoder(x, mask=mask, is_causal=True)))
        return logits


def gpt2(config: ModelConfig, vocabulary: int) -> nn.Module | None:
    """Build GPT-2 of the transformers library; None if the library is not installed."""
    if importlib.util.find_spec("transformers") is None:
        return None
    library: Any = importlib.import_module("transformers")

    class Logits(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = library.GPT2LMHeadModel(
                library.GPT2Config(
                    vocab_size=vocabulary,
                    n_positions=64,
                    n_embd=config.width,
                    n_layer=config.num_layers,
                    n_head=config.num_heads,
                    n_inner=config.mlp_width,
                    resid_pdrop=0.0,
                    embd_pdrop=0.0,
                    attn_pdrop=0.0,
                )
            )

        def forward(self, ids: Tensor) -> Tensor:
            logits: Tensor = self.model(ids).logits
            return logits

    return Logits()


def their_step(model: nn.Module) -> Callable[[AnnotatedTokens], None]:
    """Return a function that makes one step of a contender: loss on the answer, clipping, fused AdamW."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)

    def step(lines: AnnotatedTokens) -> None:
        logits = model(lines.ids[:, :-1].long())
        labels = torch.where(lines.target, lines.ids, IGNORED)[:, 1:].long()
        loss = nn.functional.cross_entropy(
            logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORED
        )
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    return step


def our_step(model: Transformer, stream: TrainingStream) -> Callable[[AnnotatedTokens], None]:
    config = TrainingConfig(batch_size=stream.batch_size)
    optimizer = Optimizer(model, config)

    def step(lines: AnnotatedTokens) -> None:
        training_step(model, optimizer, lines, config, 200, stream.aligned)

    return step


def compare(size: Size) -> dict[str, object]:
    """Time a step of every contender, and the matrix products that our step consists of."""
    torch.manual_seed(0)
    task, format = size.task.build(), FORMATS[size.format].build(size.task)
    stream = TrainingStream(task, format, SplitConfig(), size.batch, seed=0)
    batches = [stream.batch(step) for step in range(STEPS_PER_BLOCK)]
    vocabulary = len(format.vocabulary)
    ours = Transformer(size.model, vocabulary)
    contenders: dict[str, Callable[[AnnotatedTokens], None]] = {"ours": our_step(ours, stream)}
    contenders["plain"] = their_step(Plain(size.model, vocabulary))
    contenders["torch.nn.TransformerEncoder"] = their_step(Torch(size.model, vocabulary))
    library = gpt2(size.model, vocabulary)
    if library is not None:
        contenders["transformers GPT-2"] = their_step(library)
    work = sum(_multiply_adds(size.model, vocabulary, lines) for lines in batches)
    matrix = torch.randn(512, 512)
    products = max(1, round(3 * work / 512**3))
    seconds: dict[str, list[float]] = {name: [] for name in [*contenders, "products"]}
    for block in range(BLOCKS + 1):
        for name, step in contenders.items():
            begin = time.process_time()
            for lines in batches:
                step(lines)
            if block:
                seconds[name].append((time.process_time() - begin) / len(batches))
        begin = time.process_time()
        for _ in range(products):
            matrix @ matrix
        if block:
            seconds["products"].append((time.process_time() - begin) / len(batches))
    medians = {name: statistics.median(times) for name, times in seconds.items()}
    best = min(time for name, time in medians.items() if name not in ("ours", "products"))
    print(f"{size.name}: {ours.num_parameters:,} parameters")
    for name, median in medians.items():
        print(f"  {name:30} {1000 * median:8.2f} ms   {median / medians['ours']:5.2f} × ours")
    print(f"  the best of the others takes {best / medians['ours']:.2f} times as long as ours")
    shares = operation_shares(contenders["ours"], batches)
    in_products = sum(shares.get(name, 0.0) for name in PRODUCTS)
    print(f"  matrix products are {in_products:.0%} of our step")
    return {
        "size": size.name,
        "parameters": ours.num_parameters,
        "seconds": medians,
        "best_other_over_ours": best / medians["ours"],
        "ours_over_products": medians["ours"] / medians["products"],
        "share_of_products": in_products,
        "operation_shares": {name: share for name, share in shares.items() if share >= 0.01},
    }


def operation_shares(
    step: Callable[[AnnotatedTokens], None], batches: list[AnnotatedTokens]
) -> dict[str, float]:
    """Return the share of each of torch's operations in the time of steps, the longest first."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        for lines in batches:
            step(lines)
    events = sorted(profiler.key_averages(), key=lambda event: -event.self_cpu_time_total)
    total = sum(event.self_cpu_time_total for event in events)
    return {event.key: round(event.self_cpu_time_total / total, 4) for event in events}


def _multiply_adds(config: ModelConfig, vocabulary: int, lines: AnnotatedTokens) -> int:
    tokens = int(lines.lengths.max()) - 1
    predicting = int(lines.target.any(dim=0).sum())
    parts = components(config, vocabulary, tokens, predicting)
    return len(lines.ids) * sum(part.multiply_adds for part in parts)


def generation() -> dict[str, object]:
    """Time 100-digit answers of 256 lines: generated with a cache, without one, and scored in one pass."""
    config = ArithmeticConfig()
    task, format = config.build(), FORMATS["reversed"].build(config)
    torch.manual_seed(0)
    model = Transformer(
        ModelConfig(num_layers=2, positions=POSITIONS["place-relative-soft"]),
        len(format.vocabulary),
    ).eval()
    shapes = Shapes.of(torch.full((256, 2), 100), "+")
    problems = task.draw(shapes, torch.Generator().manual_seed(0))
    prompt = format.prompt(problems)
    begin = time.perf_counter()
    generate(
        model,
        prompt,
        continue_lines(format, prompt, 101),
        101,
        None,
    )
    cached = time.perf_counter() - begin
    begin = time.perf_counter()
    _recompute(model, format, prompt, 101)
    recomputed = time.perf_counter() - begin
    begin = time.perf_counter()
    exact_match(TrainedModel(model, task, format), problems)
    one_pass = time.perf_counter() - begin
    print(
        f"100-digit answers, 256 lines: cached {cached:.1f} s, recomputed {recomputed:.1f} s "
        f"({recomputed / cached:.1f} ×), one pass {one_pass:.2f} s ({recomputed / one_pass:.0f} ×)"
    )
    return {
        "cached_seconds": cached,
        "recomputed_seconds": recomputed,
        "one_pass_seconds": one_pass,
        "recomputed_over_cached": recomputed / cached,
        "recomputed_over_one_pass": recomputed / one_pass,
    }


@torch.no_grad()
def _recompute(model: Transformer, format: Format, prompt: AnnotatedTokens, count: int) -> None:
    ids = prompt.ids
    for _ in range(count):
        coordinates = coordinates_of(format.annotate(ids))
        token = model(ids, coordinates, first=ids.shape[1] - 1)[:, -1].argmax(dim=-1, keepdim=True)
        ids = torch.cat([ids, token.int()], dim=1)


def long_lines() -> dict[str, object]:
    """Measure the memory of a forward pass over eight 1,000-digit sums, with a window and without."""
    config = ArithmeticConfig()
    task, format = config.build(), FORMATS["reversed"].build(config)
    mebibytes: dict[str, object] = {}
    for name in ("place-relative", "place-relative-soft"):
        model = Transformer(ModelConfig(positions=POSITIONS[name]), len(format.vocabulary)).eval()
        lines = _sums(task, format, 1_000, 8)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with torch.no_grad():
            teacher_forced(model, lines)
        more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        print(f"1,000-digit sums, batch 8, {name}: {more:.0f} MiB more (bar 2,048)")
        mebibytes[name] = more
    return mebibytes


def _sums(task: Task, format: Format, digits: int, batch: int) -> AnnotatedTokens:
    shapes = Shapes.of(torch.full((batch, 2), digits), "+")
    problems = task.draw(shapes, torch.Generator().manual_seed(0))
    return format.write(problems, task.answer(problems))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    # Memory is measured first, while its peak is low.
    record: dict[str, object] = {"mebibytes of 1,000 digits": long_lines()}
    record["steps"] = [compare(size) for size in SIZES]
    record["generation"] = generation()
    record |= {"threads": arguments.threads, **circumstances()}
    if arguments.out:
        arguments.out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
