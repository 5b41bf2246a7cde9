"""A folder that can be pushed as a Space of Hugging Face: the page with its runs, and this package.

    README.md  app.py  requirements.txt  abacist/…  runs/add-20261121-153012/…

The folder contains this version of the package, so that the Space shows the same page as this machine.
"""

import importlib.metadata
import json
from collections.abc import Sequence
from pathlib import Path

import abacist
from abacist import files
from abacist.errors import RunError
from abacist.runs import directory
from abacist.runs.public_files import public_files

_CARD = """\
---
title: {title}
emoji: 🧮
colorFrom: blue
colorTo: indigo
sdk: gradio
sdk_version: {gradio}
python_version: "3.12"
app_file: app.py
license: mit
---

A small transformer that calculates, trained with abacist {version}: type a problem, see which tokens every head
looks at, switch heads off. Runs: {runs}.
"""
_APP = """\
\"\"\"The page of these runs.\"\"\"

from abacist.app import page
from abacist.app.shown_runs import open_gallery

if __name__ == "__main__":
    with page.served(open_gallery({runs!r})):
        page.wait()
"""


def write_space(runs: Sequence[str], folder: Path) -> Path:
    """Write the folder, whole or not at all, and return its path.

    Raises `RunError` if the folder is not empty, or if a run has no checkpoint.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise RunError(f"{folder} is not an empty folder. Type the name of a new one.")
    if not folder.name:
        raise RunError(f"{folder} is the folder that you are in. Type the name of a new one.")
    contents = _package()
    names = []
    for text in runs:
        run = directory.find(text)
        name = run.path.resolve().name
        if name in names:
            raise RunError(f"two runs are called {name}. Rename the directory of one of them.")
        names.append(name)
        contents |= {f"runs/{name}/{file}": data for file, data in public_files(run).items()}
    paths = [f"runs/{name}" for name in names]
    requirements = [
        requirement
        for requirement in importlib.metadata.requires("abacist") or []
        if "extra ==" not in requirement
    ]
    contents["requirements.txt"] = "\n".join([*requirements, ""]).encode()
    contents["app.py"] = _APP.format(runs=paths).encode()
    contents["README.md"] = _CARD.format(
        # Quoted, so that no character of a name is taken for YAML.
        title=json.dumps(f"abacist {names[0]}"[:60]),
        gradio=importlib.metadata.version("gradio"),
        version=abacist.__version__,
        runs=", ".join(" ".join(name.split()) for name in names),
    ).encode()
    files.write_directory(folder, contents)
    return folder


def _package() -> dict[str, bytes]:
    """Return the files of this package, by path in the folder."""
    root = Path(abacist.__file__).parent
    return {
        f"abacist/{path.relative_to(root).as_posix()}": path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.suffix in (".py", ".css", ".js")
    }
