"""All measurements and trainings that need a GPU, in pieces of a few minutes that resume where they stopped.

    python benchmarks/gpu.py --all [--budget 3] [--total 9] [--runs runs/gpu] [--out results]
    python benchmarks/gpu.py --piece utilisation

`--all` gives each unfinished piece `--budget` minutes, one after the other, until `--total` minutes are
over. Type the same command again until it says that everything is finished. Each piece is a process of
its own, so one that fails does not stop the others, and each writes a record, `gpu-PIECE.json`.
Finished pieces are skipped; delete a record to repeat its piece.

    kernels               the fused kernel of attention compared with plain attention, for every encoding
    utilisation           the products of a training step as a share of the GPU's peak
    seeds                 seeds of `add` per minute, many models in one process
    five-operations-10m   the training of this recipe, and those of the looped models of Abacus

`--rehearse` runs the same code at tiny sizes on the CPU, which a test does.
"""

import argparse
import json
import math
import signal
import statistics
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from abacist import files, recipes
from abacist.certificates.certificate import prove
from abacist.configuration import override
from abacist.data.stream import TrainingStream
from abacist.formats.annotated import AnnotatedTokens
from abacist.models.config import POSITIONS
from abacist.models.parameter_count import components
from abacist.models.teacher_forcing import IGNORED, coordinates_of, teacher_forced
from abacist.models.transformer import Path as AttentionPath
from abacist.models.transformer import Transformer
from abacist.recipes.recipe import Recipe
from abacist.runs import training
from abacist.runs.circumstances import circumstances
from abacist.runs.directory import RunDirectory
from abacist.runs.run import Run, build_model, build_problems
from abacist.scoring.trained_model import TrainedModel
from abacist.training.loop import Observer, TrainingInterrupted
from abacist.training.metrics import Metrics
from abacist.training.optimizer import Optimizer
from abacist.training.schedule import learning_rate
from abacist.training.step import training_step

PEAKS = {"H200": 989e12, "H100": 989e12, "A100": 312e12, "L40": 181e12, "A10": 125e12}
"""Peak of dense bfloat16 products in floating-point operations per second, from the makers' data sheets."""

SECONDS_BETWEEN_LINES = 10.0
"""Time between two lines about the progress of a training."""

LARGEST_DIFFERENCE = 2e-3
"""Largest difference between losses or gradients of two ways to calculate attention, which is rounding."""

Record = dict[str, Any]


@dataclass(frozen=True)
class Options:
    """Where and how long a piece runs."""

    out: Path
    runs: Path
    budget_seconds: float
    rehearse: bool

    @property
    def device(self) -> torch.device:
        return torch.device("cpu" if self.rehearse else "cuda")


@dataclass(frozen=True)
class Piece:
    """One measurement or training."""

    name: str
    goal: str
    run: Callable[[Options, float], Record]
    """Works until a time of `time.monotonic`, and returns the record; `finished` says whether it is done."""

    def record_in(self, out: Path) -> Path:
        return out / f"gpu-{self.name}.json"


def say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')}  {text}", flush=True)


