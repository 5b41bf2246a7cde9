"""`abacist completion`: a script by which a shell completes commands, options, recipes and runs.

$ source <(abacist completion bash)
"""

import importlib

from abacist import recipes
from abacist.cli import COMMANDS
from abacist.cli.arguments import Parser, setting_names
from abacist.errors import UserError, nearest

_HOW_TO_LOAD = {
    "bash": "source <(abacist completion bash)",
    "zsh": "source <(abacist completion zsh)",
    "fish": "abacist completion fish | source",
}
"""What to type, or to add to the shell's start file, by shell."""

_OF_RECIPES = ("train", "sweep", "data", "model", "recipes")
"""Commands that take the name of a recipe."""
_WITH_SETTINGS = ("train", "sweep", "data", "model")
_OF_RUNS = ("solve", "score", "look", "play", "compare", "report", "prove", "export", "push")
"""Commands that take a run."""


def run(arguments: list[str]) -> int:
    """Return exit code 0 after printing the script."""
    parsed = make_parser().parse(arguments)
    if parsed.shell not in _HOW_TO_LOAD:
        raise UserError(
            f"completion is for bash, zsh or fish, got {parsed.shell!r}: "
            f"{nearest(parsed.shell, _HOW_TO_LOAD)}"
        )
    print({"bash": _bash, "zsh": _zsh, "fish": _fish}[parsed.shell](), end="")
    return 0


def make_parser() -> Parser:
    """Return the parser of the command's arguments."""
    load = "".join(f"\n  {command}" for command in _HOW_TO_LOAD.values())
    parser = Parser(
        "completion",
        "Print a script by which a shell completes commands, options, recipes and runs.",
        f"To load it, type one of these lines, or add it to the start file of your shell:{load}",
    )
    parser.add_argument("shell", metavar="SHELL", help="bash, zsh or fish")
    return parser


def _option_help(command: str) -> dict[str, str]:
    parser: Parser = importlib.import_module(f"abacist.cli.{command}").make_parser()
    return parser.option_help()


def _words(command: str) -> list[str]:
    """Return all words that can follow a command, without the files and runs of the directory."""
    words = list(_option_help(command))
    if command in _OF_RECIPES:
        words += recipes.RECIPES
    if command in _WITH_SETTINGS:
        words += (f"--{name}" for name in setting_names([]))
    if command in _OF_RUNS:
        words.append("latest")
    if command == "data":
        words += ["show", "export", "check"]
    if command == "completion":
        words += _HOW_TO_LOAD
    return words


def _bash() -> str:
    cases = "\n".join(
        f"            {command}) words='{' '.join(_words(command))}' ;;" for command in COMMANDS
    )
    return f"""\
# Completion of abacist for bash. Load it with: {_HOW_TO_LOAD["bash"]}
_abacist() {{
    local words="" word="${{COMP_WORDS[COMP_CWORD]}}"
    if [ "$COMP_CWORD" -eq 1 ]; then
        words='{" ".join([*COMMANDS, "help"])}'
    else
        case "${{COMP_WORDS[1]}}" in
{cases}
        esac
    fi
    COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o bashdefault -o default -F _abacist abacist
"""


def _zsh() -> str:
    described = " ".join(_quoted(f"{name}:{text}") for name, text in COMMANDS.items())
    cases = "".join(
        f"        {command}) candidates=({' '.join(map(_quoted, _words(command)))}) ;;\n"
        for command in COMMANDS
    )
    return f"""\
#compdef abacist
# Completion of abacist for zsh. Load it with: {_HOW_TO_LOAD["zsh"]}
_abacist() {{
    local -a candidates
    if (( CURRENT == 2 )); then
        candidates=({described})
        _describe command candidates
        return
    fi
    case "$words[2]" in
{cases}    esac
    compadd -- $candidates
    _files
}}
compdef _abacist abacist
"""


def _fish() -> str:
    lines = [f"# Completion of abacist for fish. Load it with: {_HOW_TO_LOAD['fish']}"]
    for name, text in COMMANDS.items():
        lines.append(f"complete -c abacist -n __fish_use_subcommand -a {name} -d {_quoted(text)}")
        condition = f"-n '__fish_seen_subcommand_from {name}'"
        texts = _option_help(name)
        for word in _words(name):
            if not word.startswith("--"):
                lines.append(f"complete -c abacist {condition} -a {word}")
                continue
            described = f" -d {_quoted(texts[word])}" if word in texts else ""
            lines.append(f"complete -c abacist {condition} -l {word[2:]}{described}")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """Return a text in single quotes, for zsh and fish."""
    return "'" + text.replace("'", "\u2019") + "'"
