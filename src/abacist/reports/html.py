"""A report as one HTML file, which opens without a network and runs no script.

Read on in `run_report.py` (one run) and `comparison_report.py` (several).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from abacist import __version__, files
from abacist.errors import RunError
from abacist.reports.html_builder import Markup, element, together

MAX_BYTES = 3_000_000
"""Upper bound of the size of a report; its pictures and tables are bounded."""

CHARTS_STYLE = Path(__file__).with_name("charts.css")
"""Colours and styles of charts, for every page that has charts."""
_STYLE = Path(__file__).with_name("report.css")
_NOTHING_ELSE = "default-src 'none'; style-src 'unsafe-inline'"
"""Policy under which a browser fetches nothing, even if a report contains a mistake."""


@dataclass(frozen=True)
class Part:
    """One section of a page."""

    name: str
    """Target of links, such as `failures`."""
    title: str
    content: Sequence[Markup]


def page(title: str, lead: Sequence[Markup], parts: Sequence[Part]) -> str:
    """A whole page: title, lead, links to the parts, and the parts."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{_NOTHING_ELSE}">'),
        element("meta", name="generator", content=f"abacist {__version__}"),
        element("title", title),
        element(
            "style",
            *(Markup(path.read_text(encoding="utf-8")) for path in (CHARTS_STYLE, _STYLE)),
        ),
    )
    links = (element("li", element("a", part.title, href=f"#{part.name}")) for part in parts)
    sections = (
        element(
            "section",
            element("h2", part.title, id=f"{part.name}-title"),
            *part.content,
            id=part.name,
            aria_labelledby=f"{part.name}-title",
        )
        for part in parts
    )
    body = element(
        "body",
        element("header", element("h1", title), *lead),
        element("nav", element("ul", *links), aria_label="Contents"),
        element("main", *sections),
    )
    return f'<!doctype html>\n<html lang="en">{together([head, body])}</html>\n'


def write(text: str, path: Path) -> None:
    """Write a page, whole or not at all."""
    if path.is_dir():
        raise RunError(f"{path} is a directory; a report is a file. Type --out {path}/report.html.")
    files.write_bytes(path, text.encode(errors="replace"))
