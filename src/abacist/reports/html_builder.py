"""HTML and SVG that cannot be broken by what is put into it.

>>> element("p", "1 < 2 ", element("b", "always"), class_="note")
'<p class="note">1 &lt; 2 <b>always</b></p>'

Whatever is not `Markup` already is text, and escaped.
"""

import html
import re
from collections.abc import Iterable, Sequence

Attribute = str | int | float | None

_VOID = {"meta", "br", "input"}


class Markup(str):
    """Elements that are whole: made by this module, so safe to be put inside others."""

    __slots__ = ()


def element(tag: str, *children: str, **attributes: Attribute) -> Markup:
    """One element. `class_` stands for `class`, `aria_label` for `aria-label`; None is left out."""
    named = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{html.escape(_number(value))}"'
        for name, value in attributes.items()
        if value is not None
    )
    if tag in _VOID:
        return Markup(f"<{tag}{named}>")
    return Markup(f"<{tag}{named}>{together(children)}</{tag}>")


def together(parts: Iterable[str]) -> Markup:
    """Elements and texts, one after the other."""
    return Markup(
        "".join(part if isinstance(part, Markup) else html.escape(part) for part in parts)
    )


def table(
    caption: str, header: Sequence[str], groups: Iterable[Sequence[Sequence[str]]], texts: int = 1
) -> Markup:
    """A table with rows in groups; its first cell names a row.

    The first `texts` columns hold words and stand left, the others hold numbers and stand right.
    """
    head = element(
        "tr",
        *(
            element("th", name, scope="col", class_=None if number < texts else "number")
            for number, name in enumerate(header)
        ),
    )
    bodies = (element("tbody", *(_row(row, texts) for row in rows)) for rows in groups)
    # A region that the keyboard can reach, as a narrow screen scrolls it.
    return element(
        "div",
        element("table", element("caption", caption), element("thead", head), *bodies),
        class_="scroll",
        role="region",
        aria_label=caption,
        tabindex=0,
    )


def figure(picture: Markup, caption: str) -> Markup:
    """A picture with what it shows in words."""
    return element("figure", picture, element("figcaption", caption))


def code(text: str) -> Markup:
    """Something to type."""
    return element("code", text)


def command(text: str) -> Markup:
    """A command line; where it is too long for one line, no option leaves its value."""
    options = re.split(r" (?=--)", text)
    words = [element("span", option) for option in options]
    return element("pre", element("code", *_spaced(words)))


def prose(text: str) -> Markup:
    """A sentence in which `backticks` mean something to type."""
    parts = text.split("`")
    return together(code(part) if number % 2 else part for number, part in enumerate(parts))


def _row(cells: Sequence[str], texts: int) -> Markup:
    name, *others = cells
    return element(
        "tr",
        element("th", name, scope="row"),
        *(
            element("td", cell, class_=None if number < texts else "number")
            for number, cell in enumerate(others, start=1)
        ),
    )


def _spaced(words: Sequence[Markup]) -> Iterable[str]:
    for number, word in enumerate(words):
        yield from (" ", word) if number else (word,)


def _number(value: str | int | float) -> str:
    """Coordinates with a tenth of a pixel."""
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else str(value)
