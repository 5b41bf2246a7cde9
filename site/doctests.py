"""Examples in docstrings as code: Markdown would take their `>>>` for quotations."""

import re

from griffe import Class, Extension, Module, Object

EXAMPLE = re.compile(r"^( {0,3})>>> .*(?:\n(?! *$).*)*", re.MULTILINE)


class Doctests(Extension):
    """Fence every block of a docstring that begins with `>>>` and is not indented as code."""

    def on_package(self, *, pkg: Module, **_: object) -> None:
        """Go through a package once it is read."""
        fence(pkg)


def fence(documented: Object) -> None:
    """Fence the examples of a module or class, and of everything in it."""
    if documented.docstring:
        documented.docstring.value = EXAMPLE.sub(fenced, documented.docstring.value)
    if isinstance(documented, (Module, Class)):
        for member in documented.members.values():
            if isinstance(member, Object):
                fence(member)


def fenced(match: re.Match[str]) -> str:
    """Return an example between fences, indented like it."""
    indent = match[1]
    return f"{indent}```pycon\n{match[0]}\n{indent}```"
