"""The vectors of the digits as points that move while training goes on."""

import json

from abacist.app.vectors import Vectors
from abacist.intervals import percent
from abacist.reports.html_builder import Markup, element, figure

_SIDE = 260
_MARGIN = 16


def vectors_card(name: str, told: Vectors) -> Markup:
    """A picture of the last step, and a slider over all of them."""
    reach = max((abs(v) for step in told.points for point in step for v in point), default=1.0)
    scale = (_SIDE / 2 - _MARGIN) / (reach or 1.0)
    places = [
        [[round(_SIDE / 2 + scale * x, 1), round(_SIDE / 2 - scale * y, 1)] for x, y in step]
        for step in told.points
    ]
    first, last = told.labels[0], told.labels[-1]
    what = (
        f"Vectors of {first} to {last} of {name}, seen along the two directions in which they spread "
        f"most after step {told.steps[-1]:,}, which hold {percent(told.explained)} of their variance."
    )
    marks = [
        element(
            "text",
            label,
            class_=f"point c{number % 2}",
            text_anchor="middle",
            dominant_baseline="central",
            transform=f"translate({x} {y})",
        )
        for number, (label, (x, y)) in enumerate(zip(told.labels, places[-1], strict=True))
    ]
    frame = element("rect", class_="frame", x=1, y=1, width=_SIDE - 2, height=_SIDE - 2)
    picture = element(
        "svg", frame, *marks, viewBox=f"0 0 {_SIDE} {_SIDE}", role="img", aria_label=what
    )
    return element(
        "div",
        figure(picture, what),
        _slider(told),
        class_="vectors",
        data_places=json.dumps(places, separators=(",", ":")),
        data_steps=json.dumps(told.steps),
    )


def _slider(told: Vectors) -> Markup:
    if len(told.steps) < 2:
        return element(
            "p",
            "No copies were kept while this run was trained, so this is the last step alone. Train with "
            "--training.record_embeddings_every 100 to see how the vectors came about.",
            class_="muted",
        )
    last = len(told.steps) - 1
    return element(
        "label",
        "After step ",
        element("output", f"{told.steps[-1]:,}"),
        element(
            "input",
            type="range",
            min=0,
            max=last,
            value=last,
            aria_label="Training step",
            aria_valuetext=f"step {told.steps[-1]:,}",
        ),
    )
