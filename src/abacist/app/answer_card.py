"""An answer as HTML: what the model wrote, what is right, and the line token by token.

`page.js` makes it interactive: Play and Step show how the line is written, token by token. Pointing at
a written token, or reaching it with the arrow keys, shows what the heads looked at, and the slider
steps through the layers.
"""

import json
import math
from collections.abc import Sequence

from abacist.app.answers import LONGEST_SHOWN, Answer, Cell, Inside, WrittenToken
from abacist.app.explanations import place_name
from abacist.app.paper_layout import shortened_sign
from abacist.intervals import percent
from abacist.reports.html_builder import Markup, element, together
from abacist.reports.lens_views import letter

_UNSURE = 0.9
"""Probability below which a token is marked as unsure."""
_LONG = 40
"""Number of characters from which a problem is shown in small type."""
_NAMES = {
    "<start>": "start",
    **{f"<{kind}>": f"start of a {kind}" for kind in ("sum", "difference", "product", "division")},
    "<end>": "end",
    "=": "equals",
}
"""Names of tokens that belong to no column."""
_REVEAL_SECONDS = 1.6
"""Time in seconds within which the tokens appear one after the other."""


def answer_card(result: Answer) -> Markup:
    """Everything that is shown about one answer."""
    parts = [compared(result.problem, result.answer, result.expected, result.numbers)]
    parts.append(_verdict(result))
    if result.inside is None:
        parts.append(
            element(
                "p",
                f"The line is shown token by token, with attention, up to {LONGEST_SHOWN} tokens.",
                class_="muted",
            )
        )
    else:
        parts.append(element("h4", "How it wrote the answer, and what it looked at"))
        parts.append(_player())
        parts.append(element("div", _sheet(result), _inspector(), class_="inside"))
        parts.append(_legend(result))
        parts.append(_controls(result.inside))
    inside = None if result.inside is None else _for_script(result, result.inside)
    return card(result.run, result.off, parts, inside)


def card(
    run: str, off: Sequence[str], parts: Sequence[Markup], inside: str | None = None
) -> Markup:
    """A card with the name of a run and of its parts that are off.

    Args:
        inside: what `page.js` shows of the model, as JSON.
    """
    name = run + (f" without {', '.join(off)}" if off else "")
    return element(
        "section",
        element("h3", name),
        *parts,
        class_="answer",
        aria_label=f"Answer of {run}",
        data_inside=inside,
    )


def side_by_side(cards: Sequence[Markup]) -> Markup:
    """Cards of several runs, side by side if there is room."""
    return element("div", *cards, class_="cards")


def alert(message: str) -> Markup:
    """An error message of one line, as a sentence."""
    return element("p", message[:1].upper() + message[1:], class_="alert", role="alert")


def compared(
    problem: str,
    answer: str | None,
    expected: str,
    numbers: Sequence[str] | None = None,
    answer_name: str = "Model wrote",
) -> Markup:
    """The problem, the answer, and the right answer, one below the other."""
    written = (
        element("span", "(no answer)", class_="wrong")
        if answer is None
        else _marked(answer, expected)
    )
    rows = [("Problem", problem), (answer_name, written)]
    if answer != expected:
        rows.append(("Right", expected))
    if numbers is not None:
        rows.append(("that is", ", ".join(numbers)))
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
        class_="compared long" if len(problem) > _LONG else "compared",
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
    number = min(range(len(result.written)), key=lambda i: result.written[i].probability)
    least = result.written[number]
    place = next((cell.place for cell in result.cells if cell.written == number), None)
    where = f" ({place_name(place)})" if place is not None else ""
    sure = f"It was least sure of {letter(least.text)}{where}, {percent(least.probability)}."
    taken = f"{len(result.written):,} tokens in {milliseconds(result.seconds)}. {sure}"
    return verdict(result.correct, taken, result.off)


def verdict(correct: bool, taken: str, off: Sequence[str]) -> Markup:
    """Whether an answer is right, what it took, and which parts were switched off."""
    kind, word = ("good", "✓ Right.") if correct else ("bad", "✗ Wrong.")
    note = ""
    if off:
        note = f" Switched off: {', '.join(off)}. The certificate is about all parts on."
    return element("p", element("strong", word), f" {taken}{note}", class_=f"verdict {kind}")


def _player() -> Markup:
    """Buttons that write the line again, token by token."""
    buttons = (("back", "◀ Back"), ("play", "▶ Play"), ("step", "Step ▶"))
    return element(
        "p",
        *(element("button", text, type="button", class_=name) for name, text in buttons),
        element("output", class_="progress"),
        class_="buttons player",
    )


def _legend(result: Answer) -> Markup:
    """The signs of the line, each with its meaning."""
    marks = [("bar below a digit", "how sure the model was"), ("frame with ✗", "wrong")]
    return element(
        "details",
        element("summary", "Signs"),
        element(
            "dl",
            *(
                part
                for sign, meaning in [*result.legend, *marks]
                for part in (element("dt", sign), element("dd", meaning))
            ),
        ),
        class_="legend",
    )


