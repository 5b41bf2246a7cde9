"""`abacist push` and `hf://USER/NAME`, up to the network: what is uploaded, downloaded and refused."""

import json
import shutil
from fnmatch import fnmatch
from pathlib import Path

import pytest
import torch
from optional_modules import needed

import abacist
from abacist.cli import main
from abacist.errors import RunError, UserError
from abacist.export import hub as export
from abacist.export import transformers
from abacist.runs import hub

needed("huggingface_hub")
import huggingface_hub  # noqa: E402

EXAMPLE = str(Path(__file__).parents[2] / "examples" / "add-tiny")


@pytest.fixture
def remote(tmp_path, monkeypatch) -> Path:
    """A directory in place of the Hub: USER/NAME is a folder of it."""
    root = tmp_path / "hub"

    class Api:
        def create_repo(self, name, private, exist_ok):
            (root / name).mkdir(parents=True, exist_ok=exist_ok)
            (root / name / ".private").write_text(str(private))
            return f"https://huggingface.co/{name}"

        def upload_folder(self, repo_id, folder_path, commit_message, delete_patterns):
            assert commit_message.startswith("Upload the run ")
            for file in [file for file in (root / repo_id).rglob("*") if file.is_file()]:
                path = file.relative_to(root / repo_id).as_posix()
                if any(fnmatch(path, pattern) for pattern in delete_patterns):
                    file.unlink()
            shutil.copytree(folder_path, root / repo_id, dirs_exist_ok=True)

    def download(name, revision, allow_patterns):
        assert allow_patterns == ["run/*.json", "run/*.jsonl", "run/*.safetensors"]
        assert revision in (None, "main")
        copy = tmp_path / "cache" / name
        shutil.rmtree(copy, ignore_errors=True)
        for file in (root / name).rglob("*"):
            path = file.relative_to(root / name)
            if any(fnmatch(path.as_posix(), pattern) for pattern in allow_patterns):
                (copy / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(file, copy / path)
        return str(copy)

    monkeypatch.setattr(huggingface_hub, "HfApi", Api)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    return root


def test_a_run_comes_back_from_the_hub_with_its_certificate(remote, example, capsys):
    assert main(["push", EXAMPLE, "maria/add-tiny", "--private"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("https://huggingface.co/maria/add-tiny holds ")
    assert "It is certified." in printed
    assert "hf://maria/add-tiny 12+34" in printed
    assert (remote / "maria/add-tiny/.private").read_text() == "True"
    run = abacist.load("hf://maria/add-tiny@main")
    assert run.identity == example.identity
    assert torch.equal(run.model.head.weight, example.model.head.weight)
    assert json.loads(run.directory.certificate.read_bytes())["certified"]


def test_the_repository_is_what_transformers_loads_and_the_run(example):
    repository = export.repository(example)
    assert repository.obstacle == ""
    assert set(repository.contents) == {
        "README.md",
        "config.json",
        "configuration_abacist.py",
        "generation_config.json",
        "model.safetensors",
        "modeling_abacist.py",
        "run/certificate.json",
        "run/checkpoints/step-012000/manifest.json",
        "run/checkpoints/step-012000/model.safetensors",
        "run/checkpoints/step-012000/state.json",
        "run/run.json",
        "tokenizer.json",
        "tokenizer_config.json",
    }
    names = {name for name in repository.contents if not name.startswith("run/")}
    assert names == {"README.md", *transformers.FILES}
    assert b"machine" not in repository.contents["run/run.json"]
    assert b'abacist.load("hf://USER/NAME")' in repository.contents["README.md"]


def test_a_recipe_that_transformers_cannot_express_travels_as_a_run(
    remote, quick_settings, tmp_path, capsys
):
    settings = quick_settings | {"training.num_steps": 3, "training.warmup_steps": 1}
    abacist.train("multiply", out=tmp_path / "run", settings=settings)
    # Nothing is left of a model that transformers could load.
    assert main(["push", EXAMPLE, "maria/multiply"]) == 0
    capsys.readouterr()
    assert main(["push", str(tmp_path / "run"), "maria/multiply"]) == 0
    printed = capsys.readouterr().out
    assert (
        "transformers cannot load it: its format must be plain, got long-multiplication." in printed
    )
    assert "Not certified: there is no certificate." in printed
    pushed = {path.name for path in (remote / "maria/multiply").iterdir()}
    assert pushed == {".private", "README.md", "run"}
    assert not list((remote / "maria/multiply/run").rglob("step-012000/*"))
    assert "**Not certified:**" in (remote / "maria/multiply/README.md").read_text()


def test_a_model_card_keeps_operators_and_escapes_what_means_something_in_markdown(
    tmp_path, quick_settings
):
    settings = quick_settings | {"task.operations": "+,*", "task.weights": "1,1"}
    settings |= {"format": "usual", "model.positions": "sinusoidal"}
    run = abacist.train("add", out=tmp_path / "run", settings=settings)
    run.score()
    record = json.loads(run.directory.scorecard.read_text())
    record["sections"]["lengths"]["rows"][0]["name"] = "3 * 4 | <b>[x](y)"
    run.directory.scorecard.write_text(json.dumps(record))
    card = export.repository(run).contents["README.md"].decode()
    assert "--task.operations '+,*'" in card
    assert r"| 3 \* 4 \| \<b\>\[x\](y) |" in card


def test_commands_take_a_run_on_the_hub(remote, capsys):
    assert main(["push", EXAMPLE, "user1/add"]) == 0
    assert main(["solve", "hf://user1/add", "95+7"]) == 0
    printed = capsys.readouterr()
    assert "95+7=102" in printed.out.replace(" ", "")
    assert printed.err.startswith("hf://user1/add is ")


def test_nothing_but_json_and_safetensors_is_read_and_no_extension_is_executed(remote, tmp_path):
    main(["push", EXAMPLE, "eve/run"])
    folder = remote / "eve/run"
    bomb = f"open({str(tmp_path / 'executed')!r}, 'w')"
    (folder / "modeling_abacist.py").write_text(bomb)
    (folder / "run" / "tasks.py").write_text(bomb)
    (folder / "run" / "weights.bin").write_bytes(b"\x80\x04")
    assert abacist.load("hf://eve/run").solve("1+1")[0].answer == "2"
    record = json.loads((folder / "run" / "run.json").read_text())
    record["extensions"] = [{"name": "tasks", "source": "tasks.py", "sha256": "0" * 64}]
    (folder / "run" / "run.json").write_text(json.dumps(record))
    with pytest.raises(RunError, match="needs an extension that is not loaded"):
        abacist.load("hf://eve/run")
    assert not (tmp_path / "executed").exists()
    assert not list((tmp_path / "cache").rglob("*.py"))


def test_damaged_weights_from_the_hub_are_refused(remote):
    main(["push", EXAMPLE, "eve/run"])
    weights = remote / "eve/run/run/checkpoints/step-012000/model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\0")
    with pytest.raises(RunError, match=r"model\.safetensors"):
        abacist.load("hf://eve/run")


def test_a_repository_without_a_run_is_refused(remote):
    (remote / "maria/other").mkdir(parents=True)
    with pytest.raises(RunError, match="hf://maria/other holds no run of abacist"):
        abacist.load("hf://maria/other")


def test_a_stale_certificate_is_not_pushed_as_certified(remote, tmp_path, capsys):
    path = shutil.copytree(EXAMPLE, tmp_path / "run")
    record = json.loads((path / "certificate.json").read_text())
    (path / "certificate.json").write_text(json.dumps(record | {"weights_sha256": "0" * 64}))
    assert main(["push", str(path), "maria/stale"]) == 0
    assert "It is certified" not in capsys.readouterr().out
    card = (remote / "maria/stale/README.md").read_text()
    assert "**Not certified:**" in card
    assert "**Certified:**" not in card
    configuration = json.loads((remote / "maria/stale/config.json").read_text())
    assert configuration["origin"]["certified"] == ""


@pytest.mark.parametrize("name", ["add", "a/b/c", "-x/y", "maria/", "http://x/y", "a b/c"])
def test_a_wrong_name_is_one_line(name, capsys):
    assert main(["push", EXAMPLE, "--", name]) == 2
    text = capsys.readouterr().err
    assert text.count("\n") == 1
    assert "a repository on the Hub is named USER/NAME" in text
    with pytest.raises(UserError, match="is named USER/NAME"):
        abacist.load(f"hf://{name}")


@pytest.mark.parametrize("arguments", [["push", EXAMPLE, "maria/add"], ["solve", "hf://maria/add", "1+1"]])  # fmt: skip
def test_without_a_network_commands_fail_with_one_line(arguments, capsys, monkeypatch, tmp_path):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    assert main(arguments) == 2
    text = capsys.readouterr().err
    assert text.count("\n") == 1
    assert "Check the connection to the network." in text
    assert "maria/add" in text


def test_a_missing_package_is_named_with_what_to_type(monkeypatch, capsys):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for arguments in (["push", EXAMPLE, "maria/add"], ["solve", "hf://maria/add", "1+1"]):
        assert main(arguments) == 2
        assert capsys.readouterr().err == (
            "abacist: the Hub needs huggingface_hub, which is not installed. "
            'Type pip install --editable ".[hub]" in the clone of abacist.\n'
        )


def test_a_refused_login_says_what_to_type():
    class LocalTokenNotFoundError(OSError):
        """Stands for the one of huggingface_hub."""

    message = r"cannot push to a/b: no token\. Type hf auth login"
    with pytest.raises(UserError, match=message), hub.one_line_errors("cannot push to a/b"):
        raise LocalTokenNotFoundError("no\ntoken.")
