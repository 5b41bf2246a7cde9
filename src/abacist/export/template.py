"""Templates of exported files, in which a mark such as `@@title@@` stands for a part."""

import re
from collections.abc import Mapping


def fill(template: str, parts: Mapping[str, str]) -> str:
    """Return a template with the parts at their marks, in one pass: a mark within a part stays as it is."""
    return re.sub("@@([a-z-]+)@@", lambda mark: parts[mark[1]], template)
