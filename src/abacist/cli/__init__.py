"""The command `abacist`.

    abacist train add --seed 1 --model.width 64
    abacist solve latest 12+34

There is one module for each command. It has `run(arguments) -> exit code` and is imported only
when the command is used, so that `abacist --help` needs neither torch nor matplotlib. Exit codes:
0 fine, 1 failed, 2 the user can fix it, 130 interrupted.
"""

import importlib
import sys
import warnings
from typing import Any

from abacist.cli import streams
from abacist.errors import (
    AbacistError,
    ConfigurationError,
    NotSaved,
    ProcessLost,
    UserError,
    memory_complaint,
    nearest,
)
from abacist.training.torchrun import launched

COMMANDS = {
    "train": "train a recipe, score the model and try to prove it right",
    "sweep": "train many runs over settings and seeds, with one table of results",
    "solve": "let a trained model solve problems",
    "score": "score a trained model by one suite or many, with intervals",
    "look": "look inside a trained model: attention, attribution, ablation and more",
    "play": "a web page to calculate with a model, look inside and switch heads off",
    "compare": "compare several runs, with intervals of their differences",
    "report": "write a run as one HTML file, which opens without a network",
    "prove": "certify that a model is right on problems of every length",
    "export": "write a model so that it works without this package: a web page, PyTorch, ONNX, transformers",
    "push": "upload a run and its model to the Hugging Face Hub",
    "data": "show, export or check the problems of a recipe",
    "model": "show the parameters and multiply-adds of a recipe's model by component",
    "recipes": "list the recipes, or show one with all its settings",
    "completion": "print a script that completes commands and options in bash, zsh or fish",
    "version": "print the version",
}

_DESCRIPTION = """\
abacist trains small transformers on arithmetic, proves how well they calculate, and shows how.

usage: abacist COMMAND [...]      abacist COMMAND --help explains one

"""


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code.

    Without `arguments`, those of the process are taken, and the process should end afterwards.
    """
    is_whole_process = arguments is None
    streams.prepare()
    with streams.interruptible(is_whole_process):
        try:
            code = _dispatch(sys.argv[1:] if arguments is None else arguments)
            sys.stdout.flush()
        except BrokenPipeError:
            # The reader, such as head, has seen enough.
            streams.abandon_output()
            return 0
        except KeyboardInterrupt:
            streams.complain("interrupted")
            return 130
        except AbacistError as error:
            if _complains(error):
                streams.complain(error)
            return 2 if isinstance(error, UserError) else 1
        except OSError as error:
            name = "output" if error.filename is None else f"{error.filename!s:.200}"
            streams.complain(f"{error.strerror or error}: {name}")
            streams.abandon_output()
            return 1
        except Exception as error:
            if out_of_memory := memory_complaint(error):
                streams.complain(out_of_memory)
                return 1
            from abacist import extensions

            if (complaint := extensions.blamed(error)) is None:
                raise
            streams.complain(complaint)
            return 2
        return code


def _complains(error: AbacistError) -> bool:
    """Whether this process complains of an error that all processes of torchrun meet alike."""
    if isinstance(error, ProcessLost):
        return error.is_noticed_first
    try:
        return launched().is_first_of_machine
    except ConfigurationError:
        # This is the error itself: without its numbers, no process knows of another.
        return True


def _dispatch(arguments: list[str]) -> int:
    if arguments[:1] == ["help"] and len(arguments) > 1:
        arguments = [arguments[1], "--help", *arguments[2:]]
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(_DESCRIPTION + "".join(f"  {name:12}{text}\n" for name, text in COMMANDS.items()))
        return 0
    name, *rest = arguments
    name = "version" if name == "--version" else name
    if name not in COMMANDS:
        raise UserError(f"unknown command {name!r}: {nearest(name, COMMANDS)}")
    if launched().count > 1 and name != "train":
        raise UserError(
            f"torchrun trains one model with several processes, got abacist {name}. "
            f"Type abacist {name} without torchrun."
        )
    unsaved: list[Warning | str] = []

    def show_warning(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        if issubclass(category, NotSaved):
            unsaved.append(message)
        elif launched().is_first_of_machine:
            streams.complain(f"warning: {message}")

    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.simplefilter("always", NotSaved)
        warnings.showwarning = show_warning
        rest = _load_extensions(rest)
        code: int = importlib.import_module(f"abacist.cli.{name}").run(rest)
    # After the result, which is all that is left of it.
    sys.stdout.flush()
    for message in unsaved:
        streams.complain(message)
    return 1 if unsaved else code


def _load_extensions(arguments: list[str]) -> list[str]:
    """Load the extensions of installed packages and of `--extension`; return the other arguments."""
    from abacist import extensions

    others, words = [], iter(arguments)
    sources = []
    for word in words:
        option, equals, source = word.partition("=")
        if option != "--extension":
            others.append(word)
            continue
        source = source if equals else next(words, "")
        if not source:
            raise UserError("--extension needs a Python file or an importable module after it.")
        sources.append(source)
    extensions.load_installed()
    extensions.load_all(sources)
    return others