def synchronise(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


def rehearsed(recipe: Recipe) -> Recipe:
    """Return a recipe with tiny sizes that trains for a few steps."""
    model = replace(recipe.model, width=32, num_heads=2, mlp_width=32)
    model = replace(
        model, num_layers=min(2, model.num_layers), recurrences=min(2, model.recurrences)
    )
    return replace(
        recipe,
        model=model,
        training=replace(
            recipe.training,
            num_steps=6,
            batch_size=8,
            warmup_steps=1,
            decay_steps=None,
            validate_every=3,
            validation_problems=10,
            sample_problems=5,
            checkpoint_every=3,
            stop_from=0,
            watch=(),
        ),
    )


# The fused kernel ---------------------------------------------------------------------------


def check_kernels(options: Options, until: float) -> Record:
    """Compare losses, gradients and times of the fused kernel with plain attention, encoding by encoding."""
    rows, failed = [], []
    coordinates = recipes.find("add").format.coordinates
    for name, schemes in sorted(POSITIONS.items()):
        if not all(scheme.coordinate in coordinates for scheme in schemes):
            continue
        say(f"kernels: {name}")
        try:
            row = compare_paths(name, options)
        except Exception as error:  # A kernel that cannot be compiled must not hide the others.
            row = {"positions": name, "failure": f"{type(error).__name__}: {error!s:.500}"}
        rows.append(row)
        if row.get("failure") or row["difference"] > LARGEST_DIFFERENCE:
            failed.append(name)
            say(f"kernels: {name} FAILED: {row.get('failure') or row['difference']}")
    return {"finished": True, "reached": not failed, "failed": failed, "encodings": rows}


def compare_paths(positions: str, options: Options) -> Record:
    """Return loss, gradient and time of both paths for a model with some named positions."""
    width, batch = (32, 8) if options.rehearse else (256, 256)
    changes = {"model.positions": positions, "model.width": str(width), "model.num_heads": "2"}
    recipe = override(recipes.find("add"), changes)
    torch.manual_seed(0)
    model = build_model(recipe).to(options.device).train()
    task, format = build_problems(recipe)
    lines = TrainingStream(task, format, recipe.split, batch, 0, device=options.device).batch(0)
    losses, gradients, times = [], [], {}
    # The fused kernel has no gradient on a CPU, so that a rehearsal compares two others.
    paths: tuple[AttentionPath, ...] = ("dense", "auto" if options.rehearse else "fused")
    for path in paths:
        seconds = []
        for _ in range(2 if options.rehearse else 6):
            model.zero_grad()
            synchronise(options.device)
            begin = time.perf_counter()
            loss = mean_loss(model, lines, path)
            loss.backward()  # type: ignore[no-untyped-call]
            synchronise(options.device)
            seconds.append(time.perf_counter() - begin)
        losses.append(loss.item())
        gradients.append(
            torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])
        )
        times[path] = round(1e3 * min(seconds), 3)
    scale = float(gradients[0].abs().max())
    difference = max(
        abs(losses[0] - losses[1]), float((gradients[0] - gradients[1]).abs().max()) / scale
    )
    return {"positions": positions, "difference": difference, "milliseconds": times}


def mean_loss(model: Transformer, lines: AnnotatedTokens, path: AttentionPath) -> Tensor:
    predictions = teacher_forced(model, lines, equal_lengths=True, path=path)
    return nn.functional.cross_entropy(
        predictions.logits.flatten(0, 1), predictions.labels.flatten(), ignore_index=IGNORED
    )


# Utilisation --------------------------------------------------------------------------------


def measure_utilisation(options: Options, until: float) -> Record:
    """Time whole training steps at width 1024 and depth 16, and profile one."""
    rows = {}
    for name in ("looped-abacus-1x16", "looped-abacus-16x1"):
        rows[name] = time_steps(name, options)
    best = max(row["utilisation"] or 0.0 for row in rows.values())
    return {"finished": True, "reached": best >= 0.4, "utilisation": best, "recipes": rows}


