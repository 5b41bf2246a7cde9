"""The drill: hostile settings, expressions, streams, full disks, requests, signals and kills, with counts.

    python benchmarks/drill.py [--scale 0.1] [--seed 0] [--out results/drill.json]

Each fault must end in one line, with an exit code, without a traceback, with nothing sound deleted and
no wrong answer presented as right. Prints the number of faults and failures of each part, and exits with
1 if there is a failure. `--scale` shortens every part. `tests/faults/` checks the records of a run.
"""

import argparse
import contextlib
import http.client
import io
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import torch
from safetensors.torch import load_file

import abacist
from abacist import recipes
from abacist.cli import COMMANDS, main
from abacist.configuration import settings
from abacist.runs.circumstances import circumstances
from abacist.training import checkpoint

NUM_KILLS, NUM_KILLS_WHILE_WRITING = 30, 20
NUM_EXPRESSIONS = 1_000
NUM_GROUPS = 8
NUM_REQUESTS = 2_000
SECONDS_TO_END = 120
HOSTILE_VALUES = (
    *("", "-1", "9" * 400, "nan", "１２", "None", "🙂", "a\nb", "../../etc/passwd", "$(true)"),
)
STREAMS = ("<&-", ">&-", "2>&-", "<&- >&- 2>&-", ">/dev/full", "2>/dev/full")
TRAINING = {
    "training.num_steps": 400,
    "training.checkpoint_every": 5,
    "training.validate_every": 100,
    "training.validation_problems": 20,
    "training.batch_size": 8,
    "training.warmup_steps": 10,
    "model.width": 8,
    "model.num_heads": 2,
    "model.mlp_width": 16,
}
FULL_DISK = "ulimit -f 0;"
READ_ONLY = (
    "unshare --map-root-user --mount bash -c "
    "'mount --bind $FOLDER $FOLDER && mount -o remount,ro,bind $FOLDER && exec \"$@\"' bash"
)
CALL = "/gradio_api/call/v2/answer"
JSON = {"Content-Type": "application/json"}
Request = tuple[str, str, bytes, dict[str, str]]
HOSTILE_REQUESTS: tuple[Callable[[random.Random], Request], ...] = (
    lambda g: ("POST", CALL, json.dumps({"problem": f"{g.randrange(10**20)}+1"}).encode(), JSON),
    lambda g: ("POST", CALL, json.dumps({"problem": "9" * g.randrange(10**5)}).encode(), JSON),
    lambda g: ("POST", CALL, json.dumps({"problem": [[], {}, None, 1e308]}).encode(), JSON),
    lambda g: ("POST", CALL, b"[" * g.randrange(10**4), JSON),
    lambda g: ("POST", CALL, g.randbytes(g.randrange(2_000)), JSON),
    lambda g: ("POST", CALL, b"{}", {**JSON, "Origin": "http://evil.example"}),
    lambda g: ("GET", "/", b"", {"Host": "evil.example"}),
    lambda g: (
        "POST",
        "/gradio_api/upload",
        g.randbytes(1_000),
        {"Content-Type": "multipart/form-data"},
    ),
    lambda g: ("POST", CALL, b" " * 2_000_000, JSON),
    lambda g: ("GET", "/gradio_api/file=/etc/passwd", b"", {}),
    lambda g: ("GET", "/" + "../" * g.randrange(20) + "etc/passwd", b"", {}),
    lambda g: (
        "POST",
        "/gradio_api/queue/join",
        json.dumps({"fn_index": g.randrange(-9, 99)}).encode(),
        JSON,
    ),
    lambda g: (g.choice(("PUT", "DELETE", "OPTIONS", "PATCH")), CALL, b"", {}),
)
"""Requests: method, path, body and headers. The first is what a visitor sends, and never fetches."""
Failures = Iterator[str | None]
"""For each fault what failed, or None."""


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "abacist", *words]


def complaint_about(code: int, errors: str) -> str | None:
    """Return what is wrong with how a command ended, or None."""
    if "Traceback" in errors or "Exception" in errors:
        return f"a traceback: {errors[-300:]}"
    if code not in (0, 1, 2):
        return f"exit code {code}"
    if len(errors) > 2_000:
        return f"{len(errors):,} characters of errors"
    return None


