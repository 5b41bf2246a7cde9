"""Plain words: retired names stay out of the code, and the rules of plain English that a program can check.

A word that is retired stands in `RETIRED` with the word to use instead.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from abacist.configuration import settings
from abacist.recipes import RECIPES, find

ROOT = Path(__file__).parents[1]
SOURCES = sorted(
    path
    for folder in ("src", "tests", "benchmarks", "checker", "examples", "studies")
    for path in (ROOT / folder).rglob("*.py")
    if path != Path(__file__)
)
PAGES = [
    *(ROOT / name for name in ("README.md", "CHANGELOG.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]

RETIRED = {
    "told": "a name for what it holds, such as annotation or message",
    "deed": "claim",
    "deeds": "claim",
    "tap": "hook",
    "taps": "hooks",
    "reach": "receptive_field",
    "reaches": "receptive_fields",
    "listing": "enumeration",
    "listings": "enumerations",
    "specimen": "inspected_problem",
    "specimens": "inspected_problems",
    "exhibit": "shown_run",
    "exhibits": "shown_runs",
    "subject": "trained_model",
    "subjects": "trained_models",
    "spread": "init_std",
    "placed": "coordinates",
}
"""Retired words, with what to write instead. `place`, `row` and `neighbourhood` are not retired."""

RETIRED_NAMES = {"average_decay", "embedding_spread", "from_told", "ColumnListing", "RowListing"}
"""Retired names that contain no retired word, or that would be missed if words were joined otherwise."""

RETIRED_SETTINGS = {"training.parts", "training.average_decay", "model.embedding_spread"}
RETIRED_SECTIONS = {"evaluation"}

VERBS = re.compile(r"(?:to|that|not|never)_reach", re.IGNORECASE)
"""Uses of a retired noun as a verb, which is plain English."""

RETIRED_PHRASES = {
    r"ha(?:s|ve|d) no use for": "does not use, or does not apply to",
    r"ma(?:ke|kes|de) no use of": "does not use",
    r"(?:is|are|be) gone on with|go(?:es)? on with": "is continued, or is resumed",
    r"in vain": "unused, or without effect",
    r"by heart": "memorised",
    r"by chance": "at random",
    r"all the same(?=[.,;])": "anyway",
    r"in each other(?:'|’)s way": "conflict",
    r"br(?:ing|ings|ought) about": "cause",
    r"looks? for themselves": "find",
    r"so many|as many (?:are|is|were)\b|no few\b": "the number",
    r"in front of the (?:number|digit|line|operand|answer|token)s?": "before",
    r"what tells it from": "what distinguishes it from",
}
"""Phrases that no native engineer writes, as regular expressions, with what to write instead."""
PHRASE_PAGES = [*PAGES, ROOT / "SECURITY.md", ROOT / "formal/README.md"]

BAD_BEGINNINGS = ("Of ", "That ", "In which ", "So many ", "As many ", "By ")
BEHIND_ALLOWED: set[str] = set()
"""Sentences with `behind` for a position in space. In a sequence, say `after`."""


def words_of(identifier: str) -> list[str]:
    """Return the words of a snake_case or CamelCase identifier in lower case."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", identifier)]


@cache
def parsed(path: Path) -> ast.Module:
    """Return the syntax tree of a file, which several tests walk."""
    return ast.parse(path.read_text())