def time_steps(name: str, options: Options, num_steps: int = 12) -> Record:
    """Return the speed of the products in a training step, and the operations that take longest.

    The multiply-adds are counted by the model's formula (`abacist model RECIPE`), once for the forward
    pass and twice for the backward pass.
    """
    recipe = recipes.find(name)
    if options.rehearse:
        recipe, num_steps = rehearsed(recipe), 3
    # A progressive loss would add a second pass of random depth to each step.
    config = replace(recipe.training, precision="bfloat16", progressive_loss="none")
    recipe = replace(recipe, training=replace(config, batch_size=min(1_024, config.batch_size)))
    recipe = with_fitting_micro_batches(recipe, options.device)
    config = recipe.training
    stepper = Stepper(recipe, options.device)
    speeds = []
    for step in range(num_steps):
        seconds, tokens, predicting = stepper.step(step)
        parts = components(recipe.model, len(stepper.format.vocabulary), tokens, predicting)
        operations = 6 * config.batch_size * sum(part.multiply_adds for part in parts)
        speeds.append(operations / seconds)
        say(
            f"utilisation: {name}, {tokens} tokens, {seconds:.3f} s, {speeds[-1] / 1e12:.3g} TFLOP/s"
        )
    speed, peak = statistics.median(speeds[num_steps // 2 :]), peak_of(options.device)
    return {
        "batch_size": config.batch_size,
        "micro_batches": config.micro_batches,
        "operations_per_second": speed,
        "utilisation": None if peak is None else round(speed / peak, 3),
        "peak_memory_gib": peak_memory_gib(options.device),
        "profile": profile(lambda: stepper.step(num_steps), options.device),
    }


def peak_of(device: torch.device) -> float | None:
    if device.type != "cuda":
        return None
    name = torch.cuda.get_device_name()
    return next((peak for part, peak in PEAKS.items() if part in name), None)


def peak_memory_gib(device: torch.device) -> float | None:
    if device.type != "cuda":
        return None
    return round(torch.cuda.max_memory_allocated() / 2**30, 1)


class Stepper:
    """Makes training steps of a recipe and times them."""

    def __init__(self, recipe: Recipe, device: torch.device) -> None:
        torch.manual_seed(0)
        self.config, self.device = recipe.training, device
        self.model = build_model(recipe).to(device).train()
        task, self.format = build_problems(recipe)
        self.stream = TrainingStream(
            task, self.format, recipe.split, self.config.batch_size, 0, device=device
        )
        self.optimizer = Optimizer(self.model, self.config)

    def step(self, number: int) -> tuple[float, int, int]:
        """Return seconds, tokens per line and predicting tokens of one step."""
        lines = self.stream.batch(number)
        synchronise(self.device)
        begin = time.perf_counter()
        training_step(self.model, self.optimizer, lines, self.config, number, self.stream.aligned)
        synchronise(self.device)
        seconds = time.perf_counter() - begin
        return seconds, lines.ids.shape[1] - 1, int(lines.target[0].sum())


def with_fitting_micro_batches(recipe: Recipe, device: torch.device) -> Recipe:
    """Return a recipe with the smallest power of two of micro-batches whose step fits into the memory."""
    count = 1
    while True:
        fitting = replace(recipe, training=replace(recipe.training, micro_batches=count))
        try:
            Stepper(fitting, device).step(0)
        except torch.OutOfMemoryError:
            if 2 * count > recipe.training.batch_size:
                raise
        else:
            return fitting
        count *= 2
        torch.cuda.empty_cache()
        say(f"{recipe.name}: out of memory, so {count} micro-batches are tried")


def profile(action: Callable[[], object], device: torch.device) -> list[Record]:
    """Return the ten operations that take the most time of an action, with their shares."""
    kinds = [torch.profiler.ProfilerActivity.CPU]
    if device.type == "cuda":
        kinds.append(torch.profiler.ProfilerActivity.CUDA)
    with torch.profiler.profile(activities=kinds) as profiler:
        action()

    def own_time(event: Any) -> float:
        return float(
            event.self_device_time_total if device.type == "cuda" else event.self_cpu_time_total
        )

    events = sorted(profiler.key_averages(), key=own_time, reverse=True)
    total = sum(map(own_time, events)) or 1.0
    return [
        {
            "operation": event.key[:100],
            "calls": event.count,
            "share": round(own_time(event) / total, 3),
        }
        for event in events[:10]
    ]


# Many models in one process -----------------------------------------------------------------


class Stack:
    """Models of one recipe with different seeds, trained by the same operations.

    Their weights are stacked. Each model reads lines of its own, which have the same lengths in all
    models, so each learns what it would learn alone with another order of lengths.
    """

    def __init__(self, recipe: Recipe, num_models: int, device: torch.device) -> None:
        self.recipe, self.config, self.num_models = recipe, recipe.training, num_models
        models = []
        for seed in range(num_models):
            torch.manual_seed(seed)
            models.append(build_model(recipe).to(device))
        self.example = models[0]
        stacked, _ = torch.func.stack_module_state(models)
        self.weights = {name: tensor.detach() for name, tensor in stacked.items()}
        for tensor in self.weights.values():
            tensor.grad = torch.zeros_like(tensor)
        self.adamw = torch.optim.AdamW(
            [*self.weights.values()],
            lr=self.config.learning_rate,
            betas=(self.config.beta1, self.config.beta2),
            weight_decay=self.config.weight_decay,
            fused=True,
        )
        task, format = build_problems(recipe)
        rows = num_models * self.config.batch_size
        self.stream = TrainingStream(task, format, recipe.split, rows, 0, device=device)

    def step(self, number: int) -> Tensor:
        """Make one step of all models, and return their losses, (M,)."""
        lines, shape = self.stream.batch(number), (self.num_models, self.config.batch_size)
        first = int(lines.target.long().argmax(dim=1).min()) - 1
        labels = torch.where(lines.target, lines.ids, IGNORED)[:, first + 1 :].long()
        lines = lines[:, :-1]
        coordinates = coordinates_of(lines, equal_lengths=True)

        def loss(weights: dict[str, Tensor], ids_BT: Tensor, labels_BA: Tensor) -> Tensor:
            logits = torch.func.functional_call(
                self.example, weights, (ids_BT, coordinates, first), {"path": "dense"}
            )
            return nn.functional.cross_entropy(
                logits.flatten(0, 1), labels_BA.flatten(), ignore_index=IGNORED
            )

        gradients, losses = torch.func.vmap(torch.func.grad_and_value(loss))(
            self.weights,
            lines.ids.view(*shape, lines.ids.shape[1]),
            labels.view(*shape, labels.shape[1]),
        )
        scale = self._clipping(gradients)
        for name, gradient in gradients.items():
            self.weights[name].grad = gradient * scale.view(-1, *[1] * (gradient.dim() - 1))
        self.adamw.param_groups[0]["lr"] = learning_rate(self.config, number)
        self.adamw.step()
        return losses  # type: ignore[no-any-return]

    def _clipping(self, gradients: Mapping[str, Tensor]) -> Tensor:
        """Return the factor for the gradient of each model, (M,)."""
        squares = torch.stack([g.flatten(1).square().sum(dim=1) for g in gradients.values()])
        if self.config.clip_norm is None:
            return torch.ones_like(squares[0])
        return (self.config.clip_norm / (squares.sum(dim=0).sqrt() + 1e-6)).clamp(max=1.0)

    def model(self, number: int) -> Transformer:
        """Return one of the models, on the CPU."""
        model = build_model(self.recipe)
        own = {name: stacked[number].cpu() for name, stacked in self.weights.items()}
        model.load_state_dict(own)
        return model.eval()


def count_seeds(options: Options, until: float) -> Record:
    """Time stacks of several sizes, then train the fastest whole and prove some of its models."""
    recipe = recipes.find("add")
    sizes, timed, proved = [8, 64, 256, 1_024], 40, 8
    if options.rehearse:
        recipe, sizes, timed, proved = rehearsed(recipe), [1, 2], 2, 1
    rows: list[Record] = []
    for size in sizes:
        seconds = seconds_per_step(recipe, size, timed, options.device)
        whole = seconds * recipe.training.num_steps
        rows.append(
            {
                "models": size,
                "milliseconds_per_step": round(1e3 * seconds, 3),
                "seeds_per_minute": round(60 * size / whole, 2),
                "peak_memory_gib": peak_memory_gib(options.device),
            }
        )
        say(
            f"seeds: {size} models, {1e3 * seconds:.1f} ms a step, {60 * size / whole:.1f} seeds a minute"
        )
    fitting = [
        row
        for row in rows
        if row["milliseconds_per_step"] * recipe.training.num_steps
        < 1e3 * (until - time.monotonic())
    ]
    if not fitting:
        say("seeds: no time is left to train a whole stack; type a larger --budget")
        return {"finished": False, "reached": None, "stacks": rows}
    best = max(fitting, key=lambda row: row["seeds_per_minute"])
    say(f"seeds: training {best['models']} models to the end")
    begin = time.monotonic()
    stack = Stack(recipe, best["models"], options.device)
    for number in range(recipe.training.num_steps):
        stack.step(number)
    synchronise(options.device)
    trained = time.monotonic() - begin
    task, format = build_problems(recipe)
    certified = []
    for number in range(min(proved, best["models"])):
        trained_model = TrainedModel(stack.model(number), task, format, split=recipe.split)
        certified.append(prove(trained_model).certified)
        say(f"seeds: model {number} is {'certified' if certified[-1] else 'not certified'}")
    return {
        "finished": True,
        "reached": all(certified),
        "stacks": rows,
        "trained_models": best["models"],
        "training_seconds": round(trained, 1),
        "seeds_per_minute": round(60 * best["models"] / trained, 2),
        "certified": sum(certified),
        "proved": len(certified),
    }


def seconds_per_step(recipe: Recipe, size: int, num_steps: int, device: torch.device) -> float:
    """Return the time of a step of a stack, with the time that its lines take."""
    stack = Stack(recipe, size, device)
    for number in range(4):
        stack.step(number)
    synchronise(device)
    begin = time.perf_counter()
    for number in range(4, 4 + num_steps):
        stack.step(number)
    synchronise(device)
    return (time.perf_counter() - begin) / num_steps


# Trainings ----------------------------------------------------------------------------------


class UntilTime(Observer):
    """Says what a training does, and ends it like Ctrl-C, with a checkpoint, when its time is over."""

    def __init__(self, name: str, num_steps: int, until: float) -> None:
        self.name, self.num_steps, self.until, self.said = name, num_steps, until, 0.0

    def on_step(self, step: int, loss: float) -> None:
        now = time.monotonic()
        if now - self.said > SECONDS_BETWEEN_LINES:
            self.said = now
            say(f"{self.name}: step {step:,} of {self.num_steps:,}, loss {loss:.4g}")
        if now > self.until:
            self.until = math.inf
            signal.raise_signal(signal.SIGINT)

    def on_metrics(self, metrics: Metrics) -> None:
        say(
            f"{self.name}: step {metrics.step:,}, validation {metrics.exact_match}, "
            f"{metrics.problems_per_second:,.0f} problems a second"
        )


def train_recipe(
    name: str, settings: Mapping[str, str], options: Options, until: float
) -> tuple[Record, Run | None]:
    """Train a recipe, or resume it, until the time is over; return progress, and the run at its end."""
    # A tiny model must not be resumed as the real one.
    path = options.runs / (f"{name}-rehearsal" if options.rehearse else name)
    recipe = override(recipes.find(name), settings)
    recipe = rehearsed(recipe) if options.rehearse else recipe
    observer = UntilTime(name, recipe.training.num_steps, until)
    run = None
    try:
        if (path / "run.json").is_file():
            say(f"{name}: resumed")
            run = training.resume(path, observer)
        else:
            recipe = with_fitting_micro_batches(recipe, options.device)
            run = training.start(recipe, path, 0, observer=observer, device=options.device.type)
    except TrainingInterrupted as stopped:
        say(f"{name}: {stopped}")
    metrics = RunDirectory(path).read_metrics()
    last = metrics[-1] if metrics else {}
    keys = ("step", "loss", "seconds", "exact_match", "exact_answer", "problems_per_second")
    return {key: last.get(key) for key in keys}, run


def five_operations(options: Options, until: float) -> Record:
    """Train `five-operations-10m`, and score the five operations."""
    # The document's products are bfloat16, which is the default of its library on its device.
    settings = {"training.precision": "bfloat16"}
    progress, run = train_recipe("five-operations-10m", settings, options, until)
    if run is None:
        return {"finished": False, "reached": None, "progress": progress}
    say("five-operations-10m: scoring")
    card = run.score(("strata",), num_problems=20 if options.rehearse else 10_000)
    value = progress["exact_answer"]["value"]
    return {
        "finished": True,
        "reached": value >= 0.99,
        "progress": progress,
        "scores": card.sections["strata"].to_json(),
    }


def looped(name: str, size: int, goal: float) -> Callable[[Options, float], Record]:
    """Return the piece that trains a looped model and scores its grid of lengths."""

    def carry_out(options: Options, until: float) -> Record:
        progress, run = train_recipe(name, {}, options, until)
        if run is None:
            return {"finished": False, "reached": None, "progress": progress}
        say(f"{name}: scoring the grid of up to {size} digits")
        size_here, per_cell = (2, 2) if options.rehearse else (size, 10)
        card = run.score(("grid",), grid_size=size_here, grid_problems=per_cell)
        average = card.sections["grid"].details["average"]
        return {
            "finished": True,
            "reached": average >= goal,
            "average": average,
            "grid_size": size_here,
            "grid_problems": per_cell,
            "progress": progress,
        }

    return carry_out


PIECES = {
    piece.name: piece
    for piece in (
        Piece("kernels", "losses and gradients of both paths are equal", check_kernels),
        Piece("utilisation", "40 % of the peak in bfloat16", measure_utilisation),
        Piece("seeds", "every proved model is certified", count_seeds),
        Piece("five-operations-10m", "99 % of the validation answers", five_operations),
        *(
            Piece(name, f"{goal:.1%} of the grid of up to {size} digits", looped(name, size, goal))
            for name, size, goal in (
                ("looped-abacus-1x16", 100, 0.97),
                ("looped-abacus-8x2", 100, 0.97),
                ("looped-abacus-16x1", 100, 0.97),
                ("looped-abacus-post", 40, 0.613),
            )
        ),
    )
}


# The command --------------------------------------------------------------------------------


def is_finished(piece: Piece, options: Options) -> bool:
    """Whether a piece has a finished record; one of a rehearsal is none of a GPU."""
    file = piece.record_in(options.out)
    if not file.is_file():
        return False
    record = json.loads(file.read_text())
    return bool(record["finished"] and record["rehearsal"] == options.rehearse)


def carry_out(piece: Piece, options: Options) -> int:
    """Run one piece and write its record; return the exit code."""
    say(f"{piece.name}: begins; the goal is {piece.goal}")
    begin = time.monotonic()
    result = piece.run(options, begin + options.budget_seconds)
    record = {"piece": piece.name, "goal": piece.goal, **result}
    record |= {"rehearsal": options.rehearse, **circumstances()}
    files.write_json(piece.record_in(options.out), record)
    state = "has more to do" if not result["finished"] else "is finished"
    reached = {True: "; the goal is reached", False: "; the goal is MISSED", None: ""}
    say(f"{piece.name}: {state} after {time.monotonic() - begin:.0f} s{reached[result['reached']]}")
    return 0


def in_own_process(piece: Piece, options: Options) -> int:
    """Run one piece as a process, so that no failure of the GPU reaches the next piece."""
    command = [sys.executable, __file__, "--piece", piece.name]
    command += ["--budget", str(options.budget_seconds / 60)]
    command += ["--out", str(options.out), "--runs", str(options.runs)]
    return subprocess.run(command).returncode


def main(arguments: list[str] | None = None) -> int:
    """Return exit code 0 if all pieces are finished, 3 if the command should be repeated, 1 after a failure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--all", action="store_true", help="all pieces")
    which.add_argument("--piece", choices=list(PIECES))
    parser.add_argument(
        "--budget", type=float, default=3.0, help="minutes for each piece (default: 3)"
    )
    parser.add_argument("--total", type=float, default=math.inf, help="minutes for all of them")
    parser.add_argument(
        "--out", type=Path, default=Path("results"), help="directory of the records"
    )
    parser.add_argument("--runs", type=Path, default=Path("runs/gpu"), help="directory of the runs")
    parser.add_argument("--rehearse", action="store_true", help="tiny sizes on the CPU")
    parsed = parser.parse_args(arguments)
    options = Options(parsed.out, parsed.runs, 60 * parsed.budget, parsed.rehearse)
    if not (options.rehearse or torch.cuda.is_available()):
        raise SystemExit("torch finds no GPU on this machine. Try --rehearse.")
    for directory in (options.out, options.runs):
        files.make_directory(directory)
    if parsed.piece:
        return carry_out(PIECES[parsed.piece], options)
    end, failed = time.monotonic() + 60 * parsed.total, []
    for piece in PIECES.values():
        if is_finished(piece, options):
            say(f"{piece.name}: is finished already")
            continue
        left = end - time.monotonic()
        if left < min(60.0, options.budget_seconds):
            say("the time of --total is over")
            break
        limited = replace(options, budget_seconds=min(options.budget_seconds, left))
        try:
            code = (carry_out if options.rehearse else in_own_process)(piece, limited)
        except Exception:
            traceback.print_exc()
            code = 1
        if code:
            failed.append(piece.name)
    unfinished = [name for name, piece in PIECES.items() if not is_finished(piece, options)]
    say(f"failed: {', '.join(failed) or 'none'}; unfinished: {', '.join(unfinished) or 'none'}")
    if failed:
        return 1
    return 3 if unfinished else 0


if __name__ == "__main__":
    sys.exit(main())
