"""Whether an interrupted training ends the same, and how much faster seeds train side by side.

    python benchmarks/repeating.py --out results/repeating.json

A run that is killed (`kill -9`) and resumed must end with the weights of a run that never was. The
kills come at a random moment after a random checkpoint. Ten seeds with one job per core are timed
against the same ten seeds one after the other.
"""

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from safetensors.torch import load_file

from abacist import recipes
from abacist.configuration import override
from abacist.errors import RunError
from abacist.runs.circumstances import circumstances
from abacist.runs.directory import RunDirectory
from abacist.sweeps import sweep
from abacist.sweeps.local import LocalProcesses
from abacist.training import checkpoint_paths
from abacist.training.threads import usable_processors

STEPS, EVERY = 400, 25
SETTINGS = {"training.num_steps": STEPS, "training.checkpoint_every": EVERY}


def newest_checkpoint(path: Path) -> Path | None:
    """Return the newest checkpoint of the run in `path`, if it has one."""
    checkpoints = checkpoint_paths.all_in(path / "checkpoints")
    return checkpoints[-1] if checkpoints else None


def step_reached(path: Path) -> int:
    """Return the step of the newest checkpoint of the run in `path`, 0 without one."""
    newest = newest_checkpoint(path)
    return checkpoint_paths.step_of(newest) if newest else 0


def weights(path: Path) -> dict[str, Any]:
    """Return the tensors that the training in `path` ended with."""
    newest = newest_checkpoint(path)
    if newest is None or checkpoint_paths.step_of(newest) != STEPS:
        raise RunError(f"{path} has not reached step {STEPS}.")
    return load_file(newest / "model.safetensors")


def train(path: Path, *options: str) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "abacist", "train", "--train-only", "--out", str(path)]
    return subprocess.Popen(
        [*command, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def kill(process: "subprocess.Popen[bytes]", path: Path, step: int, delay: float) -> None:
    """Kill a training `delay` seconds after its checkpoint of `step`."""
    while step_reached(path) < step and process.poll() is None:
        time.sleep(0.001)
    time.sleep(delay)
    process.send_signal(signal.SIGKILL)
    process.wait()


def kills(directory: Path, count: int) -> dict[str, Any]:
    """Count the runs, of `count` killed at a random moment and resumed, that end with the same weights."""
    options = ["add", "--threads", "1"]
    for name, value in SETTINGS.items():
        options += [f"--{name}", str(value)]
    train(directory / "whole", *options).wait()
    whole = RunDirectory(directory / "whole").read_metrics()
    seconds_between = whole[-1]["seconds"] * EVERY / STEPS
    expected, same, steps = weights(directory / "whole"), 0, []
    generator = random.Random(0)
    for number in range(count):
        path = directory / f"killed-{number}"
        step = generator.randrange(0, STEPS, EVERY)
        kill(train(path, *options), path, step, generator.uniform(0, seconds_between))
        steps.append(step_reached(path))
        again = ["--resume"] if (path / "run.json").is_file() else options
        train(path, *again).wait()
        ended = weights(path)
        same += all(bool((ended[name] == expected[name]).all()) for name in expected)
        print(
            f"killed after step {steps[-1]} of {STEPS}: {same} of {number + 1} the same", flush=True
        )
    return {"kills": count, "same": same, "steps_kept": steps}


def side_by_side(directory: Path, count: int) -> dict[str, Any]:
    """Time `count` seeds: one job per core, and one after the other with all threads and with one."""
    recipe = override(recipes.find("add"), {"training.num_steps": 300, "scoring.longest": 100})
    cores, seconds = usable_processors(), {}
    for name, jobs, threads in (("together", cores, 1), ("in turn", 1, cores), ("alone", 1, 1)):
        begin = time.perf_counter()
        plan = sweep.of_seeds(recipe, range(count), threads, "cpu")
        sweep.start(plan, directory / name, LocalProcesses(jobs, threads))
        seconds[name] = time.perf_counter() - begin
        print(f"{count} seeds {name}: {seconds[name]:.1f} s", flush=True)
    best = min(seconds["in turn"], seconds["alone"])
    return {"seeds": count, "seconds": seconds, "ratio": best / seconds["together"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20, help="0 keeps this part of the record")
    parser.add_argument("--seeds", type=int, default=10, help="0 keeps this part of the record")
    parser.add_argument("--out", type=Path, help="write the record here, as JSON")
    arguments = parser.parse_args()
    record: dict[str, Any] = {}
    if arguments.out and arguments.out.exists():
        record = json.loads(arguments.out.read_text())
    with tempfile.TemporaryDirectory() as directory:
        if arguments.kills:
            record["kills"] = kills(Path(directory), arguments.kills)
            record["kills"]["circumstances"] = circumstances()
        if arguments.seeds:
            record["side by side"] = side_by_side(Path(directory), arguments.seeds)
            record["side by side"]["circumstances"] = circumstances()
    print(json.dumps(record, indent=1))
    if arguments.out:
        arguments.out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
