"""A run as one web page that calculates, and checks its own proof, in the browser.

The page is a template with a style and a program in JavaScript (`calculator/`), which holds the model,
the notation and, for sums and differences, the enumeration of all neighbourhoods and the check, written
from the documentation. The weights are those of the checkpoint, as base64, so the page can calculate their SHA-256.
"""

import base64
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from abacist import __version__
from abacist.export.exportable import Exportable

_PARTS = Path(__file__).with_name("calculator")
_COMMON = ("sha256.js", "random.js", "transformer.js", "page.js")
_COLUMNS = ("columns.js", "column_sheet.js", *_COMMON, "check.js", "check_page.js", "claim.js")
_WORK = ("worked.js", "work_sheet.js", *_COMMON, "claim.js")
"""The program for sums and differences, which checks the proof, and the one for written work."""
_CHECK_LINK = '<li><a href="#check">Check the proof</a></li>'


@dataclass(frozen=True)
class _Wording:
    """How a page speaks of an operation."""

    verb: str
    """The verb of the title, as in "338 numbers that add"."""
    claim: str
    """What a certified model does, after "it" or "the model"."""
    problems: str
    ask: str = "A problem, with numbers of any length"


_WORDINGS = {
    "+": _Wording("add", "adds numbers of every length", "sums"),
    "-": _Wording("subtract", "subtracts numbers of every length", "differences"),
    "*": _Wording("multiply", "multiplies numbers of every length", "products", "A product"),
    "//": _Wording("divide", "divides numbers of every length", "divisions", "A division"),
    "%": _Wording("find remainders", "finds remainders of every length", "divisions", "A division"),
    "sort": _Wording("sort", "sorts up to 52 numbers of every length", "lists", "Some numbers"),
}


def page(exportable: Exportable) -> str:
    """Return the page of a run."""
    can_check = exportable.operation in ("+", "-")
    parts = _COLUMNS if can_check else _WORK
    script = "\n".join(['"use strict";', *map(_read, parts)])
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    wording = _WORDINGS[exportable.operation]
    calls = "solve(problem)", *(["check()"] if can_check else []), "weightsHash"
    contents = {
        "title": f"{exportable.run.model.num_parameters:,} numbers that {wording.verb}",
        "ask": wording.ask,
        "check-link": _CHECK_LINK if can_check else "",
        "check": _read("check.html") if can_check else "",
        "claim-number": "3" if can_check else "2",
        "calls": ", ".join(f"<code>window.abacist.{call}</code>" for call in calls),
        "version": __version__,
        "script-hash": f"sha256-{digest}",
        "style": _read("calculator.css"),
        "data": _json(_data(exportable)),
        "script": script,
    }
    text = _read("calculator.html")
    for name, content in contents.items():
        text = text.replace(f"@@{name}@@", content)
    return text


def _data(exportable: Exportable) -> dict[str, object]:
    """Return what the program needs to know of the run."""
    run, config, certificate = exportable.run, exportable.config, exportable.certificate
    wording = _WORDINGS[exportable.operation]
    return {
        "operation": exportable.operation,
        "vocabulary": list(run.format.vocabulary.tokens),
        "settings": {
            "heads": config.num_heads,
            "norm": config.norm,
            "epsilon": exportable.epsilon,
            "activation": config.activation,
            "windows": exportable.windows,
        },
        "facts": {
            "recipe": run.recipe.name,
            "seed": run.seed,
            "step": run.step,
            "parameters": run.model.num_parameters,
            "examples": f"{wording.problems} of numbers of at most {exportable.most_digits} digits",
            "claim": wording.claim,
        },
        "certificate": certificate
        and {
            "neighbourhoods": certificate.neighbourhoods,
            "wrong": certificate.wrong,
            "smallestMargin": certificate.smallest_margin,
            "roundingIsProved": certificate.rounding_is_proved,
            "weightsHash": certificate.weights_sha256,
        },
        "objection": exportable.shared_objection,
        "weights": base64.b64encode(exportable.weights).decode(),
    }


def _json(data: object) -> str:
    """Return JSON that can stand in a script element, which `</script>` would end."""
    return json.dumps(data).replace("<", "\\u003c")


def _read(name: str) -> str:
    return (_PARTS / name).read_text(encoding="utf-8")
