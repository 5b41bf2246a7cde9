"""Build the documentation as a site: `make docs`.

The pages are the Markdown files of the repository as they are, at their own paths, so that links
between them stay valid. Programs and notebooks to which they lead become pages too, other files are
copied, and every public module gets a page that is made from its docstrings.
"""

import argparse
import ast
import base64
import json
import os
import posixpath
import re
import shutil
import subprocess
import sys
from collections.abc import Collection, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
SITE = ROOT / "site"
SOURCE = ROOT / "src" / "abacist"

HOME = "README.md"
LINK = re.compile(r"(?<=\]\()(?!\w+:|#)([^)#\s]*)")
CODE = re.compile(r"^(?:```.*?^```|(?: {4}|\t).*?$)", re.MULTILINE | re.DOTALL)
LANGUAGES = {".py": "python", ".toml": "toml", ".v": "coq", ".sh": "bash"}


def main() -> int:
    """Gather the pages in a folder, and let Zensical make the site of them."""
    parser = argparse.ArgumentParser(description="Build the documentation as a site.")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "docs", help="where to write")
    folder = parser.parse_args().out.resolve()
    shutil.rmtree(folder, ignore_errors=True)
    gather(folder / "pages")
    modules = write_modules(folder / "pages")
    configuration = (SITE / "zensical.toml").read_text(encoding="utf-8")
    configuration = configuration.replace("@@api@@", navigation(modules))
    configuration = configuration.replace("@@source@@", SOURCE.parent.as_posix())
    configuration = configuration.replace("@@site@@", SITE.as_posix())
    write(folder / "zensical.toml", configuration)
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean"]
    status = subprocess.run(command, cwd=folder).returncode
    if status == 0:
        print(f"Open {folder / 'site' / 'index.html'} in a browser.")
    return status


# Pages of the repository ---------------------------------------------------------------------


def gather(pages: Path) -> None:
    """Write every document, and whatever documents lead to, into a folder."""
    shutil.copytree(SITE / "pages", pages)
    documents = [ROOT / name for name in (HOME, "CHANGELOG.md", "SECURITY.md", "formal/README.md")]
    waiting = [*documents, *sorted((ROOT / "docs").rglob("*.md"))]
    waiting.append(ROOT / "examples" / "calculator.html")
    written: set[Path] = set()
    while waiting:
        path = waiting.pop()
        if path in written:
            continue
        written.add(path)
        name = page_name(path)
        out = pages / name
        if not name.endswith(".md"):
            out.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, out)
            continue
        text = as_markdown(path, out)
        if path.suffix not in LANGUAGES:
            text, targets = with_links(text, path, name)
            waiting += targets
        write(out, text)


def write(page: Path, text: str) -> None:
    """Write a page, whose folder may be missing."""
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(text, encoding="utf-8")


def page_name(path: Path) -> str:
    """Return the path of a file's page or copy among the pages."""
    name = path.relative_to(ROOT).as_posix()
    if path.is_dir():
        return f"{name}/index.md"
    if name == HOME:
        return "index.md"
    if path.name == "README.md":
        # By its own name, the page would be taken for that of a whole section.
        return f"{posixpath.dirname(name)}/overview.md"
    return f"{name}.md" if path.suffix in (*LANGUAGES, ".ipynb") else name


def as_markdown(path: Path, out: Path) -> str:
    """Return the page of a document, a program, a notebook or a folder."""
    if path.suffix == ".md":
        return path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        return notebook(path, out)
    title = f"# `{path.relative_to(ROOT).as_posix()}`\n\n"
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.suffix in (".py", ".ipynb"))
        return title + "".join(f"* [`{file.name}`]({file.name})\n" for file in files)
    return f"{title}````{LANGUAGES[path.suffix]}\n{path.read_text(encoding='utf-8')}\n````\n"


