"""HTML and SVG that cannot be broken by what is put into it.

>>> element("p", "1 < 2 ", element("b", "always"), class_="note")
'<p class="note">1 &lt; 2 <b>always</b></p>'

Whatever is not `Markup` is text, and is escaped.
"""

import html
import itertools
import re
from collections.abc import Iterable, Sequence

from abacist.reports.tables import Table

Attribute = str | int | float | None

_VOID = {"meta", "br", "input"}


class Markup(str):
    """Whole elements made by this module, which are safe to put inside others."""

    __slots__ = ()


def element(tag: str, *children: str, **attributes: Attribute) -> Markup:
    """One element. `class_` stands for `class`, `aria_label` for `aria-label`; None is omitted."""
    named = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{html.escape(_number(value))}"'
        for name, value in attributes.items()
        if value is not None
    )
    if tag in _VOID:
        return Markup(f"<{tag}{named}>")
    return Markup(f"<{tag}{named}>{together(children)}</{tag}>")


def together(parts: Iterable[str]) -> Markup:
    """Elements and texts in a row."""
    return Markup(
        "".join(part if isinstance(part, Markup) else html.escape(part) for part in parts)
    )


def table(table: Table) -> Markup:
    """A table in a region that the keyboard can reach, so that a narrow screen can scroll it."""
    texts = table.num_text_columns
    kinds = [None if number < texts else "number" for number in range(len(table.columns))]
    head = element(
        "tr",
        *(
            element("th", _lines(name), scope="col", class_=kind)
            for name, kind in zip(table.columns, kinds, strict=True)
        ),
    )
    bodies = (element("tbody", *(_row(row, kinds) for row in rows)) for rows in table.groups)
    return element(
        "div",
        element(
            "table",
            element("caption", element("span", _lines(table.caption))),
            element("thead", head),
            *bodies,
        ),
        class_="scroll",
        role="region",
        aria_label=table.caption,
        tabindex=0,
    )


def figure(picture: Markup, caption: str) -> Markup:
    """A picture with its caption."""
    return element("figure", picture, element("figcaption", caption))


def code(text: str) -> Markup:
    """Return text to type, in which no line ends within the name of an option."""
    return element(
        "code",
        *(
            element("span", part, class_="option") if part.startswith("--") else part
            for part in re.split(r"(--\S+)", text)
        ),
    )


def command(text: str) -> Markup:
    """A command line that is broken between options only."""
    words = [element("span", option) for option in re.split(r" (?=--)", text)]
    return element("pre", element("code", Markup(" ".join(words))))


def prose(text: str) -> Markup:
    """A sentence in which `backticks` mark text to type."""
    parts = text.split("`")
    return together(code(part) if i % 2 else part for i, part in enumerate(parts))


def _row(cells: Sequence[str], kinds: Sequence[str | None]) -> Markup:
    """The first cell names the row."""
    name, *others = map(_cell, cells)
    return element(
        "tr",
        element("th", name, scope="row"),
        *(element("td", cell, class_=kind) for cell, kind in zip(others, kinds[1:], strict=True)),
    )


def _cell(cell: str) -> Markup:
    style = getattr(cell, "style", "")
    if style in ("code", "prose"):
        return code(cell) if style == "code" else prose(cell)
    return (
        element("strong", _lines(cell), class_=style) if style in ("good", "bad") else _lines(cell)
    )


def _lines(text: str) -> Markup:
    """Text whose line breaks are kept."""
    first, *others = text.split("\n")
    return together([first, *itertools.chain(*((element("br"), line) for line in others))])


def _number(value: str | int | float) -> str:
    """Coordinates are rounded to a tenth of a pixel."""
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else str(value)
