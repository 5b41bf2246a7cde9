"""The certificate in plain words and as a picture.

The picture shows a sum with a window of two columns, and beside it one tile for each neighbourhood:
everything that the window can hold. `page.js` moves the window and lights the tiles of the
neighbourhoods that the sum passes through.
"""

import json
from collections.abc import Sequence

from abacist.app.shown_runs import ShownRun
from abacist.certificates.record import Certificate
from abacist.reports.html_builder import Markup, code, element, figure, together
from abacist.reports.run_report import headline
from abacist.reports.tables import shortened

_TILES_PER_ROW = 200
_TILE = 4
"""Width and height of a tile, in units of the picture."""


def certificate_card(shown_run: ShownRun) -> Markup:
    """What is proved about the run with all its parts, what was measured, and the picture."""
    records, proof = shown_run.records, shown_run.records.certificate
    lines: list[Markup] = []
    kind = ""
    if proof is None:
        command = code(f"abacist prove {shown_run.run.path}")
        strong = element("strong", "Not proved.")
        lines.append(
            element(
                "p", strong, " No proof was tried for this run. To try one, type ", command, "."
            )
        )
    elif proof.certified:
        kind = " good"
        strong = element("strong", "✓ Certified, with all parts on:", class_="good")
        lines.append(element("p", strong, f" {proof.reason}"))
    else:
        kind = " bad"
        strong = element("strong", "✗ Not certified:", class_="bad")
        lines.append(element("p", strong, f" {proof.reason}"))
        if proof.counterexample is not None:
            solution = proof.counterexample
            text = f"{solution.problem}={solution.answer_text}, right is {solution.expected}"
            lines.append(element("p", "A problem with a wrong answer: ", code(shortened(text))))
    best = headline(records)
    if best is not None:
        sample, proportion = best
        lines.append(element("p", f"Measured: {proportion} of {sample} right."))
    if proof is not None and proof.certified:
        lines.append(_details(proof))
    parts = [element("div", *lines, class_="verdict" + kind)]
    table = shown_run.neighbourhoods
    if table is not None:
        parts.append(_slideshow(table.sizes))
    return together([element("h2", "Certificate: why every length?"), *parts])


def _details(proof: Certificate) -> Markup:
    """The figures of the proof, folded."""
    margin = "" if proof.smallest_margin is None else f"{proof.smallest_margin:.2f}"
    bound = "" if proof.rounding_bound is None else f"{proof.rounding_bound:.2g}"
    return element(
        "details",
        element("summary", "Details of the proof"),
        element(
            "p",
            f"{proof.neighbourhoods:,} neighbourhoods were checked and {proof.wrong:,} are wrong. "
            f"The right logit leads by at least {margin}, of which an implementation in "
            f"{proof.precision} loses at most {bound} by rounding.",
        ),
    )


def _slideshow(sizes: Sequence[int]) -> Markup:
    """The moving picture: buttons, the columns around the window, and the tiles."""
    count = sum(sizes)
    return element(
        "div",
        element(
            "p",
            "To write a digit, the model sees only its own column, the next one, and the digit that "
            f"it has just written. This window of two columns can hold {count:,} different contents, however long "
            "the numbers are. The proof ran the model on each of them, and it was right each time. Every "
            "calculation is a path from tile to tile.",
        ),
        element(
            "p",
            element("button", "▶ Slide the window over the problem", type="button", class_="slide"),
            class_="buttons",
        ),
        element(
            "div",
            element("div", class_="strip", aria_live="polite"),
            figure(
                tiles(sizes),
                f"One tile for each of the {count:,} neighbourhoods. Those that the problem above "
                "passes through are lit; the present one has a ring.",
            ),
            class_="proof",
        ),
        class_="window-over-tiles",
        data_sizes=json.dumps(list(sizes)),
    )


def tiles(sizes: Sequence[int], lit: Sequence[int] = ()) -> Markup:
    """An SVG picture of all neighbourhoods as tiles, with the numbers in `lit` lit and the last ringed."""
    tops, height = _tops(sizes)
    side = 2 * _TILE
    width = _TILES_PER_ROW * _TILE
    grid = element(
        "pattern",
        element("rect", class_="tile", width=_TILE - 1, height=_TILE - 1),
        id="tile",
        width=_TILE,
        height=_TILE,
        patternUnits="userSpaceOnUse",
    )
    blocks = [
        element("path", d=_outline(size, top), fill="url(#tile)")
        for size, top in zip(sizes, tops, strict=True)
    ]
    centres = [[edge + _TILE / 2 - 0.5 for edge in tile_corner(sizes, number)] for number in lit]
    marks = []
    if centres:
        line = " ".join(f"{x},{y}" for x, y in centres)
        marks.append(element("polyline", class_="path", points=line))
        marks += [
            element("rect", class_="lit", x=x - _TILE, y=y - _TILE, width=side, height=side)
            for x, y in centres
        ]
        marks.append(element("circle", class_="ring", cx=centres[-1][0], cy=centres[-1][1], r=12))
    return element(
        "svg",
        element("defs", grid),
        *blocks,
        element("g", *marks, class_="lights"),
        viewBox=f"0 0 {width} {height}",
        role="img",
        aria_label=f"{sum(sizes):,} tiles in {len(sizes)} groups, one for each neighbourhood",
        class_="tiles",
    )


def tile_corner(sizes: Sequence[int], number: int) -> tuple[int, int]:
    """Return the upper left corner of the tile of a neighbourhood."""
    tops, _ = _tops(sizes)
    for size, top in zip(sizes, tops, strict=True):
        if number < size:
            row, column = divmod(number, _TILES_PER_ROW)
            return column * _TILE, top + row * _TILE
        number -= size
    raise IndexError(number)


def _tops(sizes: Sequence[int]) -> tuple[list[int], int]:
    """Return the upper edge of each group of tiles, and the height of the picture.

    Edges are multiples of the tile, so that the pattern of tiles begins at each of them.
    """
    tops, top = [], 0
    for size in sizes:
        tops.append(top)
        rows = -(-size // _TILES_PER_ROW)
        top += rows * _TILE + 2 * _TILE
    return tops, top


def _outline(size: int, top: int) -> str:
    """Return the path around a group of tiles, whose last row may be shorter."""
    full, rest = divmod(size, _TILES_PER_ROW)
    width = _TILES_PER_ROW * _TILE
    path = f"M0 {top}h{width}v{full * _TILE}h{-width}z" if full else ""
    if rest:
        path += f"M0 {top + full * _TILE}h{rest * _TILE}v{_TILE}h{-rest * _TILE}z"
    return path
