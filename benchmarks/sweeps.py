"""What a sweep costs beside its trials: trials in this process, in processes of their own, and as Ray tasks.

    RAY_worker_niceness=0 python benchmarks/sweeps.py [--trials 10] [--out results/sweeps.json]

The same short trials of `add` are carried out one after the other in each way. The difference to this
process, whose libraries are loaded, is the overhead of a trial. The first sweep of each way is timed
apart: it starts the process from which trials are forked, or the cluster. Ray is left out where it is
not installed.

One seed of `add` is then trained, scored and proved, and the cost of many seeds on many cores follows
from both by arithmetic. Processor seconds are those of this process and of all that it has started,
which is known on Linux alone; other programs lengthen them far less than the seconds of the clock.
"""

import argparse
import importlib.util
import json
import os
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from abacist import recipes
from abacist.configuration import override
from abacist.recipes.shortening import shortened
from abacist.runs.circumstances import circumstances
from abacist.runs.examination import train_and_examine
from abacist.sweeps import sweep
from abacist.sweeps.execution import Executor
from abacist.sweeps.local import LocalProcesses
from abacist.sweeps.plan import Plan, Score, examination_of
from abacist.sweeps.ray_cluster import RayTasks
from abacist.training.threads import usable_processors

RECIPE = recipes.find("add")
SHORT = override(shortened(RECIPE, 0.05), {"training.validation_problems": "100"})
SCORE = Score(suites=(), digits=(10,), num_problems=10, proved=False)
SEEDS, CORES = 1_000, 64
"""The sweep whose cost is computed."""

_SECONDS_BETWEEN_LOOKS = 0.05


@dataclass(frozen=True)
class Cost:
    """Seconds that something takes."""

    clock: float
    processor: float
    """Processor seconds of this process and of all that it has started."""
    own: float
    """Processor seconds of this process alone, in which a sweep hands out trials one after the other."""

    def __truediv__(self, count: int) -> "Cost":
        return Cost(self.clock / count, self.processor / count, self.own / count)


class Descendants(threading.Thread):
    """Follows the processor seconds of all processes that this one has started, and those that they started.

    Ray does not wait for the processes of its trials, so the operating system adds their seconds to no
    other's. They are read while the processes run, and the last moments of each are missed.
    """

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.own_seconds = 0.0
        """Processor seconds of this thread."""
        self._seconds: dict[tuple[int, str], float] = {}
        self._look()
        self._begin = sum(self._seconds.values())
        self._is_over = threading.Event()

    def run(self) -> None:
        while not self._is_over.wait(_SECONDS_BETWEEN_LOOKS):
            self._look()
            self.own_seconds = time.thread_time()

    def end(self) -> float:
        """Return the processor seconds since the beginning."""
        self._is_over.set()
        self.join()
        self._look()
        return sum(self._seconds.values()) - self._begin

    def _look(self) -> None:
        """Read the processor seconds of all running descendants."""
        seconds: dict[tuple[int, str], float] = {}
        children: dict[int, list[tuple[int, str]]] = {}
        for file in Path("/proc").glob("[0-9]*/stat"):
            try:
                # After the name: state, parent …; utime and stime, as the 12th and 13th; start as the 20th.
                fields = file.read_text().rpartition(")")[2].split()
            except OSError:
                # The process has ended in the meantime.
                continue
            process = int(file.parent.name), fields[19]
            seconds[process] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
            children.setdefault(int(fields[1]), []).append(process)
        # Whoever has been a descendant stays one, although its parent may have ended.
        ours = [process for process in self._seconds if process in seconds]
        ours += children.get(os.getpid(), [])
        while ours:
            process = ours.pop()
            self._seconds[process] = seconds[process]
            ours += children.pop(process[0], [])


def cost(action: Callable[[], object]) -> Cost:
    """Return what an action costs."""
    descendants = Descendants()
    descendants.start()
    clock, own = time.perf_counter(), time.process_time()
    action()
    clock, own = time.perf_counter() - clock, time.process_time() - own
    others = descendants.end()
    own -= descendants.own_seconds
    return Cost(clock, own + others, own)