def with_links(text: str, path: Path, name: str) -> tuple[str, list[Path]]:
    """Return a document whose links lead to pages, and the files to which they lead."""
    targets: list[Path] = []
    folder = path if path.is_dir() else path.parent

    def link(match: re.Match[str]) -> str:
        target = Path(os.path.normpath(folder / match[1]))
        targets.append(target)
        return posixpath.relpath(page_name(target), posixpath.dirname(name) or ".")

    parts, end = [], 0
    for code in CODE.finditer(text):
        parts += [LINK.sub(link, text[end : code.start()]), code[0]]
        end = code.end()
    return "".join([*parts, LINK.sub(link, text[end:])]), targets


def notebook(path: Path, out: Path) -> str:
    """Return a notebook with its outputs as Markdown; its pictures are written beside the page."""
    parts: list[str] = []
    for number, cell in enumerate(json.loads(path.read_text(encoding="utf-8"))["cells"]):
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"````python\n{source}\n````")
        for index, output in enumerate(cell["outputs"]):
            data = output.get("data", {})
            if "image/png" in data:
                picture = out.with_name(f"{path.stem}-{number}-{index}.png")
                picture.parent.mkdir(parents=True, exist_ok=True)
                picture.write_bytes(base64.b64decode(data["image/png"]))
                parts.append(f'<img src="{picture.name}" alt="Output of the cell above">')
            elif "text/markdown" in data:
                parts.append("".join(data["text/markdown"]))
            else:
                plain = "".join(output.get("text", data.get("text/plain", "")))
                parts.append(f"````text\n{plain}\n````")
    return "\n\n".join(parts) + "\n"


# The API reference ---------------------------------------------------------------------------


def write_modules(pages: Path) -> dict[str, list[str]]:
    """Write a page for each public module, and return the names of modules by package."""
    packages: dict[str, list[str]] = {}
    summaries: dict[str, str] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE.parent).with_suffix("").parts
        name = ".".join(parts).removesuffix(".__init__")
        if parts[-1] == "__init__":
            packages[name] = []
        elif parts[-1].startswith("_"):
            continue
        else:
            packages[name.rpartition(".")[0]].append(name)
        document = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        summaries[name] = document.partition("\n\n")[0].replace("\n", " ")
    for name in summaries:
        page = module_page(name, packages)
        lines = [f"---\ntitle: {name}\n---\n", f"::: {name}"]
        if name == "abacist":
            inner = [package for package in packages if package != name]
            lines += ["\n## Packages\n", *table(inner, page, packages, summaries)]
        if name in packages:
            lines += ["\n## Modules\n", *table(packages[name], page, packages, summaries)]
        write(pages / page, "\n".join(lines) + "\n")
    return packages


def module_page(name: str, packages: Collection[str]) -> str:
    """Return the path of a module's page."""
    path = name.replace("abacist", "api", 1).replace(".", "/")
    return f"{path}/index.md" if name in packages else f"{path}.md"


def table(
    names: list[str], here: str, packages: Collection[str], summaries: dict[str, str]
) -> Iterator[str]:
    """Yield a table of modules or packages with what each of them is, for the page `here`."""
    yield "| name | what it is |\n|---|---|"
    for name in names:
        target = posixpath.relpath(module_page(name, packages), posixpath.dirname(here))
        short, summary = name.rpartition(".")[2], summaries[name].replace("|", "&#124;")
        yield f"| [`{short}`]({target}) | {summary} |"


def navigation(packages: dict[str, list[str]]) -> str:
    """Return the entry of the API reference in the navigation, in TOML."""
    lines = ['    { "API" = [']
    for package, names in packages.items():
        pages = [f'"{module_page(package, packages)}"']
        for name in names:
            pages.append(f'{{ "{name.rpartition(".")[2]}" = "{module_page(name, packages)}" }}')
        listed = f"      {', '.join(pages)},"
        lines.append(listed if package == "abacist" else f'      {{ "{package}" = [{listed}] }},')
    return "\n".join([*lines, "    ] },"])


if __name__ == "__main__":
    sys.exit(main())
