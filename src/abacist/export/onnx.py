"""A run as an ONNX file: ids and coordinates in, logits out, for any number of lines and tokens.

The file computes what the model computes, for every recipe. It does not contain the format: a program
that uses it writes the line and its coordinates, as `examples/onnx/add.py` does. Its metadata hold the
vocabulary, the recipe, the SHA-256 of the weights and what is certified.
"""

import contextlib
import copy
import importlib.util
import json
import logging
import warnings
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from abacist import __version__
from abacist.errors import UserError
from abacist.export.exportable import Exportable
from abacist.models.config import CoordinateName
from abacist.models.coordinates import Coordinates
from abacist.models.transformer import LONGEST_DENSE, Transformer


class _AllPairs(nn.Module):
    """A model as a function of tensors only, with scores of all pairs of tokens."""

    def __init__(self, model: Transformer, coordinates: list[CoordinateName]) -> None:
        super().__init__()
        self.model, self.coordinates = model, coordinates

    def forward(self, ids_BT: Tensor, values: list[Tensor]) -> Tensor:
        """Return the logits, (B, T, V), of ids and the coordinates that `coordinates` names, (B, T) each."""
        of = dict(zip(self.coordinates, values, strict=True))
        coordinates = Coordinates(
            of["index"], of.get("place", of["index"]), of.get("row"), of.get("step")
        )
        # A hook asks for plain equations instead of those that are fastest in torch.
        logits: Tensor = self.model(
            ids_BT, coordinates, path="dense", hook=lambda name, value: value
        )
        return logits


def check_installed() -> None:
    """Raise `UserError` unless the packages that write the file are installed."""
    for package in ("onnx", "onnxscript"):
        if importlib.util.find_spec(package) is None:
            raise UserError(
                f"--to onnx needs {package}, which is not installed. "
                'Type pip install --editable ".[onnx]" in the clone of abacist.'
            )


def model_file(exportable: Exportable) -> bytes:
    """Return the content of the file.

    Its inputs are `ids`, `index` and the other coordinates that the model uses, int64 (B, T) each; its
    output is `logits`, float32 (B, T, V). Raises `UserError` if a package is missing.
    """
    check_installed()
    import onnx_ir as ir

    run = exportable.run
    model = copy.deepcopy(run.model).cpu().float().eval()
    used = (scheme.coordinate for scheme in model.schemes)
    names: list[CoordinateName] = list(dict.fromkeys(("index", *used)))
    # The values of the example do not matter, and its sizes are not those of any weight.
    example = torch.arange(24).expand(2, -1)
    sizes = {0: torch.export.Dim("batch"), 1: torch.export.Dim("length", max=LONGEST_DENSE)}
    with _quiet(), torch.enable_grad():
        traced = torch.export.export(
            _AllPairs(model, names).eval(),
            (torch.zeros_like(example), [example.clone() for _ in names]),
            dynamic_shapes=(sizes, [sizes for _ in names]),
            strict=False,
        )
        program = torch.onnx.export(
            traced,
            dynamo=True,
            verbose=False,
            input_names=["ids", *names],
            output_names=["logits"],
        )
    assert program is not None
    graph = program.model.graph
    for node in graph:
        # They hold paths of this machine, and names of sizes that nobody has chosen.
        node.metadata_props.clear()
        for value in node.outputs:
            value.metadata_props.clear()
            value.shape = None
    for described in (program.model, graph, *graph.inputs, *graph.initializers.values()):
        described.metadata_props.clear()
    for value in graph.inputs:
        value.shape = ir.Shape(("batch", "length"))
    graph.outputs[0].shape = ir.Shape(("batch", "length", len(run.format.vocabulary)))
    program.model.producer_name, program.model.producer_version = "abacist", __version__
    program.model.metadata_props.update(_metadata(exportable))
    content: bytes = program.model_proto.SerializeToString()
    return content


def _metadata(exportable: Exportable) -> dict[str, str]:
    """Return what the file says of itself, as texts by name."""
    run, certificate = exportable.run, exportable.certificate
    return {
        "vocabulary": json.dumps(run.format.vocabulary.tokens),
        "recipe": run.recipe.name,
        "seed": str(run.seed),
        "step": str(run.step),
        "weights_sha256": exportable.weights_sha256,
        "certified": run.task.claim if certificate else "",
    }


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Silence the exporter, which reports on packages and progress that concern nobody here."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
