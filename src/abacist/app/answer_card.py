"""An answer as HTML: what the model wrote, what is right, and the line token by token.

`page.js` makes it interactive: pointing at a written token, or reaching it with the arrow keys,
shows what the heads looked at; the slider steps through the layers.
"""

import json
import math
from collections.abc import Sequence

from abacist.app.answers import LONGEST_SHOWN, Answer, Cell, Inside, WrittenToken
from abacist.intervals import percent
from abacist.reports.html_builder import Markup, element, together
from abacist.reports.lens_views import letter

_UNSURE = 0.9
"""Probability below which a token is marked as unsure."""
_NAMES = {"<start>": "start", "<end>": "end", "=": "equals"}
"""Names of tokens that belong to no column."""
_NAMED_PLACES = ("units", "tens", "hundreds", "thousands")
_REVEAL_SECONDS = 1.6
"""Time in seconds within which the tokens appear one after the other."""


def answer_card(result: Answer) -> Markup:
    """Everything that is shown about one answer."""
    parts = [_compared(result), _verdict(result)]
    if result.inside is None:
        parts.append(
            element(
                "p",
                f"The line is shown token by token, with attention, up to {LONGEST_SHOWN} tokens.",
                class_="muted",
            )
        )
    else:
        parts.append(element("div", _sheet(result), _inspector(), class_="inside"))
        parts.append(_controls(result.inside))
    return element(
        "section",
        element("h3", result.run + (f" without {', '.join(result.off)}" if result.off else "")),
        *parts,
        class_="answer",
        aria_label=f"Answer of {result.run}",
        data_inside=None if result.inside is None else _for_script(result, result.inside),
    )


def side_by_side(cards: Sequence[Markup]) -> Markup:
    """Cards of several runs, side by side if there is room."""
    return element("div", *cards, class_="cards")


def alert(message: str) -> Markup:
    """An error message of one line."""
    return element("p", message, class_="alert", role="alert")


def _compared(result: Answer) -> Markup:
    """The problem, the answer of the model, and the right answer, one below the other."""
    answer, expected = result.answer, result.expected
    written = (
        element("span", "(no answer)", class_="wrong")
        if answer is None
        else _marked(answer, expected)
    )
    rows = [("Problem", result.problem), ("Model wrote", written), ("Right", expected)]
    return element(
        "table",
        element("caption", "What the model wrote, and what is right", class_="hidden"),
        element(
            "tbody",
            *(
                element("tr", element("th", name, scope="row"), element("td", value))
                for name, value in rows
            ),
        ),
        class_="compared",
    )


def _marked(answer: str, expected: str) -> Markup:
    """The answer with its wrong digits marked; numbers are compared from the units on."""
    width, is_number = len(answer), answer[-1:].isdigit()
    beside = expected.rjust(width)[-width:] if is_number else expected.ljust(width)
    parts: list[Markup] = []
    start = 0
    for end in range(1, len(answer) + 1):
        is_wrong = answer[start] != beside[start]
        if end < len(answer) and (answer[end] != beside[end]) == is_wrong:
            continue
        piece = answer[start:end]
        parts.append(element("mark", piece, class_="wrong") if is_wrong else together([piece]))
        start = end
    return together(parts)


def _verdict(result: Answer) -> Markup:
    least = min(result.written, key=lambda token: token.probability)
    sure = f"It was least sure of {letter(least.text)}, {percent(least.probability)}."
    taken = f"{len(result.written):,} tokens in {_milliseconds(result.seconds)}. {sure}"
    kind, word = ("good", "✓ Right.") if result.correct else ("bad", "✗ Wrong.")
    return element("p", element("strong", word), f" {taken}", class_=f"verdict {kind}")


def _sheet(result: Answer) -> Markup:
    """The line as a sheet with aligned columns if the format has rows, or as one line."""
    places = _columns(result.cells)
    width = 0 if places is None else max(column for _, column in places)
    each = _REVEAL_SECONDS / max(12, len(result.written))
    cells = []
    for number, cell in enumerate(result.cells):
        style = [] if places is None else ["grid-row:{};grid-column:{}".format(*places[number])]
        if cell.written is None:
            cells.append(
                element(
                    "span",
                    letter(cell.text) if cell.text != " " else "␣",
                    class_="token",
                    style=";".join(style) or None,
                    data_key=cell.key,
                )
            )
        else:
            token = result.written[cell.written]
            style.append(f"--sure:{token.probability:.3f};--wait:{cell.written * each:.2f}s")
            cells.append(_written(cell, token, ";".join(style)))
    lines = element(
        "div",
        *cells,
        class_="line" if places is None else "sheet",
        style=None if places is None else f"--columns:{width}",
    )
    return element(
        "div",
        lines,
        class_="scroll",
        role="group",
        aria_label="The line that the model read and wrote; arrow keys move between written tokens",
    )