def identifiers(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield every name that the code defines, with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.attr
        elif isinstance(node, ast.alias) and node.asname:
            yield 0, node.asname


def docstrings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield every docstring, and every string that documents a field or a constant, with its line."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        for statement in body if isinstance(body, list) else []:
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                value = statement.value.value
                if isinstance(value, str):
                    yield statement.lineno, value.strip()


def comments(text: str) -> Iterator[tuple[int, str]]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def report(found: list[str]) -> None:
    assert not found, f"{len(found)} violations:\n" + "\n".join(found)


def place_in(path: Path, line: int) -> str:
    return f"{path.relative_to(ROOT)}:{line}"


def retired_identifiers(path: Path) -> list[str]:
    found = []
    for line, name in identifiers(parsed(path)):
        retired = [word for word in words_of(VERBS.sub("", name)) if word in RETIRED]
        if retired:
            found.append(f"{place_in(path, line)} {name}: write {RETIRED[retired[0]]}")
        elif name in RETIRED_NAMES:
            found.append(f"{place_in(path, line)} {name} is retired")
    return found


def bad_beginnings(path: Path) -> list[str]:
    return [
        f"{place_in(path, line)} {text.splitlines()[0]}"
        for line, text in docstrings(parsed(path))
        if text.startswith(BAD_BEGINNINGS)
    ]


def behind_in_code(path: Path) -> list[str]:
    return [
        f"{place_in(path, line)} {sentence}"
        for line, prose in [*docstrings(parsed(path)), *comments(path.read_text())]
        for sentence in prose.splitlines()
        if re.search(r"\bbehind\b", sentence) and sentence.strip() not in BEHIND_ALLOWED
    ]


def retired_phrases(path: Path) -> list[str]:
    """Return every retired phrase of a file, in prose as well as in messages, even across a line break."""
    text = path.read_text()
    return [
        f"{place_in(path, text.count(chr(10), 0, match.start()) + 1)} {match[0]!r}: write {instead}"
        for phrase, instead in RETIRED_PHRASES.items()
        for match in re.finditer(
            rf"\b(?:{phrase})".replace(" ", r"[\s\"'#]+"), text, flags=re.IGNORECASE
        )
    ]


def test_no_retired_phrase_is_written():
    report([line for path in [*SOURCES, *PHRASE_PAGES] for line in retired_phrases(path)])


@pytest.mark.parametrize(
    "text",
    [
        "The format has no use for it.",
        "It makes no use\nof the window.",
        "raise UserError(f'{name} has no use '\n    'for positions.')",
        "# The trial goes on\n# with the next.",
        "learned by heart",
        "It works all the same.",
        "as many are checked",
    ],
)
def test_a_retired_phrase_is_found(text, tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    (tmp_path / "module.py").write_text(text)
    assert len(retired_phrases(tmp_path / "module.py")) == 1


@pytest.mark.parametrize("text", ["as many as fit", "It is all the same to the model", "go on"])
def test_plain_phrases_pass(text, tmp_path):
    (tmp_path / "page.md").write_text(text)
    assert not retired_phrases(tmp_path / "page.md")


def test_no_identifier_has_a_retired_word():
    report([line for path in SOURCES for line in retired_identifiers(path)])


def test_no_module_is_named_with_a_retired_word():
    names = {path.stem for path in SOURCES}
    report([name for name in sorted(names) if any(word in RETIRED for word in words_of(name))])


def test_no_setting_is_retired():
    names = {setting.name for name in RECIPES for setting in settings(find(name))}
    found = {name for name in names if any(word in RETIRED for word in re.split(r"[._]", name))}
    found |= names & RETIRED_SETTINGS
    found |= {name for name in names if name.partition(".")[0] in RETIRED_SECTIONS}
    report(sorted(found))


def test_no_docstring_begins_in_the_middle_of_a_sentence():
    report([line for path in SOURCES for line in bad_beginnings(path)])


def test_what_follows_in_a_sequence_comes_after_and_not_behind():
    found = [line for path in SOURCES for line in behind_in_code(path)]
    for page in PAGES:
        for number, line in prose_lines(page.read_text()):
            if re.search(r"\bbehind\b", line) and line.strip() not in BEHIND_ALLOWED:
                found.append(f"{place_in(page, number)} {line.strip()}")
    report(found)


# Markdown ---------------------------------------------------------------------------------------

LIST_ITEM = re.compile(r"^\s*(?:[-*+]|\**\d+\.)\s+")


def prose_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of Markdown that hold prose, without code, tables, headings, comments and pictures.

    Inline code is replaced by a word, and links by their text.
    """
    in_code = False
    for number, line in enumerate(text.splitlines(), start=1):
        if line.lstrip().startswith(("```", "~~~")):
            in_code = not in_code
            continue
        is_indented_code = line.startswith("    ") and not LIST_ITEM.match(line)
        is_other = line.lstrip().startswith(("|", "#", "<", "![")) or not line.strip()
        if in_code or is_indented_code or is_other:
            continue
        line = re.sub(r"``.+?``|`[^`]*`", "code", line)
        yield number, re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", line)


def sentences_in(line: str) -> list[str]:
    """Split a line after `.`, `!` or `?` where a new sentence begins."""
    line = re.sub(
        r"\b(e\.g|i\.e|et al|cf|vs|etc|Fig|Eq|Sec|No|pp?)\.", r"\1", LIST_ITEM.sub("", line)
    )
    return [
        part
        for part in re.split(r"(?<=[.!?])[\"”’')*_]*\s+(?=[\"“‘(*_]*[A-ZÀ-Þ0-9])", line)
        if part
    ]


def ends_a_sentence(line: str) -> bool:
    return bool(re.search(r"[.!?:;…—|][\"”’')*_\]]*\s*$", line))


def one_sentence_a_line(text: str) -> list[tuple[int, str]]:
    """Return the lines that hold more than one sentence, or that end within one."""
    wrong, lines = [], list(prose_lines(text))
    next_lines = dict(lines)
    for number, line in lines:
        following = next_lines.get(number + 1)
        continues = following is not None and not LIST_ITEM.match(following)
        if len(sentences_in(line)) > 1 or (continues and not ends_a_sentence(line)):
            wrong.append((number, line.strip()))
    return wrong


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("One sentence.\nAnother one.\n", []),
        ("One sentence. Another one.\n", [1]),
        ("A sentence that goes\non here.\n", [1]),
        ("* An item\n* with another item\n\n    code. Code.\n", []),
        ("* An item. And more.\n", [1]),
        ("**1. A bold heading.**\nA sentence.\n", []),
        ("- An item.\n  Its second sentence.\n", []),
        ("```\nno. Prose.\n```\n| a. B | c |\n# A. Heading\n", []),
        ("See [this. One](page.md) and `a. B`, e.g. Here et al. 2024.\n", [1]),
        ("About 3.5 of 10 (Smith et al. 2024), e.g. This.\n", []),
        ("Is it (so it is). It is.\n", [1]),
    ],
)
def test_more_than_one_sentence_on_a_line_is_found(text, lines):
    assert [number for number, _ in one_sentence_a_line(text)] == lines


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_markdown_has_one_sentence_a_line(page):
    report([f"{number}: {line}" for number, line in one_sentence_a_line(page.read_text())])


@pytest.mark.parametrize(
    ("identifier", "words"),
    [
        ("snake_case", ["snake", "case"]),
        ("CamelCase", ["camel", "case"]),
        ("_HTTPServer2", ["http", "server"]),
        ("x_BTD", ["x", "btd"]),
    ],
)
def test_identifiers_are_split_into_words(identifier, words):
    assert words_of(identifier) == words


@pytest.mark.parametrize(
    "code",
    [
        "def reach(): ...",
        "def draw_reach(): ...",
        "told = 1",
        "class RowListing: ...",
        "def f(subject): ...",
        "self.spread = 1",
        "for tap in taps: ...",
        "import abacist as exhibit",
        "average_decay = 1",
    ],
)
def test_a_retired_word_is_found(code, tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    (tmp_path / "module.py").write_text(code)
    assert retired_identifiers(tmp_path / "module.py")
