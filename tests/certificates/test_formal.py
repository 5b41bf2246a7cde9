"""The weights that the Coq development gets: exact, complete, and refused where it would not fit."""

import re
from fractions import Fraction
from pathlib import Path

import pytest
import torch

import abacist
from abacist.certificates.formal import _TENSORS, weights_source
from abacist.cli import main
from abacist.configuration import override
from abacist.errors import ConfigurationError
from abacist.models.teacher_forcing import teacher_forced
from abacist.models.transformer import Transformer
from abacist.recipes import find
from abacist.runs.run import build_model, build_problems
from abacist.scoring.trained_model import TrainedModel

DEVELOPMENT = Path(__file__).parents[2] / "formal"


def untrained_model(**settings) -> TrainedModel:
    recipe = override(find("add-tiny-relu"), settings)
    torch.manual_seed(0)
    return TrainedModel(build_model(recipe).eval(), *build_problems(recipe))


def weights_of(source: str) -> dict[str, list[Fraction]]:
    """The numbers of every field of the record of weights, one after the other."""
    record = source.partition("{|")[2].partition("|}")[0]
    fields = dict(re.findall(r"(\w+) := ([^:]*?)(?=;\n  \w|\s*$)", record))
    return {
        name: [Fraction(int(m), 2 ** int(e)) for m, e in re.findall(r"\((-?\d+), (\d+)\)", text)]
        for name, text in fields.items()
    }


def samples_of(source: str) -> list[tuple[str, list[int]]]:
    """Lines as Coq writes them, with their logits in billionths."""
    samples = source.partition("Definition samples")[2]
    return [
        (line, [int(number) for number in logits.split(";")])
        for line, logits in re.findall(r"\(\[(.*?)\],\s+\[(.*?)\]\)", samples)
    ]


@pytest.mark.parametrize("settings", [{}, {"model.mlp_width": 8, "model.tied_head": True}])
def test_every_weight_is_written_exactly(settings):
    trained_model = untrained_model(**settings)
    written = weights_of(weights_source(trained_model))
    for field, name in _TENSORS.items():
        numbers = trained_model.model.state_dict()[name].flatten().tolist()
        assert written[field] == [Fraction(number) for number in numbers], field
    assert set(dict(trained_model.model.named_parameters())) <= set(_TENSORS.values())


def test_the_samples_are_the_logits_of_the_model():
    trained_model = untrained_model()
    samples = dict(samples_of(weights_source(trained_model)))
    trained_model.model.double()
    problems = trained_model.task.parse(["58+967"])
    line = trained_model.format.write(problems, trained_model.task.answer(problems))
    logits = teacher_forced(trained_model.model, line).logits[0, 0]
    billionths = samples["Start; Digit 8; Digit 5; Plus; Digit 7; Digit 6; Digit 9; Equals"]
    assert torch.allclose(logits * 1e9, torch.tensor(billionths).double(), rtol=0, atol=2)


def with_committed_weights(model: Transformer) -> None:
    """Load the weights of the development into a model."""
    for field, numbers in weights_of((DEVELOPMENT / "Weights.v").read_text()).items():
        if numbers:
            tensor = model.state_dict()[_TENSORS[field]]
            tensor.copy_(torch.tensor([float(number) for number in numbers]).view(tensor.shape))


def test_the_committed_weights_are_those_of_the_recipe_as_this_package_runs_it():
    committed = (DEVELOPMENT / "Weights.v").read_text()
    trained_model = untrained_model()
    with_committed_weights(trained_model.model)
    written = weights_source(trained_model)
    assert written.partition("(** Lines")[0] == committed.partition("(** Lines")[0]
    for (line, logits), (committed_line, committed_logits) in zip(
        samples_of(written), samples_of(committed), strict=True
    ):
        assert line == committed_line
        # Other processors add in another order.
        assert logits == pytest.approx(committed_logits, abs=100)


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("model.num_layers", 2),
        ("model.recurrences", 2),
        ("model.activation", "gelu"),
        ("model.norm", "layer"),
        ("model.norm_order", "post"),
        ("model.embedding_norm", True),
        ("model.final_norm", False),
        ("model.final_mlp", True),
        ("model.query_key_norm", True),
        ("model.length_scaling", True),
        ("model.biases", "all"),
        ("model.positions", "rope"),
        ("model.positions.0.window", "0,2"),
    ],
)
def test_a_model_that_the_development_does_not_define_is_refused(setting, value):
    with pytest.raises(ConfigurationError) as refusal:
        weights_source(untrained_model(**{setting: value}))
    name = ".".join(setting.split(".")[:2])
    assert f"covers {name} " in str(refusal.value)
    assert "add-tiny-relu" in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    "settings",
    [
        {"task": "subtract", "format": "complement"},
        {"task.max_operands": 3},
        {"format": "usual", "model.positions": "place-relative"},
    ],
)
def test_a_task_or_format_that_the_development_does_not_define_is_refused(settings):
    with pytest.raises(ConfigurationError, match="sums of two numbers in the format reversed only"):
        weights_source(untrained_model(**settings))


def test_weights_that_are_no_numbers_are_refused():
    trained_model = untrained_model()
    with torch.no_grad():
        trained_model.model.head.weight[0, 0] = torch.nan
    with pytest.raises(ConfigurationError, match=r"head\.weight is not finite"):
        weights_source(trained_model)


def test_prove_refuses_a_run_that_the_development_does_not_cover(untrained, tmp_path, capsys):
    assert main(["prove", str(untrained.path), "--formal", str(tmp_path / "formal")]) == 2
    error = capsys.readouterr().err
    assert error.startswith(
        "abacist: the Coq development covers model.activation relu only, got gelu"
    )
    assert error.count("\n") == 1
    assert not (tmp_path / "formal").exists()


def test_prove_writes_the_weights_of_a_certified_run_and_of_no_other(
    tmp_path, quick_settings, capsys, monkeypatch
):
    settings = {k: v for k, v in quick_settings.items() if not k.startswith("model.")}
    # To list what is wrong takes seconds for a model that has learnt nothing.
    settings["training.repair_rounds"] = 0
    run = abacist.train("add-tiny-relu", out=tmp_path / "run", settings=settings, threads=1)
    command = ["prove", str(run.path), "--formal", str(tmp_path / "formal")]
    assert main(command) == 1
    assert not (tmp_path / "formal").exists()

    with_committed_weights(run.model)
    monkeypatch.setattr("abacist.runs.run.load", lambda *_, **options: run)
    capsys.readouterr()
    assert main(command) == 0
    assert f"{tmp_path / 'formal' / 'Weights.v'}" in capsys.readouterr().out
    written = (tmp_path / "formal" / "Weights.v").read_text()
    assert weights_of(written) == weights_of((DEVELOPMENT / "Weights.v").read_text())
