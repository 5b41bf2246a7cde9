"""The wheel: complete, typed, and of use in a fresh environment of Python 3.11 and of the newest Python."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """The wheel of this checkout; skipped without hatchling, unless ABACIST_NEEDS_WHEEL is set."""
    if find_spec("hatchling") is None and not os.environ.get("ABACIST_NEEDS_WHEEL"):
        pytest.skip("hatchling is not installed: pip install hatchling")
    out = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", out]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    [wheel] = out.glob("*.whl")
    return wheel


def interpreters() -> dict[tuple[int, int], Path]:
    """Every Python from 3.11 on that is installed and starts, by version."""
    beside = Path(sys.base_prefix).parent.glob("*/bin/python3.*")  # where pyenv keeps them
    on_path = (shutil.which(f"python3.{minor}") for minor in range(11, 40))
    found: dict[tuple[int, int], Path] = {sys.version_info[:2]: Path(sys.executable)}
    for path in filter(None, (*on_path, *beside)):
        match = re.fullmatch(r"python3\.(\d+)", Path(path).name)
        if not match or int(match[1]) < 11 or (3, int(match[1])) in found:
            continue
        started = subprocess.run([path, "-c", "import venv"], capture_output=True)
        if started.returncode == 0:
            found[3, int(match[1])] = Path(path)
    return found


def install(wheel: Path, python: Path, environment: Path) -> Path:
    """Install a wheel alone; the packages that it needs are those of the tests' environment."""
    subprocess.run([python, "-m", "venv", "--without-pip", environment], check=True)
    own = environment / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", own, "install", "--quiet", "--no-deps"]
    subprocess.run([*pip, "--no-index", wheel], check=True)
    asked = "import sysconfig; print(sysconfig.get_path('purelib'))"
    packages = subprocess.run([own, "-c", asked], check=True, capture_output=True, text=True)
    needed = sysconfig.get_path("purelib")
    (Path(packages.stdout.strip()) / "needed.pth").write_text(f"{needed}\n")
    return environment / "bin" / "abacist"


def run(*command: object) -> str:
    """The output of a command in a folder that holds no source code."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, cwd="/", env=environment
    )
    return done.stdout


def test_the_wheel_holds_the_package_with_its_types_and_templates_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    sources = {
        path.relative_to(ROOT / "src").as_posix()
        for path in (ROOT / "src").rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    assert {"abacist/py.typed", "abacist/export/calculator/page.js"} <= sources
    assert {name for name in names if ".dist-info/" not in name} == sources


def test_the_command_of_the_wheel_exports_a_page_in_a_fresh_environment(wheel, tmp_path):
    command = install(wheel, Path(sys.executable), tmp_path / "environment")
    out = tmp_path / "page.html"
    run(command, "export", ROOT / "examples" / "add-tiny", "--to", "html", "--out", out)
    assert out.read_text() == (ROOT / "examples" / "calculator.html").read_text()
    where = run(
        tmp_path / "environment" / "bin" / "python", "-c", "import abacist; print(abacist.__file__)"
    )
    assert Path(where.strip()).is_relative_to(tmp_path)


def test_the_command_of_the_wheel_starts_on_python_3_11_and_on_the_newest(wheel, tmp_path):
    available = interpreters()
    versions = {min(available), max(available)}
    print(f"Python {' and '.join(f'{major}.{minor}' for major, minor in sorted(versions))}")
    for version in versions:
        command = install(wheel, available[version], tmp_path / f"{version[0]}.{version[1]}")
        assert run(command, "version").startswith("abacist ")
        # What lists recipes needs neither PyTorch nor another compiled package.
        assert "\nsubtract\n" in run(command, "recipes")
