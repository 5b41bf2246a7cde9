"""The folder that transformers loads: logits, generated tokens and weights are those of the run."""

import copy
import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from optional_modules import needed

import abacist
from abacist import files
from abacist.cli import main
from abacist.errors import ConfigurationError
from abacist.export import exportable, model_card
from abacist.export import transformers as export
from abacist.models.teacher_forcing import coordinates_of
from abacist.recipes import find
from abacist.runs.run import Run

needed("transformers")

ONE_LAYER = {"model.num_layers": 1}
VARIANTS = {
    "subtract": {},
    "spaced": {"model.norm": "rms", "model.query_key_norm": True, "model.length_scaling": True},
    "three-digit": {"model.positions": "t5"},
    "three-digit-grokking": {
        **ONE_LAYER,
        "model.recurrences": 2,
        "model.injection": "sublayers",
        "model.positions.0.added_to": "queries-keys",
    },
    "spaced-gpt2": ONE_LAYER,
    "looped-abacus-small": {"model.recurrences": 2},
    "add-tiny": {
        "model.positions": "sinusoidal",
        "model.recurrences": 2,
        "model.injection": "linear",
        "model.activation": "swiglu",
        "model.initial_state": "noise",
        "training.repair_rounds": 0,
    },
    "add-tiny-relu": {
        "model.positions": "rope",
        "model.head_width": 4,
        "training.repair_rounds": 0,
    },
    "add": {"model.positions": "abacus-fire", "format": "usual"},
}
"""Settings that show every part of the modelling code, by recipe."""


