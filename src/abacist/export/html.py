"""A run as one web page that calculates, and checks its own proof, in the browser.

The page is a template with a style and a program in JavaScript (`calculator/`), which holds the model,
the notation, the enumeration of all neighbourhoods and the check, written from the documentation. The
weights are those of the checkpoint, as base64, so the page can calculate their SHA-256.
"""

import base64
import hashlib
import json
from pathlib import Path

from abacist import __version__
from abacist.export.exportable import Exportable

_PARTS = Path(__file__).with_name("calculator")
_SCRIPTS = ("sha256.js", "transformer.js", "columns.js", "check.js", "page.js")
"""The program, in the order in which its parts use each other."""
_PROBLEMS = {"+": ("add", "sums"), "-": ("subtract", "differences")}


def page(exportable: Exportable) -> str:
    """Return the page of a run."""
    script = "\n".join(['"use strict";', *map(_read, _SCRIPTS)])
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    verb, _ = _PROBLEMS[exportable.operation]
    contents = {
        "title": f"{exportable.run.model.num_parameters:,} numbers that {verb}",
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
            "digits": exportable.task.longest_operand,
            "problems": _PROBLEMS[exportable.operation][1],
        },
        "certificate": certificate
        and {
            "neighbourhoods": certificate.neighbourhoods,
            "wrong": certificate.wrong,
            "smallestMargin": certificate.smallest_margin,
            "roundingIsProved": certificate.rounding_is_proved,
            "weightsHash": certificate.weights_sha256,
        },
        "objection": exportable.objection,
        "weights": base64.b64encode(exportable.weights).decode(),
    }


def _json(data: object) -> str:
    """Return JSON that can stand in a script element, which `</script>` would end."""
    return json.dumps(data).replace("<", "\\u003c")


def _read(name: str) -> str:
    return (_PARTS / name).read_text(encoding="utf-8")