def _sheet(result: Answer) -> Markup:
    """The line as on paper if the format has such a layout, or else from left to right."""
    positions = [cell.position for cell in result.cells]
    on_paper = all(position is not None for position in positions)
    width = max((p.column + p.width - 1 for p in positions if p is not None), default=0)
    each = _REVEAL_SECONDS / max(12, len(result.written))
    cells = []
    for cell in result.cells:
        style, kinds = [], ["token"]
        if on_paper and cell.position is not None:
            place = cell.position
            style.append(f"grid-row:{place.row};grid-column:{place.column}/span {place.width}")
            kinds += [place.kind] if place.kind != "digit" else []
        hint = result.hints.get(cell.text)
        if cell.key is not None:
            order = f"token {cell.key + 1} in the order of the model"
            hint = order if hint is None else f"{hint}; {order}"
        if cell.written is None:
            cells.append(
                element(
                    "span",
                    _text(cell.text),
                    class_=" ".join(kinds),
                    style=";".join(style) or None,
                    title=hint,
                    data_key=cell.key,
                )
            )
        else:
            token = result.written[cell.written]
            style.append(f"--sure:{token.probability:.3f};--wait:{cell.written * each:.2f}s")
            cells.append(_written(cell, token, kinds, ";".join(style), hint))
    lines = element(
        "div",
        *cells,
        class_="sheet" if on_paper else "line",
        style=f"--columns:{width}" if on_paper else None,
    )
    return element(
        "div",
        lines,
        class_="scroll",
        role="group",
        aria_label="The line that the model read and wrote; arrow keys move between written tokens",
    )


def _text(token: str) -> str:
    """A token as it is shown: a single letter, and products without their brackets."""
    return "␣" if token == " " else shortened_sign(letter(token))


def _written(
    cell: Cell, token: WrittenToken, kinds: list[str], style: str, hint: str | None
) -> Markup:
    """A token that can be pointed at and reached by keyboard, with its probability."""
    kinds = [*kinds, "written"]
    kinds += ["wrong"] if token.text != token.right else []
    kinds += ["unsure"] if token.probability < _UNSURE else []
    words = [letter(token.text) if token.text != " " else "space", _name_of_place(cell.place)]
    words.append(f"{percent(token.probability)} sure")
    if token.text != token.right:
        right = "nothing more" if token.right is None else letter(token.right)
        words.append(f"wrong, right is {right}")
    return element(
        "button",
        element("span", _text(token.text), class_="text"),
        type="button",
        class_=" ".join(kinds),
        style=style,
        tabindex=0 if cell.written == 0 else -1,
        aria_label=", ".join(part for part in words if part),
        title=hint,
        data_key=cell.key,
        data_written=cell.written,
    )


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
            "What it would write after ",
            element("output", inside.stages[-1], class_="stage"),
            element(
                "input",
                type="range",
                min=0,
                max=last,
                value=last,
                class_="stages",
                aria_label="Step through the layers",
                aria_valuetext=inside.stages[-1],
            ),
        ),
        class_="controls",
    )


def _inspector() -> Markup:
    return element(
        "div",
        element(
            "p",
            "Press Play to see the answer being written. Or point at a written digit, or reach it with "
            "Tab and the arrow keys, to see what the model looked at.",
        ),
        class_="looked",
        aria_live="polite",
    )


def _for_script(result: Answer, inside: Inside) -> str:
    return json.dumps(
        {
            "heads": inside.heads,
            "attention": inside.attention,
            "stages": inside.stages,
            "likeliest": [[_text(token) for token in row] for row in inside.likeliest],
            "probability": inside.probability,
            "keys": [
                [letter(cell.text), _NAMES.get(cell.text, _name_of_place(cell.place))]
                for cell in result.cells
                if cell.key is not None
            ],
            "written": [_probabilities_of(token) for token in result.written],
            "wrong": [
                None if token.text == token.right else letter(token.right or "<end>")
                for token in result.written
            ],
            "explanations": [token.explanation for token in result.written],
            "fields": inside.receptive_fields,
            "neighbourhoods": inside.neighbourhoods,
            "off": result.off,
        },
        separators=(",", ":"),
        ensure_ascii=False,
    )


def _probabilities_of(token: WrittenToken) -> list[str]:
    """The written token and the runner-up, each with its probability."""
    tokens = {token.text: token.probability, token.rival: token.rival_probability}
    return [part for text, share in tokens.items() for part in (_text(text), percent(share))]


def _name_of_place(place: int | None) -> str:
    return "" if place is None else place_name(place)


def milliseconds(seconds: float) -> str:
    """A time in words: rounded up to milliseconds below a second."""
    if seconds >= 1:
        return f"{seconds:.1f} s"
    return f"{math.ceil(seconds * 1000)} ms"