@pytest.fixture
def load(tmp_path, monkeypatch):
    """Writes the folder of a run, and loads its tokenizer and model."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    monkeypatch.setenv("HF_MODULES_CACHE", str(tmp_path / "modules"))
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "m"))

    def load_it(run: Run):
        folder = tmp_path / "folder"
        shutil.rmtree(folder, ignore_errors=True)
        files.write_directory(folder, export.folder(exportable.of_run(run, "transformers")))
        tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=True)
        return tokenizer, AutoModelForCausalLM.from_pretrained(folder, trust_remote_code=True)

    yield load_it
    for name in [name for name in sys.modules if name.startswith("transformers_modules")]:
        del sys.modules[name]


def prompt_text(run: Run, problem: str) -> str:
    """The prompt of a problem as it is typed, without the start token."""
    ids = run.format.prompt(run.task.parse([problem])).ids[0].tolist()
    return run.format.vocabulary.decode(ids).removeprefix("<start>")


@pytest.mark.parametrize("recipe", VARIANTS)
def test_logits_and_generated_tokens_are_those_of_the_run(recipe, quick_settings, tmp_path, load):
    settings = quick_settings | {"training.num_steps": 3, "training.warmup_steps": 1}
    run = abacist.train(recipe, out=tmp_path / "run", settings=settings | VARIANTS[recipe])
    tokenizer, model = load(run)
    operator = run.task.operations[0]
    problem = f"120{operator}34"
    whole = run.look(problem).lines.tokens
    with torch.no_grad():
        expected = copy.deepcopy(run.model).double()(whole.ids, coordinates_of(whole))
        logits = copy.deepcopy(model).double()(whole.ids.long()).logits
    assert float((logits - expected).abs().max()) < 1e-9

    problems = [problem, f"7{operator}5", f"99{operator}1"]
    prompts = [prompt_text(run, problem) for problem in problems]
    # One after the other, since the longest problem of a batch decides how much is written.
    solutions = [run.solve(problem)[0] for problem in problems]
    for prompt, solution in zip(prompts, solutions, strict=True):
        line = model.generate(**tokenizer(prompt, return_tensors="pt"))[0]
        text = "".join(run.format.vocabulary.tokens[token] for token in line)
        start = "<start>" if "<start>" in run.format.vocabulary.tokens else ""
        written = text.removeprefix(start + prompt)
        if run.format.end_id is not None and "<end>" in solution.text:
            assert written == solution.text
        else:  # The model has hardly learned anything, so its lines need not end.
            count = min(len(written), len(solution.text))
            assert written[:count] == solution.text[:count]


def test_the_certified_adder_with_84_parameters_is_loaded_and_adds(smallest, load):
    tokenizer, model = load(smallest)
    assert model.num_parameters() == 84
    lines = smallest.look("999+1").lines.tokens
    with torch.no_grad():
        expected = copy.deepcopy(smallest.model).double()(lines.ids, coordinates_of(lines))
        logits = copy.deepcopy(model).double()(lines.ids.long()).logits
    assert float((logits - expected).abs().max()) < 1e-9
    line = model.generate(**tokenizer("999+1=", return_tensors="pt"))[0]
    assert tokenizer.decode(line, skip_special_tokens=True) == "999+1=0001"


def test_a_padded_batch_writes_what_single_lines_do(example, load):
    tokenizer, model = load(example)
    prompts = ["1+9=", "999999999+1=", "5+55555="]
    batch = tokenizer(prompts, return_tensors="pt", padding=True)
    assert batch["attention_mask"].sum(dim=1).tolist() == [5, 13, 9]
    written = tokenizer.batch_decode(model.generate(**batch), skip_special_tokens=True)
    assert written == ["1+9=01", "999999999+1=0000000001", "5+55555=06555"]
    right = tokenizer(prompts, return_tensors="pt", padding=True, padding_side="right")
    with torch.no_grad():
        first = model(**right).logits[0, :5]
        alone = model(**tokenizer(prompts[0], return_tensors="pt")).logits[0]
    assert torch.allclose(first, alone, atol=1e-4)


def test_long_sums_are_generated_to_their_end(example, load):
    tokenizer, model = load(example)
    line = model.generate(**tokenizer(f"{'9' * 60}+1=", return_tensors="pt"))[0]
    assert tokenizer.decode(line) == f"<start>{'9' * 60}+1={'0' * 60}1<end>"
    short = model.generate(**tokenizer("99+1=", return_tensors="pt"), max_new_tokens=2)[0]
    assert tokenizer.decode(short, skip_special_tokens=True) == "99+1=00"


def test_the_tokenizer_takes_a_line_as_it_is_written(example, load):
    tokenizer, model = load(example)
    assert tokenizer("21+43=")["input_ids"] == [13, 2, 1, 10, 4, 3, 11]
    assert tokenizer.decode([13, 2, 1, 10, 4, 3, 11, 6, 4, 12]) == "<start>21+43=64<end>"
    assert set(tokenizer.all_special_tokens) == {"<start>", "<end>"}
    assert tokenizer.eos_token_id == model.generation_config.eos_token_id == 12
    assert tokenizer.bos_token_id == 13


def test_the_card_says_which_weights_abacist_has_trained(example: Run, smallest: Run) -> None:
    """The weights of the smallest adder come from a study, and their run has made no step."""
    cards = [model_card.card(exportable.of_run(run, "transformers")) for run in (example, smallest)]
    assert "338 parameters that was trained on arithmetic with abacist" in cards[0]
    assert "84 parameters for arithmetic, made with abacist" in cards[1]


def test_weights_and_certificate_are_those_of_the_run(example, load, tmp_path):
    _, model = load(example)
    digest = hashlib.sha256((tmp_path / "folder" / "model.safetensors").read_bytes()).hexdigest()
    certificate = exportable.of_run(example, "transformers").certificate
    assert digest == certificate.weights_sha256 == model.config.origin["weights_sha256"]
    assert model.config.origin["certified"] == "adds all pairs of non-negative integers"
    card = (tmp_path / "folder" / "README.md").read_text()
    assert "**Certified:** it adds all pairs of non-negative integers." in card
    assert digest in card
    assert f"{certificate.neighbourhoods:,} neighbourhoods" in card
    assert "@software{abacist," in card


def test_a_tied_head_stays_tied_and_a_saved_model_loads_again(quick_settings, tmp_path, load):
    settings = quick_settings | {"model.tied_head": True, "training.num_steps": 3}
    settings |= {"training.warmup_steps": 1}
    run = abacist.train("add", out=tmp_path / "run", settings=settings)
    _, model = load(run)
    assert model.head.weight is model.embedding.weight
    assert model.num_parameters() == run.model.num_parameters
    model.save_pretrained(tmp_path / "saved")
    again = type(model).from_pretrained(tmp_path / "saved")
    ids = torch.tensor([[13, 2, 1, 10, 4, 3, 11]])
    with torch.no_grad():
        assert torch.equal(again(ids).logits, model(ids).logits)
        loss = model(ids, labels=ids).loss
    assert torch.isfinite(loss)


def test_the_folder_works_without_this_package_and_without_questions(example, tmp_path):
    folder = tmp_path / "folder"
    assert main(["export", str(example.path), "--to", "transformers", "--out", str(folder)]) == 0
    script = (
        "import sys; sys.modules['abacist'] = None\n"
        "from transformers import AutoModelForCausalLM, AutoTokenizer\n"
        "tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])\n"
        "model = AutoModelForCausalLM.from_pretrained(sys.argv[1], trust_remote_code=True)\n"
        "line = model.generate(**tokenizer('59+7=', return_tensors='pt'))[0]\n"
        "print(tokenizer.decode(line, skip_special_tokens=True))\n"
    )
    answered = subprocess.run(
        [sys.executable, "-c", script, str(folder)],
        capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL,
        env={"HF_MODULES_CACHE": str(tmp_path / "m"), "HF_HUB_OFFLINE": "1", "PATH": ""},
    )  # fmt: skip
    assert answered.stdout.splitlines()[-1].endswith("59+7=201")


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        ("multiply", "its format must be plain, got long-multiplication. It can express decoders"),
        ("parallel", "its format must be plain, got parallel"),
    ],
)
def test_recipes_that_are_not_plain_are_refused_with_what_can_express_them(recipe, message):
    with pytest.raises(ConfigurationError, match=message) as error:
        exportable.check_expressible(find(recipe), "transformers")
    assert str(error.value).endswith("Type --to onnx, which can express every recipe.")


def test_the_code_in_the_folder_is_formatted_and_free_of_errors(tmp_path):
    for source in sorted((Path(export.__file__).parent / "transformers_code").glob("*.py.txt")):
        file = shutil.copy(source, tmp_path / source.stem)
        for command in (["format", "--check"], ["check", "--select", "E,F,B,I,UP"]):
            arguments = [sys.executable, "-m", "ruff", *command, "--line-length", "120", str(file)]
            checked = subprocess.run(arguments, capture_output=True, text=True)
            assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_configuration_is_json_without_paths(example):
    contents = export.folder(exportable.of_run(example, "transformers"))
    configuration = json.loads(contents["config.json"])
    assert configuration["notation"]["operand_order"] == "reversed"
    assert str(example.path.parent).encode() not in b"".join(contents.values())