def in_process(*words: str) -> tuple[str | None, str]:
    """Run a command in this process; return what is wrong with how it ended, and its output."""
    output, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        try:
            code = main(list(words))
        except BaseException as error:
            return f"{type(error).__name__}: {error!s:.200}", ""
    return complaint_about(code, errors.getvalue()), output.getvalue()


def hostile_settings(scale: float) -> Failures:
    """Every setting of the default recipe with hostile values."""
    values = HOSTILE_VALUES[: max(1, round(scale * len(HOSTILE_VALUES)))]
    for setting in settings(recipes.find("add")):
        for value in values:
            failure, _ = in_process("model", "add", f"--{setting.name}={value}")
            yield failure and f"--{setting.name}={value!r:.40}: {failure}"


def hostile_expressions(run: Path, scale: float, generator: random.Random) -> Failures:
    """Random expressions, near to problems and far from them."""
    alphabet = "0123456789+-*/%=() .,eE_\t\0\n🙂١２٣−<>'\"\\"
    for _ in range(round(scale * NUM_EXPRESSIONS)):
        length = generator.choice((0, 1, 2, 5, 20, 200))
        text = "".join(generator.choice(alphabet) for _ in range(length))
        if generator.random() < 0.5:
            text = f"{generator.randrange(10**6)}+{text}"
        failure, output = in_process("solve", str(run), text, "--json")
        if failure is None and output:
            solution = json.loads(output)
            left, right = solution["problem"].split("+")
            if solution["expected"] != str(int(left) + int(right)):
                failure = f"expects {solution['expected']}"
        yield failure and f"{text!r:.60}: {failure}"


def closed_streams(run: Path, scale: float) -> Failures:
    """Commands with streams that are closed or full."""
    words = [["recipes"], ["solve", str(run), "1+1"], ["score", str(run), "--stored"]]
    words += [["report", str(run)], ["compare", str(run), str(run)]]
    words += [[name, "--help"] for name in COMMANDS]
    for arguments in words[: max(1, round(scale * len(words)))]:
        for stream in STREAMS:
            line = f'"$@" {stream}'
            result = subprocess.run(
                ["bash", "-c", line, "bash", *command(*arguments)],
                capture_output=True,
                text=True,
                timeout=300,
            )
            failure = complaint_about(result.returncode, result.stderr)
            yield failure and f"{' '.join(arguments)} {stream}: {failure}"


def unwritable(run: Path, folder: Path, scale: float, prefix: str) -> Failures:
    """Commands that may not write: results are shown, and nothing is half written.

    Args:
        prefix: a line of bash that makes writing to `$FOLDER` impossible for the command after it.
    """
    folder.mkdir()
    copy = Path(shutil.copytree(run, folder / "run"))
    before = {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()}
    tasks = [["score", str(copy), "--num-problems", "5", "--longest", "10"], ["prove", str(copy)]]
    tasks += [["report", str(copy)], ["train", "add", "--out", str(folder / "new")]]
    tasks += [["train", "add", "--seeds", "2", "--out", str(folder / "group")]]
    for arguments in tasks[: max(1, round(scale * len(tasks)))]:
        line = ["bash", "-c", f'{prefix} "$@"', "bash", *command(*arguments)]
        environment = {**os.environ, "FOLDER": str(folder)}
        result = subprocess.run(line, capture_output=True, text=True, env=environment)
        failure = complaint_about(result.returncode, result.stderr)
        if failure is None and "cannot write" not in result.stderr:
            failure = f"does not say that it could not be saved: {result.stderr[-200:]}"
        if failure is None and arguments[0] in ("score", "prove") and not result.stdout:
            failure = "does not show its result"
        if failure is None and {p: p.read_bytes() for p in before if p.exists()} != before:
            failure = "changed a file"
        yield failure and f"{arguments[0]} where nothing can be written: {failure}"


