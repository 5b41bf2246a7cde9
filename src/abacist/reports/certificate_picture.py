"""The certificate as a picture: one tile for each neighbourhood that was checked.

A calculation is a path from tile to tile. Its tiles can be lit, as the page does token by token:

>>> tiles([21_000, 3_518], lit=[20_431, 3_187])
"""

from collections.abc import Sequence

from abacist.reports.html_builder import Markup, element

_TILES_PER_ROW = 200
_TILE = 4
"""Width and height of a tile, in units of the picture. `page.js` has the same layout."""


def tiles(sizes: Sequence[int], lit: Sequence[int] = (), num_wrong: int = 0) -> Markup:
    """Return an SVG picture of all neighbourhoods as tiles.

    Args:
        sizes: number of neighbourhoods of each group.
        lit: numbers of the neighbourhoods that a calculation passes through; the last one has a ring.
        num_wrong: number of neighbourhoods, at the beginning of the first group, drawn as wrong.
    """
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
    if num_wrong:
        marks.append(element("path", d=_outline(num_wrong, 0), class_="wrong"))
    if centres:
        line = " ".join(f"{x},{y}" for x, y in centres)
        marks.append(element("polyline", class_="path", points=line))
        marks += [
            element("rect", class_="lit", x=x - _TILE, y=y - _TILE, width=side, height=side)
            for x, y in centres
        ]
        marks.append(element("circle", class_="ring", cx=centres[-1][0], cy=centres[-1][1], r=12))
    groups = f" in {len(sizes)} groups" if len(sizes) > 1 else ""
    return element(
        "svg",
        element("defs", grid),
        *blocks,
        element("g", *marks, class_="lights"),
        viewBox=f"0 0 {width} {height}",
        role="img",
        aria_label=f"{sum(sizes):,} tiles{groups}, one for each neighbourhood",
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
