"""A run as one readable Python file, which needs only PyTorch and holds the whole model with its weights.

The file is made from a template (`module.py.txt`) and contains only what the run's settings need. With
`build_model` and `add` it is an entry for AdderBoard (https://github.com/anadim/AdderBoard), a list
of the smallest transformers that add two numbers of ten digits.
"""

import base64
import json
from pathlib import Path

from abacist import __version__
from abacist.export.exportable import Exportable
from abacist.export.template import fill
from abacist.models.config import ModelConfig

_TEMPLATE = Path(__file__).with_name("module.py.txt")

_VERBS = {"+": "adds", "-": "subtracts"}
_PROBLEMS = {"+": "12+34", "-": "45-123"}
_EXAMPLES = {
    "+": "12 + 34 is `21+43=64`",
    "-": "45 - 123 is\n`54-321=229-`, where 922 stands for 922 - 1000, since `-` follows",
}
"""How a problem is written, for a reader of the file."""

_READ_SUM = '''\
def read(text: str) -> str | None:
    """Return the number that was written, units first; None if it is none."""
    match = re.fullmatch("(0|[0-9]*[1-9])<end>", text)
    return match and match[1][::-1]'''

_READ_DIFFERENCE = '''\
def read(text: str, width: int) -> str | None:
    """Return the number that was written modulo 10^width, units first; None if it is none."""
    sys.set_int_max_str_digits(0)  # numbers may have any length
    match = re.fullmatch(f"(?!0*-)([0-9]{{{width}}})(-?)<end>", text)
    return match and str(int(match[1][::-1]) - (10**width if match[2] else 0))'''

_ACTIVATIONS = {
    "relu": "relu({})",
    "gelu": "gelu({})",
    "gelu-tanh": 'gelu({}, approximate="tanh")',
    "geglu": "gelu({})",
    "swiglu": "silu({})",
}
"""The call of each activation, in `torch.nn.functional`."""

_TIE = "        self.head.weight = self.embedding.weight\n"
_TIED_WEIGHTS = '    tensors["head.weight"] = tensors["embedding.weight"]\n'

_BOARD = '''\
def build_model() -> tuple[Model, dict[str, object]]:
    """Return the model, and what AdderBoard asks about it."""
    model = load()
    metadata = {
        "name": f"abacist {ORIGIN['recipe']}",
        "author": @@author@@,
        "params": sum(parameter.numel() for parameter in model.parameters()),  # shared ones once
        "architecture": @@architecture@@,
        "tricks": @@tricks@@,
    }
    return model, metadata


def add(model: Model, a: int, b: int) -> int:
    """Return the sum that the model writes; -1 if what it writes is no number."""
    answer = read(generate(model, str(a), str(b)))
    return -1 if answer is None else int(answer)


'''


def module(exportable: Exportable) -> str:
    """Return the file with a class `Model` and a function `solve`."""
    return _file(exportable, board="")


def submission(exportable: Exportable) -> str:
    """Return the file of `module`, with the two functions that AdderBoard calls."""
    config = exportable.config
    tricks = [
        "digits in reversed order",
        f"trained relative biases of {' and '.join(name for name, _, _ in exportable.windows)}",
        "windowed attention",
    ]
    board = fill(
        _BOARD,
        {
            "author": _literal(f"trained with abacist {__version__}"),
            "architecture": _literal(_architecture(config)),
            "tricks": _list(tricks),
        },
    )
    return _file(exportable, board)