def interrupted_groups(folder: Path, scale: float, generator: random.Random) -> Failures:
    """Groups of seeds that are ended in four ways: no process is left, and the group resumes."""
    words = [f"--{name}={value}" for name, value in TRAINING.items()]
    ways = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL)
    for number in range(max(1, round(scale * NUM_GROUPS))):
        path, way = folder / f"group-{number}", ways[number % len(ways)]
        arguments = command("train", "add", "--seeds", "2", "--out", str(path), *words)
        with subprocess.Popen(
            arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        ) as process:
            while process.poll() is None and not list(path.glob("seed-*/run.json")):
                time.sleep(0.01)
            time.sleep(generator.uniform(0, 2))
            process.send_signal(way)
            failure = None
            try:
                _, errors = process.communicate(timeout=SECONDS_TO_END)
            except subprocess.TimeoutExpired:
                failure = f"still runs after {SECONDS_TO_END} seconds"
                process.kill()
                _, errors = process.communicate()
        if "Traceback" in errors:
            failure = "a traceback"
        if process.returncode == 2:
            failure = f"did not begin: {errors[-200:]}"
        deadline = time.monotonic() + 20
        while failure is None and (left := processes_that_name(path)):
            if time.monotonic() > deadline:
                failure = f"left {len(left)} processes"
                for pid in left:
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.1)
        resumed = subprocess.run(
            command("train", "--resume", "--out", str(path)), capture_output=True, text=True
        )
        if failure is None and resumed.returncode not in (0, 1):
            failure = f"does not resume: {resumed.stderr[-200:]}"
        yield failure and f"{way.name} to a group: {failure}"
        shutil.rmtree(path, ignore_errors=True)


def processes_that_name(path: Path) -> list[int]:
    """The processes, other than this one, whose command, directory or open files are in a directory."""
    numbers = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            links = [*(process / "fd").iterdir(), process / "cwd"]
            texts = [os.readlink(link) for link in links]
            texts.append((process / "cmdline").read_bytes().decode(errors="replace"))
            if int(process.name) != os.getpid() and any(str(path) in text for text in texts):
                numbers.append(int(process.name))
    return numbers


