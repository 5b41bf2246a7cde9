"""The settings of a recipe as help shows them, wrapped at the width of the terminal.

--model.width 32
    Width of the residual stream. Range: 1 to 65,536.
"""

import shutil
import textwrap
from collections.abc import Iterable, Iterator

from abacist.configuration import Setting, settings
from abacist.recipes.recipe import Recipe

_NARROWEST, _WIDEST = 40, 100
"""Characters of a line of help."""

OFTEN_CHANGED = (
    "task.max_digits",
    "format",
    "model.positions",
    "model.num_layers",
    "model.width",
    "model.num_heads",
    "model.mlp_width",
    "training.num_steps",
    "training.batch_size",
    "training.learning_rate",
    "training.warmup_steps",
    "training.stop_at",
)
"""The settings that people change most often."""

EMPTY = '""'
"""How an empty list is typed."""


def width() -> int:
    """Return the width of help texts: that of the terminal, within reason."""
    return min(max(shutil.get_terminal_size().columns, _NARROWEST), _WIDEST)


def fill(text: str, indent: str = "", following: str | None = None) -> str:
    """Return text wrapped at the width of help texts, without breaking names of settings at hyphens."""
    return textwrap.fill(
        " ".join(text.split()),
        width(),
        initial_indent=indent,
        subsequent_indent=indent if following is None else following,
        break_on_hyphens=False,
        break_long_words=False,
    )


def paragraphs(text: str) -> str:
    """Return the prose of a docstring, wrapped. Statements of cost and promise keep their own lines."""
    blocks: list[str] = []
    for line in text.splitlines():
        starts = line.startswith(("Cost: ", "Promise: "))
        if starts or not line or not blocks or not blocks[-1]:
            blocks.append(line)
        else:
            blocks[-1] += f" {line}"
    return "\n".join(fill(block) for block in blocks)


def often_changed(recipe: Recipe) -> str:
    """Return the settings of a recipe that people change most often, with their values."""
    return "\n".join(
        _shown(setting) for setting in settings(recipe) if setting.name in OFTEN_CHANGED
    )


def all_settings(recipe: Recipe, sections: Iterable[str] = ()) -> str:
    """Return every setting of a recipe under the heading of its section, or those of some sections."""
    return "\n".join(_with_headings(recipe, frozenset(sections)))


def section_names(recipe: Recipe) -> list[str]:
    """Return the names of the sections of a recipe: `task`, `format` and so on."""
    return list(dict.fromkeys(_section(setting) for setting in _listed(recipe)))


def _with_headings(recipe: Recipe, sections: frozenset[str]) -> Iterator[str]:
    heading = None
    for setting in _listed(recipe):
        section = _section(setting)
        if sections and section not in sections:
            continue
        if section != heading:
            yield f"\n{section}:" if heading else f"{section}:"
            heading = section
        yield _shown(setting)


def _listed(recipe: Recipe) -> list[Setting]:
    return [setting for setting in settings(recipe) if setting.name != "name"]


def _section(setting: Setting) -> str:
    return setting.name.partition(".")[0]


def _shown(setting: Setting) -> str:
    value = "" if setting.has_parts else f" {setting.typed or EMPTY}"
    text = setting.explanation
    if setting.named_values is not None:
        text = f"{text} Names: {', '.join(setting.named_values)}."
    return f"  --{setting.name}{value}\n{fill(text, ' ' * 6)}"