def plan(trials: int) -> Plan:
    """Return a sweep of seeds that hardly train and are hardly scored."""
    group = sweep.of_seeds(SHORT, range(1)).groups[0]
    return Plan(recipe=SHORT, groups=[group], seeds=list(range(trials)), score=SCORE)


def in_this_process(folder: Path, trials: int) -> Cost:
    """Return the cost of the trials without a sweep."""
    examination = examination_of(SHORT, None, SCORE)

    def carry_out() -> None:
        for seed in range(trials):
            train_and_examine(SHORT, folder / str(seed), seed, examination, 1, "cpu")

    return cost(carry_out)


def swept(folder: Path, trials: int, make: Callable[[], Executor]) -> Cost:
    """Return the cost of a sweep of the trials, the preparation of its executor included."""

    def carry_out() -> None:
        results = sweep.start(plan(trials), folder, make())
        assert not results.failures, results.failures

    return cost(carry_out)


def one_seed(folder: Path) -> Cost:
    """Return the cost of one seed of the recipe, trained, scored and proved in this process."""
    examination = examination_of(RECIPE, None, None)
    return cost(lambda: train_and_examine(RECIPE, folder, 0, examination, 1, "cpu"))


def comparison(alone: Cost, first: Cost, each: Cost, seed: Cost) -> dict[str, Any]:
    """Return what a sweep costs beside its trials, and the cost of `SEEDS` seeds on `CORES` cores.

    The trials share the cores without a rest, unless the process that hands them out is slower.

    Args:
        alone: cost of a short trial in this process.
        first: cost of a first sweep of one short trial.
        each: cost of a further short trial.
        seed: cost of a seed of the recipe in this process.
    """
    overhead = each.processor - alone.processor
    processor = SEEDS * (seed.processor + overhead)
    figures = {
        "overhead_processor_seconds": overhead,
        "overhead_clock_seconds": each.clock - alone.clock,
        "handing_out_processor_seconds": each.own,
        "start_processor_seconds": first.processor - each.processor,
        "start_clock_seconds": first.clock - each.clock,
        "processor_hours_of_many_seeds": processor / 3600,
        "minutes_of_many_seeds": max(processor / CORES, SEEDS * each.own) / 60,
    }
    return {name: round(value, 2) for name, value in figures.items()}


def ways() -> dict[str, Callable[[], Executor]]:
    """Return the executors, each of which carries out one trial at a time."""
    executors: dict[str, Callable[[], Executor]] = {"local": lambda: LocalProcesses(1)}
    if importlib.util.find_spec("ray") is None:
        print('Ray is not installed; pip install --editable ".[cluster]" adds it')
    else:
        one_at_a_time = float(usable_processors())
        executors["ray"] = lambda: RayTasks("ray", cpus_per_trial=one_at_a_time)
    return executors


def measured(folder: Path, trials: int) -> dict[str, Any]:
    """Return the record of all measurements."""
    in_this_process(folder / "warm", 1)
    alone = in_this_process(folder / "alone", trials) / trials
    seed = one_seed(folder / "seed")
    record: dict[str, Any] = {
        "trials": trials,
        "short_trial_processor_seconds": round(alone.processor, 2),
        "seed_processor_seconds": round(seed.processor, 2),
        "many_seeds": {"seeds": SEEDS, "cores": CORES},
    }
    for way, make in ways().items():
        first = swept(folder / f"first {way}", 1, make)
        each = swept(folder / f"all {way}", trials, make) / trials
        record[way] = comparison(alone, first, each, seed)
    return record | circumstances()


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=10, help="number of trials of each way")
    parser.add_argument("--out", type=Path, help="write the record here, as JSON")
    parsed = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        record = measured(Path(name), parsed.trials)
    text = json.dumps(record, indent=2)
    print(text)
    if parsed.out:
        parsed.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
