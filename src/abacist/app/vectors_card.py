"""The vectors of the digits as points that move during training."""

import json

from abacist.app.vectors import Vectors
from abacist.intervals import percent
from abacist.reports.html_builder import Markup, element, figure, prose

_SIDE = 260
_MARGIN = 16


def vectors_card(name: str, embeddings: Vectors) -> Markup:
    """A picture of the last step, and a slider over all of them."""
    farthest = max(
        (abs(v) for step in embeddings.points for point in step for v in point), default=1.0
    )
    scale = (_SIDE / 2 - _MARGIN) / (farthest or 1.0)
    places = [
        [[round(_SIDE / 2 + scale * x, 1), round(_SIDE / 2 - scale * y, 1)] for x, y in step]
        for step in embeddings.points
    ]
    first, last = embeddings.labels[0], embeddings.labels[-1]
    caption = (
        f"Vectors of {first} to {last} of {name}, projected on the two directions in which they vary "
        f"most after step {embeddings.steps[-1]:,}, which hold {percent(embeddings.explained)} of their variance."
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
        for number, (label, (x, y)) in enumerate(zip(embeddings.labels, places[-1], strict=True))
    ]
    frame = element("rect", class_="frame", x=1, y=1, width=_SIDE - 2, height=_SIDE - 2)
    picture = element(
        "svg", frame, *marks, viewBox=f"0 0 {_SIDE} {_SIDE}", role="img", aria_label=caption
    )
    return element(
        "div",
        figure(picture, caption),
        _slider(embeddings),
        class_="vectors",
        data_places=json.dumps(places, separators=(",", ":")),
        data_steps=json.dumps(embeddings.steps),
    )


def _slider(embeddings: Vectors) -> Markup:
    if len(embeddings.steps) < 2:
        return element(
            "p",
            prose(
                "The embeddings of this run were not recorded during training, so only the last step is "
                "shown. Train with `--training.record_embeddings_every 100` to see how the vectors develop."
            ),
            class_="muted",
        )
    last = len(embeddings.steps) - 1
    return element(
        "label",
        "After step ",
        element("output", f"{embeddings.steps[-1]:,}"),
        element(
            "input",
            type="range",
            min=0,
            max=last,
            value=last,
            aria_label="Training step",
            aria_valuetext=f"step {embeddings.steps[-1]:,}",
        ),
    )
