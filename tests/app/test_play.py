"""The command `play`, and the folder that it writes for a Space."""

import importlib.util
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.request

import pytest

from abacist.cli import main


@pytest.fixture
def play(capsys):
    """Run the command; gives its exit code and what it complains of."""

    def call(*arguments: str) -> tuple[int, str]:
        code = main(["play", *arguments])
        return code, capsys.readouterr().err

    return call


def test_without_gradio_one_line_says_what_to_type(play, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert play("somewhere") == (
        2,
        "abacist: the page needs gradio, which is not installed. "
        'Type pip install --editable ".[app]" in the clone of abacist.\n',
    )


def test_addresses_that_cannot_be_had_are_reported_in_one_line(play, learned):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, result = play(str(learned.path), "--host", "127.0.0.1", "--port", str(port))
    assert code == 2
    assert f"no page can be served at 127.0.0.1, port {port}: Address already in use" in result
    code, result = play(str(learned.path), "--host", "no.such.host.invalid")
    assert code == 2
    assert "no page can be served at no.such.host.invalid" in result
    assert result.count("\n") == 1
    assert play("nowhere")[0] == 2
    assert "must be a whole number from 1 to 65,535" in play("--port", "0")[1]


def test_a_space_is_a_folder_that_runs_on_its_own(learned, tmp_path, play):
    folder = tmp_path / "space"
    assert play(str(learned.path), "--share-space", str(folder)) == (0, "")
    card = (folder / "README.md").read_text()
    assert card.startswith('---\ntitle: "abacist learned"\n')
    assert "sdk: gradio\nsdk_version: 6." in card
    requirements = (folder / "requirements.txt").read_text().splitlines()
    assert any(line.startswith("torch") for line in requirements)
    assert not any("extra ==" in line for line in requirements)
    # It runs by the package in the folder.
    copied = folder / "abacist" / "app" / "page.py"
    copied.write_text(copied.read_text().replace('title="abacist"', 'title="of the folder"'))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {"GRADIO_SERVER_NAME": "127.0.0.1", "GRADIO_SERVER_PORT": str(port)}
    process = subprocess.Popen([sys.executable, "app.py"], cwd=folder, env=environment)
    try:
        assert "of the folder" in fetched(f"http://127.0.0.1:{port}/")
    finally:
        process.kill()
        process.wait()


def fetched(address: str) -> str:
    """What is served there, as soon as it is."""
    for _ in range(1_200):
        try:
            with urllib.request.urlopen(address) as response:
                return response.read().decode()
        except OSError:
            time.sleep(0.1)
    raise AssertionError(f"nothing is served at {address}")


def test_a_space_is_never_written_over_something(learned, tmp_path, play):
    (tmp_path / "kept").write_text("mine")
    code, result = play(str(learned.path), "--share-space", str(tmp_path))
    assert code == 2
    assert "is not an empty folder. Type the name of a new one." in result
    assert (tmp_path / "kept").read_text() == "mine"
    code, result = play(
        str(learned.path), str(learned.path), "--share-space", str(tmp_path / "twice")
    )
    assert code == 2
    assert "two runs are called learned" in result
    assert not (tmp_path / "twice").exists()


def test_a_space_is_not_written_in_place_of_the_folder_that_one_is_in(
    learned, tmp_path, play, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    code, result = play(str(learned.path), "--share-space", ".")
    assert code == 2
    assert result == "abacist: . is the folder that you are in. Type the name of a new one.\n"
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_ends_the_page_quietly(monkeypatch):
    from abacist.app import page

    def interrupt(event: threading.Event) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(threading.Event, "wait", interrupt)
    page.wait()


def test_the_page_is_reported_where_it_is_and_is_there(learned, monkeypatch, capsys):
    from abacist.app import page

    seen = []

    def wait() -> None:
        line = capsys.readouterr().out
        assert line.startswith("Page: http://127.0.0.1:")
        seen.append(fetched(line.split()[1]))

    monkeypatch.setattr(page, "wait", wait)
    assert main(["play", str(learned.path)]) == 0
    assert "abacist" in seen[0]
    assert "https://fonts" not in seen[0]
