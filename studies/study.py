"""What the studies share: the state of a sweep, and a page that reports it with a table."""

import argparse
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from abacist.sweeps.plan import Plan

ROOT = Path(__file__).parents[1]


def sweep_directory(description: str) -> Path:
    """Return the directory of the sweep that the user has typed."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sweep", type=Path, help="directory of the sweep")
    path: Path = parser.parse_args().sweep
    return path


def state_of(plan: Plan, table: Mapping[str, Any]) -> dict[str, Any]:
    """Return the number of trials of a sweep, and from its table, `sweep.json`, what is unfinished and what failed."""
    names = ("unfinished", "failures")
    return {"trials": plan.num_trials, **{name: table[name] for name in names}}


def with_table(text: str, state: Mapping[str, Any], table: str, name: str = "table") -> str:
    """Return a page with the state of the sweep and its table replaced; the table may be empty.

    They stand between the comments `<!-- NAME -->` and `<!-- end of NAME -->`.
    """
    unfinished, total = state["unfinished"], state["trials"]
    parts = ["Every trial is finished."]
    if unfinished == total:
        parts = [f"The study has not been run yet: none of its {total:,} trials is finished."]
    elif unfinished:
        parts = [f"{unfinished:,} of the {total:,} trials are unfinished."]
    content = "\n\n".join([*parts, *([table] if table else [])]) + "\n"
    marked = rf"(<!-- {name} -->\n).*?(<!-- end of {name} -->)"
    return re.sub(marked, lambda match: f"{match[1]}{content}{match[2]}", text, flags=re.DOTALL)
