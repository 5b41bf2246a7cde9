"""An executor of sweeps that trains nothing."""

import json

from abacist.runs.outcome import Outcome
from abacist.sweeps.execution import Finished


def outcome(seed, validation=1.0, right=10, loss=0.1):
    return Outcome(
        seed=seed,
        seconds=1.0,
        processor_seconds=1.0,
        steps=10,
        batch_size=1,
        threads=1,
        peak_memory_mib=1,
        parameters=5,
        steps_to_target=10 if validation == 1 else None,
        curve=[{"step": s, "exact_match": validation * s / 10} for s in (0, 5, 10)],
        rows=[
            {"suite": "lengths", "name": "2 digits", "measure": "exact match"}
            | {"n": 10, "errors": 10 - right, "smallest_margin": 1.0}
        ],
        certificate={"certified": right == 10, "smallest_margin": 1.0},
        circumstances={},
        validation=validation,
        validation_loss=loss,
    )


class Pretended:
    """An executor that asks a function for the outcome of each trial, or for the reason of its failure."""

    def __init__(self, result):
        self.result, self.carried_out = result, []

    def carry_out(self, trials, path):
        for trial in trials:
            yield None
            self.carried_out.append(trial.directory)
            result = self.result(trial)
            if isinstance(result, str):
                yield Finished(trial, None, result)
                continue
            directory = trial.run_directory(path)
            directory.path.mkdir(parents=True)
            directory.outcome.write_text(json.dumps(result.to_json()))
            yield Finished(trial, result)

    def steps_made(self):
        return 0
