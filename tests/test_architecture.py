"""Imports between packages point one way, and help texts import nothing heavy."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "abacist"

LAYERS = [
    {
        "arrays",
        "errors",
        "extensions",
        "vocabulary",
        "generators",
        "files",
        "intervals",
        "notebook_html",
        "setting_types",
        "config_base",
        "configuration",
        "devices",
    },
    {"tasks"},
    {"formats"},
    {"data"},
    {"models"},
    {"scoring"},
    {"certificates"},
    {"inspection"},
    {"training"},
    {"recipes"},
    {"runs"},
    {"sweeps"},
    {"reports"},
    {"export"},
    {"app"},
    {"api"},
    {"cli"},
    {"__main__"},
]
"""A module may import from its own layer and from those before it in this list."""


def _imports(file: Path) -> set[str]:
    """First names after `abacist.` in all imports of a file, including those for type checking."""
    imported = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module == "abacist":
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("abacist."):
            imported.add(node.module.split(".")[1])
        elif isinstance(node, ast.Import):
            imported |= {a.name.split(".")[1] for a in node.names if a.name.startswith("abacist.")}
    return imported - {"__version__"}


def _room(file: Path) -> str:
    return file.relative_to(SOURCE).parts[0].removesuffix(".py")


FILES = sorted(file for file in SOURCE.rglob("*.py") if file != SOURCE / "__init__.py")


def test_imports_point_one_way():
    level = {room: number for number, rooms in enumerate(LAYERS) for room in rooms}
    wrong = [
        f"{file.relative_to(SOURCE)} imports {imported}"
        for file in FILES
        for imported in _imports(file)
        if level[imported] > level[_room(file)]
    ]
    assert wrong == []


def test_every_room_has_its_layer():
    assert {_room(file) for file in FILES} == set().union(*LAYERS)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["--version"],
        ["recipes"],
        ["recipes", "add"],
        ["train", "--help"],
        ["solve", "-h"],
        ["play", "--help"],
        ["sweep", "--help"],
    ],
    ids=" ".join,
)
def test_help_imports_neither_torch_nor_matplotlib(arguments):
    script = (
        "import sys\n"
        "from abacist.cli import main\n"
        "try:\n    main(sys.argv[1:])\nexcept SystemExit:\n    pass\n"
        "heavy = {'torch', 'matplotlib', 'numpy', 'gradio'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr


def test_importing_the_package_loads_nothing_heavy():
    script = "import sys, abacist; assert 'torch' not in sys.modules; abacist.RECIPES"
    assert subprocess.run([sys.executable, "-c", script]).returncode == 0


def test_every_public_name_exists():
    import abacist

    for name in abacist.__all__:
        assert getattr(abacist, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'trian'"):
        _ = abacist.trian


def test_dir_of_the_package_shows_the_public_names_and_no_others():
    import abacist

    shown = [name for name in dir(abacist) if not name.startswith("_")]
    assert shown == sorted(abacist.__all__)


def test_nothing_is_unpickled():
    for file in FILES:
        assert "pickle" not in file.read_text().replace("unpickled", "")
        assert "torch.load(" not in file.read_text().replace("safetensors.torch.load(", "")
