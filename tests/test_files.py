import json
from pathlib import Path

import pytest

from abacist import files
from abacist.errors import RunError


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def fail_to_reach_the_disk(_: int) -> None:
    raise OSError(28, "No space left on device")


def test_written_bytes_are_all_that_is_left(tmp_path: Path) -> None:
    files.write_bytes(tmp_path / "a.bin", b"\x00\xff")
    assert (tmp_path / "a.bin").read_bytes() == b"\x00\xff"
    assert names(tmp_path) == ["a.bin"]


def test_writing_replaces_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    files.write_bytes(path, b"a longer content")
    files.write_bytes(path, b"new")
    assert path.read_bytes() == b"new"


def test_a_write_that_fails_leaves_the_old_content_and_no_leftover(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.bin"
    files.write_bytes(path, b"old")
    monkeypatch.setattr("os.fsync", fail_to_reach_the_disk)
    with pytest.raises(RunError, match=r"cannot write .*a\.bin: No space left on device"):
        files.write_bytes(path, b"new")
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["a.bin"]


def test_a_new_file_replaces_the_old_one_once_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    path.write_bytes(b"old")
    with files.new_file(path) as file:
        file.write(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    with pytest.raises(TypeError), files.new_file(path) as file:
        file.write("text")  # type: ignore[arg-type]
    assert path.read_bytes() == b"new"
    assert names(tmp_path) == ["a.bin"]


def test_json_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    data = {"steps": 10, "values": [1.5, None, "−"]}
    files.write_json(tmp_path / "a.json", data)
    assert json.loads((tmp_path / "a.json").read_text()) == data


def test_a_directory_appears_with_all_its_files(tmp_path: Path) -> None:
    files.write_directory(tmp_path / "step-1", {"weights": b"123", "state": b""})
    assert names(tmp_path) == ["step-1"]
    assert names(tmp_path / "step-1") == ["state", "weights"]
    assert (tmp_path / "step-1" / "weights").read_bytes() == b"123"


@pytest.mark.parametrize("existed", [False, True])
def test_a_directory_that_cannot_be_written_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, existed: bool
) -> None:
    path = tmp_path / "step-1"
    if existed:
        files.write_directory(path, {"weights": b"old"})
    monkeypatch.setattr("os.fsync", fail_to_reach_the_disk)
    with pytest.raises(RunError, match="No space left on device"):
        files.write_directory(path, {"weights": b"new"})
    assert names(tmp_path) == (["step-1"] if existed else [])
    if existed:
        assert (path / "weights").read_bytes() == b"old"


def test_an_old_directory_comes_back_if_the_new_one_cannot_take_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, replace = tmp_path / "step-1", Path.replace
    files.write_directory(path, {"weights": b"old"})

    def fail_for_the_new_one(source: Path, target: Path) -> Path:
        if source.suffix == ".tmp" and target == path:
            raise OSError("Input/output error")
        return replace(source, target)

    monkeypatch.setattr(Path, "replace", fail_for_the_new_one)
    with pytest.raises(RunError, match="Input/output error"):
        files.write_directory(path, {"weights": b"new"})
    assert (path / "weights").read_bytes() == b"old"
    assert names(tmp_path) == ["step-1"]


def test_a_new_directory_replaces_the_old_one_whole(tmp_path: Path) -> None:
    path = tmp_path / "step-1"
    for name in ("old", "new"):
        files.write_directory(path, {name: b""})
    assert names(path) == ["new"]


def test_leftovers_of_killed_writers_are_removed_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / ".a.bin.123.tmp").write_bytes(b"")
    (tmp_path / ".step-1.123.tmp").mkdir()
    (tmp_path / ".step-1.123.tmp" / "weights").write_bytes(b"")
    (tmp_path / "kept.tmp").write_bytes(b"")
    (tmp_path / ".hidden").write_bytes(b"")
    files.remove_leftovers(tmp_path)
    assert names(tmp_path) == [".hidden", "kept.tmp"]


class Killed(BaseException):
    """Stands for a kill, after which nothing of the process runs."""


def test_a_directory_whose_writer_is_killed_between_two_renamings_gets_its_name_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, replace = tmp_path / "step-1", Path.replace
    files.write_directory(path, {"weights": b"old"})

    def kill_before_the_new_one(source: Path, target: Path) -> Path:
        if source.suffix == ".tmp" and target == path:
            raise Killed
        return replace(source, target)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", kill_before_the_new_one)
        patched.setattr(files, "_remove", lambda path: None)
        with pytest.raises(Killed):
            files.write_directory(path, {"weights": b"new"})
    assert [Path(name).suffix for name in names(tmp_path)] == [".old", ".tmp"]
    files.remove_leftovers(tmp_path)
    assert names(tmp_path) == ["step-1"]
    assert (path / "weights").read_bytes() == b"old"


def test_a_directory_that_was_replaced_is_removed_with_the_leftovers(tmp_path: Path) -> None:
    files.write_directory(tmp_path / "step-1", {"weights": b"new"})
    files.write_directory(tmp_path / ".step-1.123.old", {"weights": b"old"})
    (tmp_path / ".notes.old").write_bytes(b"")
    files.remove_leftovers(tmp_path)
    assert names(tmp_path) == [".notes.old", "step-1"]
    assert (tmp_path / "step-1" / "weights").read_bytes() == b"new"


def test_a_directory_is_made_with_its_parents_and_may_exist(tmp_path: Path) -> None:
    for _ in range(2):
        files.make_directory(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").is_dir()


# A file where a directory is needed stops even root, whom permissions do not stop.
def test_a_path_without_a_name_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        RunError, match=r"^cannot write \.: it has no name\. Type the name of a new one"
    ):
        files.write_bytes(Path(), b"")
    with pytest.raises(
        RunError, match=r"^cannot write \.: it has no name\. Type the name of a new one"
    ):
        files.write_directory(Path(), {})


def test_bytes_under_a_path_that_is_a_file_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(RunError, match=r"cannot write .*a\.bin: Not a directory"):
        files.write_bytes(tmp_path / "file" / "a.bin", b"")


def test_bytes_in_a_directory_that_is_missing_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"cannot write .*a\.bin: No such file or directory"):
        files.write_bytes(tmp_path / "missing" / "a.bin", b"")


def test_a_directory_is_not_replaced_by_a_file(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(RunError, match="Is a directory"):
        files.write_bytes(tmp_path / "a", b"")
    assert names(tmp_path) == ["a"]


def test_a_file_that_cannot_be_written_is_recognised_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    for name, complaint in (
        (".", "Is a directory"),
        ("missing/a.txt", "No such file or directory"),
        ("file/a.txt", "Not a directory"),
    ):
        with pytest.raises(RunError, match=f"cannot write .*: {complaint}"):
            files.check_writable(tmp_path / name)
    files.check_writable(tmp_path / "new.txt")
    files.check_writable(tmp_path / "file")
    assert names(tmp_path) == ["file"]


def test_a_directory_under_a_path_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(RunError, match="cannot write"):
        files.make_directory(tmp_path / "file" / "a")
    with pytest.raises(RunError, match="cannot write"):
        files.write_directory(tmp_path / "file" / "b", {})


def test_a_locked_directory_is_refused_to_others_until_it_is_free(tmp_path: Path) -> None:
    with (
        files.locked(tmp_path),
        pytest.raises(RunError, match="is being written by another process"),
        files.locked(tmp_path),
    ):
        pass
    with files.locked(tmp_path):
        assert names(tmp_path) == []