def page_requests(
    run: Path, scale: float, generator: random.Random, memory: list[list[int]]
) -> Failures:
    """Requests to the page that no visitor sends, among calls whose results nobody fetches.

    Each must get an answer that is no server error, and memory must level off: it may rise by 3 % in
    the second half, when the page has long kept as many results as it may.

    Args:
        memory: takes numbers of requests and MiB of this process after them.
    """
    from abacist.app import page
    from abacist.app.shown_runs import open_gallery

    number = round(scale * NUM_REQUESTS)
    with page.served(open_gallery([str(run)])) as address:
        place = urlsplit(address)
        for count in range(number):
            # Half of them are what visitors send, so that the page soon keeps as many results as it may.
            kinds = HOSTILE_REQUESTS if count % 2 else HOSTILE_REQUESTS[:1]
            method, path, body, headers = generator.choice(kinds)(generator)
            for _ in range(600):
                connection = http.client.HTTPConnection(
                    place.hostname or "", place.port, timeout=60
                )
                try:
                    connection.request(method, path, body, headers)
                    status = connection.getresponse().status
                except OSError:
                    # The page may close the connection on a body that it does not read.
                    status = 0
                finally:
                    connection.close()
                if status != 503:
                    break
                # The queue is full: as many calls wait as the page takes.
                time.sleep(0.1)
            failure = f"status {status}" if status >= 500 else None
            yield failure and f"{method} {path:.60} {body!r:.60}: {failure}"
            if count % max(1, number // 20) == 0:
                memory.append([count, resident_mebibytes()])
        connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=60)
        connection.request("GET", "/")
        status = connection.getresponse().status
        yield None if status == 200 else f"the page answers {status} after all requests"
    memory.append([number, resident_mebibytes()])
    middle = memory[len(memory) // 2][1]
    risen = memory[-1][1] > 1.03 * middle
    yield f"memory rises from {middle} to {memory[-1][1]} MiB in the second half" if risen else None


def resident_mebibytes() -> int:
    text = Path("/proc/self/status").read_text()
    return int(text.partition("VmRSS:")[2].split()[0]) // 1024


def kills(folder: Path, scale: float, generator: random.Random) -> Failures:
    """Trainings that are killed, some of them while a checkpoint is written, and resumed."""
    whole = abacist.train("add", out=folder / "whole", settings=TRAINING)
    expected, seconds = weights_of(whole.path), whole.directory.read_metrics()[-1]["seconds"]
    words = [f"--{name}={value}" for name, value in TRAINING.items()]
    count = max(2, round(scale * (NUM_KILLS + NUM_KILLS_WHILE_WRITING)))
    for number in range(count):
        path, while_writing = folder / f"killed-{number}", number % 5 < 2
        arguments = command("train", "add", "--out", str(path), "--train-only", *words)
        with subprocess.Popen(
            arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as process:
            if while_writing:
                after = generator.randrange(1, 40)
                while process.poll() is None and not is_writing(path / "checkpoints", after):
                    pass
            else:
                while process.poll() is None and not (path / "run.json").exists():
                    time.sleep(0.001)
                time.sleep(generator.uniform(0, 0.8 * seconds))
            process.kill()
        failure = None
        try:
            if (path / "run.json").exists():
                abacist.resume(path)
            else:
                abacist.train("add", out=path, settings=TRAINING)
            resumed = weights_of(path)
            if any(not torch.equal(expected[name], resumed[name]) for name in expected):
                failure = "other weights"
        except Exception as error:
            failure = f"{type(error).__name__}: {error!s:.200}"
        yield failure and f"kill {number}: {failure}"
        shutil.rmtree(path, ignore_errors=True)


def is_writing(checkpoints: Path, after: int) -> bool:
    """Whether a temporary file exists after a step, in a directory that may change meanwhile."""
    with contextlib.suppress(FileNotFoundError):
        names = os.listdir(checkpoints)
        return any(n.startswith(f".step-{5 * after:06d}") for n in names) or any(
            n > f"step-{5 * after:06d}" for n in names if n.startswith("step-")
        )
    return False


def weights_of(path: Path) -> dict[str, torch.Tensor]:
    return load_file(checkpoint.all_in(path / "checkpoints")[-1] / "model.safetensors")


def main_program() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="file to which the counts are added")
    parsed = parser.parse_args()
    torch.set_num_threads(1)
    generator, counts = random.Random(parsed.seed), {}
    memory: list[list[int]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        trained = abacist.train("add", out=folder / "run", settings=TRAINING)
        trained.score(["lengths"], num_problems=5, longest=10)
        trained.prove()
        parts = {
            "hostile settings": hostile_settings(parsed.scale),
            "hostile expressions": hostile_expressions(trained.path, parsed.scale, generator),
            "closed and full streams": closed_streams(trained.path, parsed.scale),
            "full disk": unwritable(trained.path, folder / "full", parsed.scale, FULL_DISK),
            "read-only mount": unwritable(trained.path, folder / "ro", parsed.scale, READ_ONLY),
            "groups ended by signals": interrupted_groups(folder, parsed.scale, generator),
            "requests to the page": page_requests(trained.path, parsed.scale, generator, memory),
            "kill -9 and resume": kills(folder, parsed.scale, generator),
        }
        for part, results in parts.items():
            failures = list(results)
            complaints = [failure for failure in failures if failure is not None]
            counts[part] = {"faults": len(failures), "failures": len(complaints)}
            print(f"{part}: {len(failures):,} faults, {len(complaints):,} failures", flush=True)
            for failure in complaints[:10]:
                print(f"  {failure}", flush=True)
    if parsed.out:
        record = {"scale": parsed.scale, "seed": parsed.seed, "parts": counts}
        record |= {"page_memory_mib": memory, **circumstances()}
        runs = json.loads(parsed.out.read_text())["runs"] if parsed.out.exists() else []
        parsed.out.write_text(json.dumps({"runs": [*runs, record]}, indent=1) + "\n")
    return 1 if any(part["failures"] for part in counts.values()) else 0


if __name__ == "__main__":
    sys.exit(main_program())
