"""Standard streams that are closed, full or undecodable, and Ctrl-C: one line at most, no traceback."""

import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from abacist import files
from abacist.cli import main, streams
from abacist.errors import ProblemError, RunError

COMMAND = f"{sys.executable} -m abacist"
CERTIFIED = Path(__file__).parents[2] / "examples" / "add-tiny"


def shell(command: str, **options) -> subprocess.CompletedProcess:
    return subprocess.run(["bash", "-c", command], capture_output=True, timeout=180, **options)


@pytest.mark.parametrize("streams", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-", "2>/dev/full"])
@pytest.mark.parametrize("words", ["recipes", "recipes add", "solve nowhere 1+1", "--help"])
def test_closed_streams_are_like_the_null_device(words, streams):
    result = shell(f"{COMMAND} {words} {streams}")
    assert result.returncode == (2 if "nowhere" in words else 0)
    expected = (
        b"abacist: there is no run nowhere" if "nowhere" in words and "2>" not in streams else b""
    )
    assert result.stderr.startswith(expected)
    assert result.stderr.count(b"\n") == bool(expected)


@pytest.mark.parametrize("words", ["recipes", "recipes add --json", "--help"])
def test_a_full_disk_behind_standard_output_is_one_line(words):
    result = shell(f"{COMMAND} {words} > /dev/full")
    assert result.returncode == 1
    assert result.stderr == b"abacist: No space left on device: output\n"


def test_endless_input_is_solved_while_it_arrives(certified):
    begin = time.monotonic()
    result = shell(
        f"ulimit -v 8000000; yes 1+1 | {COMMAND} solve {certified.path} | head -n 3; "
        "echo ${PIPESTATUS[1]}"
    )
    assert result.stdout.decode() == "1+1=2 ✓\n" * 3 + "0\n"
    assert result.stderr == b""
    assert time.monotonic() - begin < 30


def test_lines_are_handed_on_as_they_arrive():
    reader, writer = os.pipe()
    with open(reader, "rb") as stream:
        lines = streams.arriving_lines(stream)
        os.write(writer, b"1+1\r\n2+2\n3+")
        assert next(lines) == ["1+1", "2+2"]
        os.write(writer, b"3\n\xff")
        assert next(lines) == ["3+3"]
        os.close(writer)
        assert list(lines) == [["\ufffd"]]


@pytest.mark.parametrize(
    ("sent", "problems"),
    [("1+1\n\n", ["1+1"]), ("\r\n 2+2\n \n3+3", [" 2+2", "3+3"]), ("\n\n", [])],
)
def test_blank_lines_are_left_out(sent, problems):
    arrived = streams.arriving_lines(io.BytesIO(sent.encode()))
    assert [line for lines in arrived for line in lines] == problems


def test_many_lines_are_handed_on_in_parts():
    parts = list(streams.arriving_lines(io.BytesIO(b"1+1\n" * 5_000)))
    assert [line for part in parts for line in part] == ["1+1"] * 5_000
    assert max(map(len, parts)) == 1_000


def test_a_line_without_end_is_refused():
    class Zeros(io.BytesIO):
        def read1(self, size: int = -1) -> bytes:
            return b"0" * size

    with pytest.raises(ProblemError, match="more than 10,000,000 bytes"):
        list(streams.arriving_lines(Zeros()))


@pytest.mark.parametrize("encoding", ["utf-8:strict", "ascii:strict"])
def test_input_that_is_not_utf_8_is_a_problem_that_cannot_be_read(certified, encoding):
    result = shell(
        f"printf '1+1\\n\\xff\\xfe+1\\n' | {COMMAND} solve {certified.path}",
        env=os.environ | {"PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"},
    )
    assert result.returncode == 2
    assert result.stdout.startswith(b"1+1=2 ")
    assert result.stderr.startswith(b"abacist: cannot read ")
    assert result.stderr.count(b"\n") == 1


@pytest.fixture
def ctrl_c_is_heard():
    """Programs started meanwhile hear Ctrl-C, also where the tests run in the background of a script."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c_is_heard")
@pytest.mark.parametrize("seconds", [0.15, 0.6, 1.2])
def test_ctrl_c_pressed_twice_during_imports_is_one_line(tmp_path, seconds):
    # The interpreter itself has to start before Ctrl-C can be caught.
    script = "from abacist.cli import main; print(flush=True); raise SystemExit(main())"
    with subprocess.Popen(
        [sys.executable, "-c", script, "train", "add", "--out", str(tmp_path / "run")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        process.stdout.readline()
        time.sleep(seconds)
        for _ in range(2):
            process.send_signal(signal.SIGINT)
            time.sleep(0.02)
        _, errors = process.communicate(timeout=30)
    # The second one can also meet the interpreter at its end, where it ends the process as SIGINT does.
    assert process.returncode in (130, -signal.SIGINT)
    assert b"Traceback" not in errors
    assert b"abacist: interrupted" in errors


@pytest.mark.parametrize(
    ("words", "result", "lost"),
    [
        (["prove"], "CERTIFIED", "The certificate is not saved."),
        (
            ["score", "--num-problems", "2", "--longest", "10"],
            "digits",
            "The scorecard is not saved.",
        ),
    ],
)
def test_a_result_that_cannot_be_saved_is_shown(
    untrained, monkeypatch, capsys, words, result, lost
):
    def fail(path, content):
        raise RunError(f"cannot write {path}: No space left on device.")

    monkeypatch.setattr(files, "write_bytes", fail)
    name, *options = words
    assert main([name, str(untrained.path), *options]) == 1
    captured = capsys.readouterr()
    assert result in captured.out
    # On a busy machine, progress is reported first.
    assert "\nabacist: cannot write " in "\n" + captured.err
    assert lost in captured.err


def test_a_read_only_run_can_be_proved():
    result = shell(f"ulimit -f 0; {COMMAND} prove {CERTIFIED}")
    assert result.returncode == 1
    assert result.stdout.startswith(b"CERTIFIED: ")
    assert result.stderr.splitlines()[-1].startswith(b"abacist: cannot write ")
    assert b"Traceback" not in result.stderr
