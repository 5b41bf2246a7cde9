"""What a sweep costs beside its trials: trials in this process, in processes of their own, and as Ray tasks.

    python benchmarks/sweeps.py [--trials 10]

The same short trials of `add` are carried out one after the other in each way, and the difference to
this process, whose libraries are loaded, is the overhead of a trial. The first sweep of each way is
timed apart: it starts the process from which trials are forked, or the cluster. Ray is left out where
it is not installed. All times are those of the clock, so the machine should do nothing else.
"""

import argparse
import importlib.util
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from abacist import recipes
from abacist.configuration import override
from abacist.recipes.shortening import shortened
from abacist.runs.examination import train_and_examine
from abacist.sweeps import sweep
from abacist.sweeps.execution import Executor
from abacist.sweeps.local import LocalProcesses
from abacist.sweeps.plan import Plan, Score, examination_of
from abacist.sweeps.ray_cluster import RayTasks
from abacist.training.threads import usable_processors

SHORT = override(shortened(recipes.find("add"), 0.05), {"training.validation_problems": "100"})
SCORE = Score(suites=(), digits=(10,), num_problems=10, proved=False)


def plan(trials: int) -> Plan:
    """Return a sweep of seeds that hardly train and are hardly scored."""
    group = sweep.of_seeds(SHORT, range(1)).groups[0]
    return Plan(recipe=SHORT, groups=[group], seeds=list(range(trials)), score=SCORE)


def in_this_process(folder: Path, trials: int) -> float:
    """Return the seconds that the trials take without a sweep."""
    examination = examination_of(SHORT, None, SCORE)
    begin = time.perf_counter()
    for seed in range(trials):
        train_and_examine(SHORT, folder / str(seed), seed, examination, 1, "cpu")
    return time.perf_counter() - begin


def swept(folder: Path, trials: int, make: Callable[[], Executor]) -> float:
    """Return the seconds that a sweep of the trials takes, the preparation of its executor included."""
    begin = time.perf_counter()
    results = sweep.start(plan(trials), folder, make())
    assert not results.failures, results.failures
    return time.perf_counter() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=10, help="number of trials of each way")
    trials = parser.parse_args().trials
    one_at_a_time = float(usable_processors())
    ways: dict[str, Callable[[], Executor]] = {"--on local": lambda: LocalProcesses(1)}
    if importlib.util.find_spec("ray") is None:
        print("Ray is not installed; pip install 'abacist[cluster]' adds it")
    else:
        ways["--on ray"] = lambda: RayTasks("ray", cpus_per_trial=one_at_a_time)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        in_this_process(folder / "warm", 1)
        alone = in_this_process(folder / "alone", trials) / trials
        print(f"{'in this process':18}{alone:8.2f} s a trial")
        for way, make in ways.items():
            first = swept(folder / f"first {way}", 1, make)
            each = swept(folder / f"all {way}", trials, make) / trials
            print(
                f"{way:18}{each:8.2f} s a trial, {each - alone:.2f} s more; "
                f"a first sweep of one trial takes {first:.1f} s"
            )


if __name__ == "__main__":
    main()
