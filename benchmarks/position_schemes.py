"""One model trained with four position schemes, for the README's picture.

    python benchmarks/position_schemes.py

All schemes are trained on the same problems of at most 10 digits, with two layers of width 64 and with
the learning rate and number of steps at which the learned ones train well. The default recipe is an
even smaller model. Learned tables have 1,024 rows, enough for lines of up to 300 digits; longer
problems cannot be scored and are left out. Writes `results/position-schemes.json` and `docs/lengths.png`.
"""

import json
import tempfile
from pathlib import Path

import abacist
from abacist.configuration import to_json
from abacist.reports import matplotlib_figures, score_plots

ROOT = Path(__file__).parents[1]
COMMON: dict[str, object] = {
    "model.width": 64,
    "model.mlp_width": 256,
    "model.num_layers": 2,
    "training.num_steps": 3_000,
    "training.learning_rate": 2e-3,
    "scoring.longest": 200,
}
SCHEMES: dict[str, dict[str, object]] = {
    "place-relative, windowed (ours)": {
        "model.positions": "place-relative",
        "scoring.longest": 10_000,
    },
    "position coupling": {
        "model.positions": "coupling",
        "model.positions.0.num_positions": "1024",
    },
    "Abacus": {"model.positions": "abacus", "model.positions.0.num_positions": "1024"},
    "GPT-2 (index)": {"model.positions": "gpt2", "model.positions.0.num_positions": "1024"},
}


def main() -> None:
    record: dict[str, object] = {"recipe": "add", "seed": 0}
    series = {}
    for name, settings in SCHEMES.items():
        with tempfile.TemporaryDirectory() as directory:
            run = abacist.train(
                "add", out=Path(directory) / "run", seed=0, settings=COMMON | settings
            )
            rows = score_plots.length_series(run.score().sections["lengths"])["equal lengths"]
            series[name] = rows
            record[name] = {"settings": COMMON | settings, "rows": to_json(rows)}
            print(name, [(row.digits, row.proportion) for row in rows])
    (ROOT / "results" / "position-schemes.json").write_text(json.dumps(record, indent=1) + "\n")
    chart = score_plots.by_length(series, trained_digits=10)
    if chart is not None:
        matplotlib_figures.draw([chart], ROOT / "docs" / "lengths.png")


if __name__ == "__main__":
    main()