def _written(cell: Cell, token: WrittenToken, style: str) -> Markup:
    """A token that can be pointed at and reached by keyboard, with its probability."""
    kinds = ["token", "written"]
    kinds += ["wrong"] if token.text != token.right else []
    kinds += ["unsure"] if token.probability < _UNSURE else []
    words = [letter(token.text) if token.text != " " else "space", _place(cell.place)]
    words.append(f"{percent(token.probability)} sure")
    if token.text != token.right:
        right = "nothing more" if token.right is None else letter(token.right)
        words.append(f"wrong, right is {right}")
    return element(
        "button",
        element("span", letter(token.text) if token.text != " " else "␣", class_="text"),
        type="button",
        class_=" ".join(kinds),
        style=style,
        tabindex=0 if cell.written == 0 else -1,
        aria_label=", ".join(part for part in words if part),
        data_key=cell.key,
        data_written=cell.written,
    )


def _columns(cells: Sequence[Cell]) -> list[tuple[int, int]] | None:
    """Row and column of every token, starting at 1; None if the format has no rows.

    The highest place is on the left. Operators and other tokens without a place begin their row.
    """
    if all(cell.row is None for cell in cells):
        return None
    highest = max(cell.place or 0 for cell in cells)
    positions: list[tuple[int, int]] = []
    for number, cell in enumerate(cells):
        row = cell.row
        if row is None:
            row = next((later.row for later in cells[number:] if later.row is not None), None)
        if row is None:
            return None
        column = 2 if cell.place is None else highest - cell.place + 3
        if cell.place is None and number == 0:
            column = 1
        positions.append((row, column))
    return positions if len(set(positions)) == len(positions) else None


def _controls(inside: Inside) -> Markup:
    """Controls for the head that is shown and the layer after which the model is read."""
    heads = [("all", "all heads, on average"), *enumerate(inside.heads)]
    last = len(inside.stages) - 1
    return element(
        "div",
        element(
            "label",
            "Attention of ",
            element(
                "select",
                *(element("option", name, value=str(value)) for value, name in heads),
                class_="heads",
            ),
        ),
        element(
            "label",
            "If it stopped after ",
            element("output", _stage(inside.stages[-1]), class_="stage"),
            element(
                "input",
                type="range",
                min=0,
                max=last,
                value=last,
                class_="stages",
                aria_label="Step through the layers",
                aria_valuetext=_stage(inside.stages[-1]),
            ),
        ),
        class_="controls",
    )


def _inspector() -> Markup:
    return element(
        "div",
        element(
            "p",
            "Point at a written token, or reach it with Tab and the arrow keys, to see what the "
            "heads looked at before it was written.",
        ),
        class_="looked",
        aria_live="polite",
    )


def _for_script(result: Answer, inside: Inside) -> str:
    return json.dumps(
        {
            "heads": inside.heads,
            "attention": inside.attention,
            "stages": [_stage(name) for name in inside.stages],
            "likeliest": [[letter(token) for token in row] for row in inside.likeliest],
            "probability": inside.probability,
            "keys": [
                [letter(cell.text), _NAMES.get(cell.text, _place(cell.place))]
                for cell in result.cells
                if cell.key is not None
            ],
            "written": [_probabilities_of(token) for token in result.written],
        },
        separators=(",", ":"),
        ensure_ascii=False,
    )


def _probabilities_of(token: WrittenToken) -> list[str]:
    """The written token and the runner-up, each with its probability."""
    tokens = {token.text: token.probability, token.rival: token.rival_probability}
    return [part for text, share in tokens.items() for part in (letter(text), percent(share))]


def _stage(name: str) -> str:
    """The name of a stage for people: `MLP 1` is the MLP of layer 2."""
    if name == "embedding":
        return "the embedding"
    part, _, number = name.partition(" ")
    return f"{part} of layer {int(number) + 1}" if number else part


def _place(place: int | None) -> str:
    if place is None:
        return ""
    return _NAMED_PLACES[place - 1] if place <= len(_NAMED_PLACES) else f"place {place}"


def _milliseconds(seconds: float) -> str:
    if seconds >= 1:
        return f"{seconds:.1f} s"
    return f"{math.ceil(seconds * 1000)} ms"
