"""A search for the smallest transformer that earns the certificate: 64 seeds, trained together.

    python studies/smallest_adder.py --out runs/smallest --compile
    abacist prove runs/smallest

Without `--compile`, the search needs no C++ compiler and takes longer. Its rounding errors then
differ, as they do on another machine, so other seeds can be the ones that succeed.

The model is that of the recipe `add-tiny` with the settings of `SETTINGS`. Training differs from
that of the package in three ways, which the small number of parameters makes possible:

1. A training example is one neighbourhood of the certificate instead of a line. Neighbourhoods that
   differ only in the order of two digits of a column look equal to the model, which leaves 7,514.
2. All seeds are trained at once. Their parameters are the columns of one matrix, so a step consists
   of a few operations for all of them.
3. Training has several rounds, each with a learning rate that rises and falls again. From the
   middle of the first round on, a third of a batch consists of neighbourhoods that the best seeds
   get wrong. Each round ends with steps on all neighbourhoods.

The seed with the fewest wrong neighbourhoods becomes an ordinary run, with 0 steps of the package's
own training, and the record of all seeds is written to `results/smallest-adder.json`.
"""

import argparse
import json
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import study
import torch
from torch import Tensor
from torch.nn import functional

from abacist import recipes
from abacist.certificates.calculation_layout import find_layout
from abacist.certificates.column_addition import ColumnAdditionEnumeration
from abacist.configuration import override
from abacist.models.coordinates import SchemeCoordinates
from abacist.models.transformer import Transformer
from abacist.models.views import visible_view
from abacist.recipes.recipe import Recipe
from abacist.runs import training
from abacist.runs.circumstances import circumstances
from abacist.runs.run import build_model, build_problems
from abacist.training import checkpoint
from abacist.training.checkpoint import Progress
from abacist.training.optimizer import Optimizer

RECORD = study.ROOT / "results" / "smallest-adder.json"

SETTINGS: Mapping[str, Any] = {
    "model.width": 3,
    "model.num_heads": 1,
    "model.head_width": 1,
    "model.activation": "gelu-tanh",
    "model.final_norm": False,
    "model.tied_head": True,
    "training.num_steps": 0,
    "training.warmup_steps": 0,
    "training.num_beginnings": 1,
    "training.repair_rounds": 0,
}
"""The settings that differ from `add-tiny`, apart from the width of the MLP."""

BATCH_SIZE = 128
LEARNING_RATE = 0.05
"""Largest learning rate of the first round."""
LATER_LEARNING_RATE = 0.02
"""Largest learning rate of all other rounds."""
WARMUP_STEPS = 100
FULL_STEPS = 200
"""Number of steps on all neighbourhoods at the end of a round."""
FULL_LEARNING_RATE = 0.01
FULL_WARMUP_STEPS = 20
STEPS_BETWEEN_EVALUATIONS = 500
HARD_FRACTION = 1 / 3
"""Share of a batch that is drawn from the neighbourhoods that the best seeds get wrong."""
NUM_BEST = 8
"""Number of seeds whose wrong neighbourhoods are drawn more often."""
MOST_WRONG = 1_500
"""Seeds with more wrong neighbourhoods than this have too many for their mistakes to matter."""


@dataclass(frozen=True)
class Neighbourhoods:
    """The N neighbourhoods that the model can distinguish.

    So that batches of all neighbourhoods have equal sizes, N is a multiple of the batch size: the
    last ones are copies with a share and a count of 0.
    """

    query: Tensor
    """int64 (N,): id of the query."""
    keys: Tensor
    """int64 (N, C): rows of the table in `Stack.logits`, whose last row stands for no key."""
    target: Tensor
    """int64 (N,): id of the right next token."""
    count: Tensor
    """int64 (N,): number of neighbourhoods of the certificate that look like this one."""
    share: Tensor
    """float32 (N,): share of training; half of it follows `count`, half is equal for all patterns."""


