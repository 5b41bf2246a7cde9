"""A run as one web page that calculates, and checks its own proof, in the browser.

The page is a template with a style sheet and a JavaScript program (`calculator/`). The program contains
the model, its notations, the enumeration of all neighbourhoods and the check; it was written from the
documentation. The weights are the checkpoint's file in base64, so the page can calculate their SHA-256.
"""

import base64
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from abacist import __version__
from abacist.export.exportable import Exportable
from abacist.export.template import fill

_PARTS = Path(__file__).with_name("calculator")
_NOTATIONS = {
    "+": ("columns.js",),
    "-": ("columns.js",),
    "*": ("products.js",),
    "//": ("divisions.js", "division_rows.js"),
    "%": ("divisions.js", "division_rows.js"),
    "sort": ("sorting.js",),
}
"""The part of the program that writes an operation and enumerates its neighbourhoods."""
_COMMON = (
    "sha256.js", "random.js", "transformer.js", "page.js", "column_sheet.js", "work_sheet.js",
    "check.js", "check_page.js", "claim.js",
)  # fmt: skip


@dataclass(frozen=True)
class _Wording:
    """How a page speaks of an operation."""

    verb: str
    """The verb of the title, as in "338 numbers that add"."""
    claim: str
    """What a certified model does, after "it" or "the model"."""
    problems: str
    """What it learned from, before "numbers of at most 6 digits"."""
    ask: str = "A problem, with numbers of up to 4,000 digits here"


_WORDINGS = {
    "+": _Wording("add", "adds numbers of every length", "sums of"),
    "-": _Wording("subtract", "subtracts numbers of every length", "differences of"),
    "*": _Wording("multiply", "multiplies numbers of every length", "products of", "A product"),
    "//": _Wording("divide", "divides numbers of every length", "divisions of", "A division"),
    "%": _Wording(
        "find remainders",
        "finds remainders of numbers of every length",
        "divisions of",
        "A division",
    ),
    "sort": _Wording("sort", "sorts up to {} numbers of every length", "lists of", "Some numbers"),
}
_FIVE_OPERATIONS = _Wording(
    "calculate", "calculates with numbers of every length", "calculations with", "A problem"
)


def page(exportable: Exportable) -> str:
    """Return the page of a run."""
    used = (part for operation in exportable.operations for part in _NOTATIONS[operation])
    calculator = ("five_operations.js",) if exportable.is_calculator else ()
    parts = ("notation.js", *dict.fromkeys(used), *calculator, *_COMMON)
    script = "\n".join(['"use strict";', *map(_read, parts)])
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    wording = _wording(exportable)
    contents = {
        "title": f"{exportable.run.model.num_parameters:,} numbers that {wording.verb}",
        "ask": wording.ask,
        "version": __version__,
        "script-hash": f"sha256-{digest}",
        "style": _read("calculator.css"),
        "data": _json(_data(exportable)),
        "script": script,
    }
    return fill(_read("calculator.html"), contents)


def _wording(exportable: Exportable) -> _Wording:
    return _FIVE_OPERATIONS if exportable.is_calculator else _WORDINGS[exportable.operations[0]]


def _data(exportable: Exportable) -> dict[str, object]:
    """Return what the program needs to know of the run."""
    run, config, certificate = exportable.run, exportable.config, exportable.certificate
    wording = _wording(exportable)
    return {
        "operations": exportable.operations,
        "isCalculator": exportable.is_calculator,
        "mostNumbers": exportable.most_numbers,
        "vocabulary": list(run.format.vocabulary.tokens),
        "settings": {
            "heads": config.num_heads,
            "norm": config.norm,
            "epsilon": exportable.config.epsilon,
            "activation": config.activation,
            "windows": exportable.windows,
        },
        "facts": {
            "recipe": run.recipe.name,
            "seed": run.seed,
            "step": run.step,
            "parameters": run.model.num_parameters,
            "examples": (
                f"{wording.problems} numbers of at most {exportable.most_digits} digits"
                if run.step
                else None
            ),
            "claim": wording.claim.format(exportable.most_numbers),
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
