"""Tables in HTML for notebooks, which show an object by its method `_repr_html_`."""

import html
from collections.abc import Iterable, Sequence


def html_table(caption: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table whose caption and cells are text; `columns` may be empty."""

    def row(cells: Iterable[object], tag: str) -> str:
        texts = ("" if cell is None else html.escape(str(cell)) for cell in cells)
        return "<tr>" + "".join(f"<{tag}>{text}</{tag}>" for text in texts) + "</tr>"

    head = f"<thead>{row(columns, 'th')}</thead>" if columns else ""
    body = "".join(row(cells, "td") for cells in rows)
    return f"<table><caption>{html.escape(caption)}</caption>{head}<tbody>{body}</tbody></table>"