def neighbourhoods(model: Transformer, recipe: Recipe) -> Neighbourhoods:
    """Return the neighbourhoods of the certificate of a recipe, merged where the model sees no difference."""
    task, format = build_problems(recipe)
    layout = find_layout(task, format, model.config)
    enumeration = ColumnAdditionEnumeration(model, layout, most_cases=1e6)
    longest = max(len(pattern.tokens) for pattern in enumeration.patterns)
    parts = [part for part, _ in enumeration.parts()]
    contexts = [context for part in parts for context in part]

    def padded(rows: Tensor, padding: int) -> Tensor:
        return functional.pad(rows, (longest - rows.shape[1], 0), value=padding)

    ids = torch.cat([padded(context.ids, 0) for context in contexts])
    index, place = (
        torch.cat(
            [
                padded(context.pattern.coordinates.of(name), padding).expand(len(context.ids), -1)
                for context in contexts
            ]
        )
        for name, padding in (("index", -1), ("place", 0))
    )
    target = torch.cat([context.target for context in contexts])
    tokens = SchemeCoordinates(index, [place])
    view = visible_view(model.schemes, tokens[slice(longest - 1, longest)], tokens)
    assert view.keys is not None
    visible, bucket = view.visible.squeeze(1), view.bias_inputs[0].squeeze(1)
    num_ids = model.embedding.num_embeddings
    seen = torch.where(visible, bucket * num_ids + ids.gather(1, view.keys.squeeze(1)), -1)
    sizes = torch.tensor([sum(len(context.ids) for context in part) for part in parts])
    number = torch.arange(len(parts)).repeat_interleave(sizes)
    rows = torch.cat([seen, ids[:, -1:], target.unsqueeze(1), number.unsqueeze(1)], dim=1)
    # The certificate counts what two patterns can hold twice, even if they look equal to the model.
    distinct = torch.unique(rows, dim=0)[:, :-1]
    distinct[:, :-2] = distinct[:, :-2].sort(dim=1).values
    merged, count = torch.unique(distinct, dim=0, return_counts=True)
    keys, query, target = merged[:, :-2], merged[:, -2], merged[:, -1]
    pattern = torch.where(keys < 0, -1, keys // num_ids)
    _, group, size = torch.unique(pattern, dim=0, return_inverse=True, return_counts=True)
    share = 0.5 * count / count.sum() + 0.5 / len(size) / size[group]
    row_length = (int(bucket.max()) + 1) * num_ids
    rows = torch.where(keys < 0, num_ids * row_length, query.unsqueeze(1) * row_length + keys)
    copies = -len(query) % BATCH_SIZE
    query, rows, target = (torch.cat([x, x[:copies]]) for x in (query, rows, target))
    count, share = (functional.pad(x, (0, copies)) for x in (count, share))
    return Neighbourhoods(query, rows, target, count, share)


class Stack:
    """The parameters of S models of equal settings, and the function that they define.

    Dimension S comes last everywhere. The gains of the normalisations stay at 1: the matrices after
    them can do what they do.
    """

    def __init__(self, model: Transformer, num_seeds: int, generator: torch.Generator) -> None:
        self.num_seeds = num_seeds
        gains = ("attention_norm.weight", "mlp_norm.weight")
        self.shapes = {
            name: parameter.shape
            for name, parameter in model.named_parameters()
            if not name.endswith(gains)
        }
        drawn = [
            _initial(name, shape, num_seeds, generator).flatten(0, -2)
            for name, shape in self.shapes.items()
        ]
        self.flat = torch.cat(drawn).requires_grad_()
        """All parameters, (number of parameters, S)."""

    def copy_to(self, model: Transformer, seed: int) -> None:
        """Copy the parameters of one seed into a model."""
        own = dict(model.named_parameters())
        with torch.no_grad():
            for name, values in self.by_name(self.flat.detach()).items():
                own[name].copy_(values[..., seed])

    def by_name(self, flat: Tensor) -> dict[str, Tensor]:
        """Return the parameters by their names in the model, (…, S) each."""
        sizes = [shape.numel() for shape in self.shapes.values()]
        parts = torch.split(flat, sizes)
        return {
            name: part.view(*shape, self.num_seeds)
            for (name, shape), part in zip(self.shapes.items(), parts, strict=True)
        }

    def losses_and_margins(
        self, flat: Tensor, query: Tensor, keys: Tensor, target: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return the loss and the margin of each of B neighbourhoods for each seed, (B, S) each."""
        logits = self.logits(flat, query, keys)
        right = torch.arange(logits.shape[1]).unsqueeze(1) == target.view(-1, 1, 1)
        right_logit = torch.where(right, logits, 0).sum(dim=1)
        margin = right_logit - torch.where(right, -math.inf, logits).amax(dim=1)
        largest = logits.detach().amax(dim=1, keepdim=True)
        total = (logits - largest).exp().sum(dim=1).log() + largest.squeeze(1)
        return total - right_logit, margin.detach()

    def logits(self, flat: Tensor, query: Tensor, keys: Tensor) -> Tensor:
        """Return the logits of B neighbourhoods for each seed, (B, V, S).

        A table holds the attention weight of each query, bucket and key before it is normalised,
        so that attention is a quotient of two sums of rows.
        """
        own = self.by_name(flat)
        embedding = own["embedding.weight"]
        attention = "blocks.0.attention"
        x = _normalised(embedding)
        q, k, v = (
            (x * own[f"{attention}.{name}.weight"]).sum(dim=1) for name in ("query", "key", "value")
        )
        bias = own[f"{attention}.relative.0.table"]
        scores = q.unsqueeze(1).unsqueeze(1) * k + bias
        weights = (scores - scores.detach().amax(dim=(1, 2), keepdim=True)).exp()
        empty = torch.zeros(1, self.num_seeds)
        slots = (*keys.shape, self.num_seeds)
        mixed, mass = (
            torch.cat([table.flatten(0, 2), empty])
            .index_select(0, keys.flatten())
            .view(slots)
            .sum(dim=1)
            for table in (weights * v, weights)
        )
        output = own[f"{attention}.output.weight"].squeeze(1)
        resid = embedding.index_select(0, query) + (mixed / mass).unsqueeze(1) * output
        hidden = _product(_normalised(resid), own["blocks.0.mlp.up.weight"])
        hidden = functional.gelu(hidden + own["blocks.0.mlp.up.bias"], approximate="tanh")
        resid = resid + _product(hidden, own["blocks.0.mlp.down.weight"])
        return _product(resid, embedding)


def _initial(name: str, shape: torch.Size, num_seeds: int, generator: torch.Generator) -> Tensor:
    """Draw the first values of a parameter for all seeds, (…, S).

    The digits begin on a helix, since a digit is both a number and a place on a circle; all their
    numbers are trained.
    """
    values = torch.randn(*shape, num_seeds, generator=generator)
    if name == "embedding.weight":
        digit = torch.arange(10).unsqueeze(1)
        radius, start, stride = torch.rand(3, num_seeds, generator=generator)
        slope, height, turn = torch.randn(3, num_seeds, generator=generator)
        angle = 2 * math.pi * start + turn.sign() * (0.5 + 0.2 * stride) * digit
        radius = 3 * (0.5 + radius)
        line = 0.6 * slope * (digit - 4.5) + height
        helix = torch.stack([radius * angle.cos(), radius * angle.sin(), line], dim=1)
        values[:10] = helix + 0.1 * values[:10]
    elif name.endswith("relative.0.table"):
        values[-1] += 2  # the token without a place, which is in every line, gets much attention
    elif name.endswith(("query.weight", "key.weight")):
        values *= 0.1 * shape[-1] ** -0.5
    elif name.endswith(".weight"):
        values *= shape[-1] ** -0.5
    return values


def _normalised(x: Tensor) -> Tensor:
    """Divide by the root of the mean square along dimension 1, as RMSNorm with a gain of 1 does."""
    return x * (x.square().mean(dim=1, keepdim=True) + 1e-6).rsqrt()


def _product(x: Tensor, matrix: Tensor) -> Tensor:
    """Return the products of x, (B, n, S), and the matrices of all seeds, (m, n, S): (B, m, S)."""
    terms = [x[:, i].unsqueeze(1) * matrix[:, i] for i in range(x.shape[1])]
    return sum(terms[1:], terms[0])


LossesAndMargins = Callable[[Tensor, Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]


class Search:
    """The training of all seeds of a stack."""

    def __init__(
        self,
        stack: Stack,
        cases: Neighbourhoods,
        losses_and_margins: LossesAndMargins,
        generator: torch.Generator,
    ) -> None:
        self.stack, self.cases, self.generator = stack, cases, generator
        self._losses_and_margins = losses_and_margins
        self._batches = torch.split(torch.arange(len(cases.query)), BATCH_SIZE)
        """All neighbourhoods."""

    def round(self, num_steps: int, learning_rate: float, hard_from: int) -> tuple[Tensor, Tensor]:
        """Train all seeds, and return their wrong neighbourhoods and smallest margins, (S,) each."""
        optimizer = torch.optim.Adam([self.stack.flat], betas=(0.9, 0.98), fused=True)
        hard: Tensor | None = None
        num_hard = int(HARD_FRACTION * BATCH_SIZE)
        for step in range(num_steps):
            if step >= hard_from and step % STEPS_BETWEEN_EVALUATIONS == 0:
                hard = self._hard()
            batch = self._draw(self.cases.share, BATCH_SIZE)
            if hard is not None:
                batch[:num_hard] = self._draw(hard, num_hard)
            loss, _ = self._of(batch)
            torch.autograd.backward(loss.sum() / BATCH_SIZE)
            self._update(optimizer, learning_rate * _schedule(step, num_steps, WARMUP_STEPS))
        return self._finish()

    def _finish(self) -> tuple[Tensor, Tensor]:
        """Train on all neighbourhoods, keep the best parameters of each seed, and return what they get.

        Neighbourhoods count in proportion to the probability of a wrong token, so that those that
        are nearly certain do not matter.
        """
        flat = self.stack.flat
        optimizer = torch.optim.Adam([flat], betas=(0.9, 0.95), fused=True)
        best = flat.detach().clone()
        least = torch.full((self.stack.num_seeds,), math.inf)
        widest = torch.full_like(least, -math.inf)
        """Smallest margin of the best parameters of each seed."""
        for step in range(FULL_STEPS + 1):
            wrong, smallest = torch.zeros_like(least), torch.full_like(least, math.inf)
            for batch in self._batches:
                loss, margin = self._of(batch)
                mistake = 1 - (-loss.detach()).exp()
                share = self.cases.share[batch].unsqueeze(1)
                torch.autograd.backward((loss * mistake * share).sum())
                wrong += (~(margin > 0) * self.cases.count[batch].unsqueeze(1)).sum(dim=0)
                smallest = torch.minimum(smallest, margin.amin(dim=0))
            better = (wrong < least) | ((wrong == least) & (smallest > widest))
            best = torch.where(better, flat.detach(), best)
            least, widest = (
                torch.where(better, new, old) for new, old in ((wrong, least), (smallest, widest))
            )
            self._update(
                optimizer, FULL_LEARNING_RATE * _schedule(step, FULL_STEPS, FULL_WARMUP_STEPS)
            )
        with torch.no_grad():
            flat.copy_(best)
        return least.long(), widest

    def _of(self, batch: Tensor) -> tuple[Tensor, Tensor]:
        """Return losses and margins of a batch of neighbourhoods, (B, S) each."""
        cases = self.cases
        return self._losses_and_margins(
            self.stack.flat, cases.query[batch], cases.keys[batch], cases.target[batch]
        )

    def _draw(self, share: Tensor, number: int) -> Tensor:
        return share.multinomial(number, replacement=True, generator=self.generator)

    def _hard(self) -> Tensor | None:
        """Return how many of the best seeds get each neighbourhood wrong, (N,); None if none does."""
        is_wrong = torch.cat([~(self._of(batch)[1] > 0) for batch in self._batches])
        is_wrong &= self.cases.count.unsqueeze(1) > 0
        wrong = (is_wrong * self.cases.count.unsqueeze(1)).sum(dim=0)
        order = wrong.argsort()[:NUM_BEST]
        hard = is_wrong[:, order[wrong[order] < MOST_WRONG]].sum(dim=1).float()
        return hard if bool(hard.any()) else None

    def _update(self, optimizer: torch.optim.Optimizer, learning_rate: float) -> None:
        """Take a step with gradients of length at most 1 for each seed; a seed that diverged stays."""
        flat = self.stack.flat
        assert flat.grad is not None
        flat.grad.nan_to_num_(nan=0.0, posinf=0.0, neginf=0.0)
        flat.grad /= flat.grad.norm(dim=0).clamp(min=1)
        optimizer.param_groups[0]["lr"] = learning_rate
        optimizer.step()
        optimizer.zero_grad()


def _schedule(step: int, num_steps: int, warmup_steps: int) -> float:
    """Return the learning rate relative to the largest: a warm-up, then half a cosine down to 1 %."""
    cosine = 0.5 * (1 + math.cos(math.pi * step / num_steps))
    return min(1.0, (step + 1) / warmup_steps) * (0.01 + 0.99 * cosine)


def write_run(recipe: Recipe, path: Path, stack: Stack, seed: int, seconds: float) -> Any:
    """Write one seed as a run of the recipe, prove it, and return the certificate."""
    run = training.start(recipe, path, seed, overwrite=True)
    stack.copy_to(run.model, seed)
    optimizer = Optimizer(run.model, recipe.training)
    progress = Progress(0, seconds, finished=True)
    checkpoint.save(run.directory.checkpoints, run.model, optimizer, progress)
    # They were measured before the weights were written.
    run.directory.metrics.unlink()
    return run.prove()


def main() -> None:
    arguments = _arguments()
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    changes = {**SETTINGS, "model.mlp_width": arguments.mlp_width}
    # Under a name of its own: a report must not say that `abacist train` repeats this training.
    recipe = replace(override(recipes.find("add-tiny"), changes), name="smallest-adder")
    model = build_model(recipe)
    generator = torch.Generator().manual_seed(arguments.seed)
    stack = Stack(model, arguments.num_seeds, generator)
    losses_and_margins: LossesAndMargins = stack.losses_and_margins
    if arguments.compile:
        losses_and_margins = torch.compile(losses_and_margins, dynamic=False)
    search = Search(stack, neighbourhoods(model, recipe), losses_and_margins, generator)
    begin, processor_begin = time.perf_counter(), time.process_time()
    rounds: list[dict[str, Any]] = []
    is_widened = False
    while len(rounds) < arguments.rounds and not is_widened:
        is_widened = bool(rounds) and 0 in rounds[-1]["wrong_by_seed"]
        wrong, margin = search.round(
            arguments.num_steps,
            LATER_LEARNING_RATE if rounds else LEARNING_RATE,
            hard_from=0 if rounds else arguments.num_steps // 2,
        )
        rounds.append(
            {
                "wrong_by_seed": wrong.tolist(),
                "processor_seconds": round(time.process_time() - processor_begin, 1),
            }
        )
        ordered = wrong.sort().values.tolist()
        print(f"round {len(rounds)}: wrong neighbourhoods {ordered}", flush=True)
    # Of the seeds with the fewest wrong neighbourhoods, the one with the widest margin.
    best = int(torch.where(wrong == wrong.min(), margin, -math.inf).argmax())
    seconds = time.perf_counter() - begin
    certificate = write_run(recipe, arguments.out, stack, best, seconds)
    print(certificate)
    trial = {
        "settings": changes,
        "parameters": model.num_parameters,
        "seeds": arguments.num_seeds,
        "seed_of_the_search": arguments.seed,
        "steps_per_round": arguments.num_steps + FULL_STEPS,
        "compiled": arguments.compile,
        "rounds": rounds,
        "best_seed": best,
        "certificate": certificate.to_json(),
        "circumstances": circumstances(),
    }
    trials = json.loads(RECORD.read_text())["trials"] if RECORD.exists() else []
    others = [other for other in trials if other["settings"] != changes]
    trials = sorted([*others, trial], key=lambda each: each["parameters"])
    RECORD.write_text(json.dumps({"trials": trials}, indent=1) + "\n")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, help="directory of the run")
    parser.add_argument("--mlp-width", type=int, default=3, help="hidden width of the MLP")
    parser.add_argument("--num-seeds", type=int, default=64, help="number of seeds")
    parser.add_argument("--num-steps", type=int, default=20_000, help="steps of a round")
    parser.add_argument("--rounds", type=int, default=4, help="largest number of rounds")
    parser.add_argument("--seed", type=int, default=0, help="seed of all random numbers")
    parser.add_argument(
        "--compile",
        action="store_true",
        help="compile the calculation of losses, which needs a C++ compiler",
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