def _file(exportable: Exportable, board: str) -> str:
    run, config, operation = exportable.run, exportable.config, exportable.operation
    kind = "LayerNorm" if config.norm == "layer" else "RMSNorm"
    norm = f"nn.{kind}(WIDTH, eps={exportable.config.epsilon!r})"
    problem = _PROBLEMS[operation]
    certificate = exportable.certificate
    origin = {
        "recipe": run.recipe.name,
        "seed": run.seed,
        "step": run.step,
        "weights_sha256": exportable.weights_sha256,
    }
    windows = {name: (low, high) for name, low, high in exportable.windows}
    sizes = (config.width, config.num_heads, config.width_of_head, config.mlp_width)
    parts: dict[str, str] = {
        "parameters": f"{run.model.num_parameters:,}",
        "verb": _VERBS[operation],
        "problem": problem,
        "answer": str(run.solve(problem)[0].answer),
        "certificate": (
            f"It is certified: it {run.task.claim}, as\n"
            f"`abacist prove` showed with {certificate.neighbourhoods:,} cases."
            if certificate
            else "It is not certified, so it may err."
        ),
        "example": _EXAMPLES[operation],
        "origin": _dictionary(origin),
        "vocabulary": json.dumps(run.format.vocabulary.tokens),
        "sizes": ", ".join(map(str, sizes)),
        "windows": f"{{{', '.join(f'{_literal(name)}: {pair}' for name, pair in windows.items())}}}",
        "operator": operation,
        "norm": norm,
        **_optional_norms(config, norm),
        **_mlps(config),
        **{
            name: str(name in config.biases)
            for name in ("queries-keys-values", "attention-output", "head")
        },
        "tie": _TIE if config.tied_head else "",
        "tied-weights": _TIED_WEIGHTS if config.tied_head else "",
        "read": _READ_SUM if operation == "+" else _READ_DIFFERENCE,
        "width": "" if operation == "+" else ", max(len(a), len(b))",
        "board": board,
        "weights": base64.b64encode(exportable.weights).decode(),
    }
    return fill(_TEMPLATE.read_text(encoding="utf-8"), parts)


def _architecture(config: ModelConfig) -> str:
    """Return the settings of a model on one line."""
    norm = "LayerNorm" if config.norm == "layer" else "RMSNorm"
    parts = [
        "1-layer causal decoder",
        f"d={config.width}",
        f"{config.num_heads} head{'s' * (config.num_heads > 1)} of width {config.width_of_head}",
        f"ff={config.mlp_width} ({config.activation})",
        norm if config.final_norm else f"{norm} except before the head",
        *(["normalised embedding"] if config.embedding_norm else []),
        *(["one more MLP before the head"] if config.final_mlp else []),
        f"{'tied' if config.tied_head else 'untied'} head",
    ]
    return ", ".join(parts)


def _optional_norms(config: ModelConfig, norm: str) -> dict[str, str]:
    """Return the parts of the template for the normalisations that a model need not have."""
    embedded, resid = "self.embedding(ids_BT)", "resid_BQD"
    if config.embedding_norm:
        embedded = f"self.embedding_norm({embedded})"
    if config.final_norm:
        resid = f"self.final_norm({resid})"
    return {
        "embedding-norm": f"        self.embedding_norm = {norm}\n" * config.embedding_norm,
        "embedded": embedded,
        "final-norm": f"        self.final_norm = {norm}\n" * config.final_norm,
        "final": resid,
    }


def _mlps(config: ModelConfig) -> dict[str, str]:
    """Return the parts of the template for the layer's MLP and, where there is one, the final MLP."""
    final = "        resid_BQD = self.final_down(hidden_BQF)\n"
    return {
        "maps-of-mlp": _maps_of_mlp(config, ""),
        "maps-of-final-mlp": _maps_of_mlp(config, "final_") * config.final_mlp,
        "hidden": _hidden(config, "", "normed_BQD"),
        "final-mlp": (_hidden(config, "final_", "resid_BQD") + final) * config.final_mlp,
    }


def _maps_of_mlp(config: ModelConfig, prefix: str) -> str:
    """Return the lines that make the linear maps of an MLP."""
    into = f"nn.Linear(WIDTH, MLP_WIDTH, bias={'mlp-hidden' in config.biases})"
    out = f"nn.Linear(MLP_WIDTH, WIDTH, bias={'mlp-output' in config.biases})"
    maps = {"up": into, **({"gate": into} if config.is_gated else {}), "down": out}
    return "".join(f"        self.{prefix}{name} = {linear}\n" for name, linear in maps.items())


def _hidden(config: ModelConfig, prefix: str, x: str) -> str:
    """Return the line that calculates the hidden activations of an MLP from its input `x`."""
    hidden = _ACTIVATIONS[config.activation].format(f"self.{prefix}up({x})")
    gate = f" * self.{prefix}gate({x})" * config.is_gated
    return f"        hidden_BQF = nn.functional.{hidden}{gate}\n"


def _dictionary(values: dict[str, object]) -> str:
    lines = [f"    {_literal(name)}: {_literal(value)},\n" for name, value in values.items()]
    return f"{{\n{''.join(lines)}}}"


def _list(values: list[str]) -> str:
    lines = [f"            {_literal(value)},\n" for value in values]
    return f"[\n{''.join(lines)}        ]"


def _literal(value: object) -> str:
    """Return a value as Python source; a name from a run's directory stays a string."""
    return json.dumps(value) if isinstance(value, str) else repr(value)
