"""Checkpoints that are damaged, unreadable or of another shape: refused in one line, never deleted."""

import errno
import hashlib
import json
import shutil
from pathlib import Path

import pytest
import safetensors.torch
import torch

import abacist
from abacist.errors import CheckpointError, RunError
from abacist.models.transformer import Transformer
from abacist.runs import training
from abacist.runs.run import Run
from abacist.training import checkpoint


def newest_checkpoint(run: Run) -> Path:
    return checkpoint.all_in(run.directory.checkpoints)[-1]


def rewrite(path: Path, name: str, content: bytes) -> None:
    """Replace a file of a checkpoint, and its checksum with it."""
    (path / name).write_bytes(content)
    manifest = json.loads((path / "manifest.json").read_text())
    manifest[name] = hashlib.sha256(content).hexdigest()
    (path / "manifest.json").write_text(json.dumps(manifest))


def names(run: Run) -> list[str]:
    return sorted(path.name for path in run.directory.checkpoints.iterdir())


@pytest.mark.parametrize("number", [errno.EACCES, errno.EIO, errno.ESTALE, errno.EMFILE])
@pytest.mark.parametrize(
    "name", ["manifest.json", "model.safetensors", "state.safetensors", "state.json"]
)
def test_a_checkpoint_that_cannot_be_read_stays_and_resuming_stops(
    untrained, monkeypatch, number, name
):
    before, read_bytes = names(untrained), Path.read_bytes

    def fail(path: Path) -> bytes:
        if path.name == name:
            raise OSError(number, "the disk says no")
        return read_bytes(path)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", fail)
        with pytest.raises(RunError, match=rf"cannot read .*{name}: the disk says no\.$"):
            training.resume(untrained.path)
    assert names(untrained) == before
    training.resume(untrained.path)


def damage_by_cutting(path: Path) -> None:
    (path / "model.safetensors").write_bytes(b"")


def damage_by_deleting(path: Path) -> None:
    (path / "state.json").unlink()


def damage_by_nesting(path: Path) -> None:
    (path / "manifest.json").write_text("[" * 100_000)


def damage_by_another_list(path: Path) -> None:
    (path / "manifest.json").write_text('{"model.safetensors": 5}')


def damage_by_a_link(path: Path) -> None:
    path.rename(path.parent / "elsewhere")
    path.symlink_to(path.parent / "elsewhere")


def damage_by_a_file(path: Path) -> None:
    shutil.rmtree(path)
    path.write_text("not a directory")


def damage_by_progress_of_a_wrong_type(path: Path) -> None:
    rewrite(path, "state.json", b'{"step": "24", "seconds": 1.0}')


def damage_by_endless_seconds(path: Path) -> None:
    rewrite(path, "state.json", b'{"step": 24, "seconds": Infinity}')


@pytest.mark.parametrize(
    "damage",
    [function for name, function in globals().items() if name.startswith("damage_by_")],
    ids=lambda damage: damage.__name__,
)
def test_a_damaged_checkpoint_is_refused_in_one_line_and_resuming_sets_it_aside(untrained, damage):
    expected = {name: tensor.clone() for name, tensor in untrained.model.state_dict().items()}
    newest = newest_checkpoint(untrained)
    damage(newest)
    with pytest.raises(CheckpointError) as error:
        abacist.load(untrained.path)
    assert "\n" not in str(error.value)
    for number in ("", "-2"):
        with pytest.warns(UserWarning, match=r"It is now damaged-step-000024"):
            resumed = training.resume(untrained.path)
        assert f"damaged-step-000024{number}" in names(untrained)
        assert all(
            torch.equal(expected[name], tensor)
            for name, tensor in resumed.model.state_dict().items()
        )
        damage_by_cutting(newest)


@pytest.mark.parametrize("file", ["model.safetensors", "state.safetensors"])
def test_tensors_must_have_exactly_the_expected_names_shapes_and_types(untrained, file):
    newest = newest_checkpoint(untrained)
    content = (newest / file).read_bytes()
    sound = safetensors.torch.load(content)
    name = next(name for name, tensor in sound.items() if tensor.dim() and len(tensor) > 1)
    for tensors in (
        sound | {"extra": torch.zeros(1)},
        {key: tensor for key, tensor in sound.items() if key != name},
        sound | {name: sound[name][:1].clone()},
        sound | {name: sound[name].double()},
    ):
        rewrite(newest, file, safetensors.torch.save(tensors))
        with pytest.raises(CheckpointError, match=rf"{file} does not fit the model") as error:
            training.resume(untrained.path)
        assert "\n" not in str(error.value)
    rewrite(newest, file, b"\xff" * 40)
    with pytest.raises(CheckpointError, match="is not a safetensors file"):
        training.resume(untrained.path)
    rewrite(newest, file, content)
    training.resume(untrained.path)
    assert names(untrained) == ["step-000020", "step-000024"]


def test_weights_that_are_not_finite_are_refused(untrained):
    newest = newest_checkpoint(untrained)
    tensors = safetensors.torch.load((newest / "model.safetensors").read_bytes())
    tensors["embedding.weight"][0, 0] = torch.nan
    rewrite(newest, "model.safetensors", safetensors.torch.save(tensors))
    with pytest.raises(CheckpointError, match=r"embedding\.weight that are not finite"):
        abacist.load(untrained.path)


@pytest.mark.parametrize(
    "settings", [{}, {"training.optimizer": "muon", "training.ema_decay": 0.9}]
)
def test_an_empty_state_looks_like_the_state_after_a_step(tmp_path, quick_settings, settings):
    run = abacist.train("add", out=tmp_path / "run", settings=quick_settings | settings)
    stored = checkpoint.read(newest_checkpoint(run))
    model = Transformer(run.recipe.model, len(run.format.vocabulary))
    optimizer = checkpoint.Optimizer(model, run.recipe.training)
    stored.load_weights(model)
    stored.load_optimizer(optimizer)
    for name, tensor in optimizer.state().items():
        empty = optimizer.empty_state()[name]
        assert (empty.shape, empty.dtype) == (tensor.shape, tensor.dtype)
