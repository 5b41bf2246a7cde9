"""The default recipe with other position schemes: same data, size, steps and seed. The README's picture.

    python benchmarks/position_schemes.py

Writes `results/position-schemes.json` and `docs/lengths.png`. Learned tables get 1,024 rows, so
that lines up to 300 digits fit; what a table has no row for cannot be scored and is left out.
"""

import json
import tempfile
from pathlib import Path

import abacist
from abacist.reports.figures import draw_lengths, series_of

ROOT = Path(__file__).parents[1]
SCHEMES = {
    "place-relative, windowed (add)": {"model.positions": "place-relative"},
    "position coupling": {
        "model.positions": "coupling",
        "model.positions.0.num_positions": "1024",
    },
    "Abacus": {"model.positions": "abacus", "model.positions.0.num_positions": "1024"},
    "GPT-2 (index)": {"model.positions": "gpt2", "model.positions.0.num_positions": "1024"},
    "none (NoPE)": {"model.positions": "nope"},
}


def main() -> None:
    record: dict[str, object] = {"recipe": "add", "seed": 0}
    series = {}
    for name, settings in SCHEMES.items():
        with tempfile.TemporaryDirectory() as directory:
            run = abacist.train("add", out=Path(directory) / "run", seed=0, settings=settings)
            card = run.score().to_json()
            series[name] = series_of(card)["equal lengths"]
            record[name] = {"settings": settings, "rows": series[name]}
            print(name, [(row["digits"], row["exact_match"]["value"]) for row in series[name]])
    (ROOT / "results" / "position-schemes.json").write_text(json.dumps(record, indent=1) + "\n")
    draw_lengths(series, run.recipe.task.max_digits, ROOT / "docs" / "lengths.png")


if __name__ == "__main__":
    main()
