"""Reads a page as a browser would, and refuses what a browser only forgives."""

from html.parser import HTMLParser

VOID = {"meta", "br", "input"}


class Page(HTMLParser):
    """Elements, texts and headings of a page; fails where tags are not balanced."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.headings: list[tuple[int, str]] = []
        self.styles = ""
        # Text that is joined piece by piece would be copied for every piece of a page of megabytes.
        self.pieces: list[str] = []
        self.feed(text)
        self.close()
        self.text = "".join(self.pieces)
        assert not self.open, f"never closed: {self.open}"

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag == "br":
            self.pieces.append(" ")
        if tag not in VOID:
            self.open.append(tag)
        if tag in ("h1", "h2", "h3"):
            self.headings.append((int(tag[1]), ""))

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" in self.open:
            self.styles += data
            return
        self.pieces.append(data)
        if self.open and self.open[-1] in ("h1", "h2", "h3"):
            level, so_far = self.headings[-1]
            self.headings[-1] = (level, so_far + data)

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]
