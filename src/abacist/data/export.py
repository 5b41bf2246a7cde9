"""Problems as JSON lines, for readers that are not abacist.

    {"problem": "123+45", "answer": "168", "prompt": "<start>321+54=", "target": "861<end>", "split": "test"}

Integers are strings: most readers cannot hold 100 digits otherwise. Beside the file stands a
manifest that says how to make the same file again.
"""

import gzip
import hashlib
import io
import json
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO

import torch
from torch import Tensor

from abacist import files, generators
from abacist.data.config import SplitConfig, SplitName
from abacist.data.split import draw_from_split, in_split, split_names
from abacist.errors import RunError
from abacist.formats.annotated import Field
from abacist.formats.format import Format
from abacist.tasks.problems import Problems
from abacist.tasks.space import Space
from abacist.tasks.task import Task
from abacist.vocabulary import Vocabulary

_PROBLEMS_PER_BLOCK = 4_096
_NUMBERS_PER_BLOCK = 16_384

GENERATOR_VERSION = 1
"""Raised whenever the same seed would give other problems."""


def drawn(
    task: Task, config: SplitConfig, split: SplitName, num_problems: int, seed: int
) -> Iterator[Problems]:
    """Problems of one split, drawn independently, in blocks: short ones may come twice."""
    for block, begin in enumerate(range(0, num_problems, _PROBLEMS_PER_BLOCK)):
        generator = generators.generator(seed, "export", split, block)
        shapes = task.draw_shapes(_PROBLEMS_PER_BLOCK, generator)
        problems = draw_from_split(task, shapes, split, config, generator)
        yield problems[: num_problems - begin]


def every(space: Space, config: SplitConfig, split: SplitName | None) -> Iterator[Problems]:
    """Every problem of a space once, in order, in blocks; of one split, or of all."""
    for begin in range(0, len(space), _NUMBERS_PER_BLOCK):
        numbers = torch.arange(begin, min(begin + _NUMBERS_PER_BLOCK, len(space)))
        problems = space.problems(numbers)
        if split is not None:
            problems = problems[in_split(problems, split, config).nonzero().squeeze(1)]
        yield problems


def records(
    task: Task,
    format: Format,
    config: SplitConfig,
    blocks: Iterable[Problems],
    generator: torch.Generator,
) -> Iterator[dict[str, str]]:
    """Problems as they are exported. What the format leaves to chance comes from the generator."""
    for problems in blocks:
        answer = task.answer(problems)
        lines = format.write(problems, answer, generator)
        seen = lines.field != Field.PADDING
        # An encoder sees the whole line, and writes labels at the targets.
        prompt = seen & ~lines.target if lines.labels is None else seen
        labels = lines.ids if lines.labels is None else lines.labels
        for expression, result, asked, target, name in zip(
            task.expressions(problems),
            answer.texts(),
            _texts(lines.ids, prompt, format.vocabulary),
            _texts(labels, lines.target, format.vocabulary),
            split_names(problems, config),
            strict=True,
        ):
            yield {
                "problem": expression,
                "answer": result,
                "prompt": asked,
                "target": target,
                "split": name,
            }


def _texts(ids: Tensor, chosen: Tensor, vocabulary: Vocabulary) -> list[str]:
    """The chosen tokens of every line, one after the other."""
    tokens = vocabulary.tokens
    ends = chosen.sum(dim=1).cumsum(0).tolist()
    stream = ids[chosen].tolist()
    begins = [0, *ends[:-1]]
    return [
        "".join([tokens[i] for i in stream[begin:end]])
        for begin, end in zip(begins, ends, strict=True)
    ]


def export(
    lines: Iterator[dict[str, str]],
    path: Path,
    manifest: dict[str, object],
    on_progress: Callable[[int], None],
) -> Path:
    """Write records to `path` (gzipped if it ends in .gz) and return the manifest's path.

    Records are written as they come, to a temporary neighbour that takes the name at the end;
    refuses a file that exists.
    """
    if path.exists():
        raise RunError(f"{path} exists. Type another --out, or remove it first.")
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    count = 0
    try:
        with open(temporary, "wb") as file, _text(file, compressed=path.suffix == ".gz") as text:
            for count, record in enumerate(lines, start=1):
                text.write(json.dumps(record) + "\n")
                on_progress(count)
        with open(temporary, "rb") as written:
            checksum = hashlib.file_digest(written, "sha256").hexdigest()
        temporary.replace(path)
    except OSError as error:
        raise RunError(f"cannot write {path}: {error.strerror or error}.") from error
    finally:
        temporary.unlink(missing_ok=True)
    beside = path.with_name(path.name + ".manifest.json")
    files.write_json(
        beside,
        {
            "file": path.name,
            "num_problems": count,
            "sha256": checksum,
            "generator_version": GENERATOR_VERSION,
            "torch": torch.__version__,
            **manifest,
        },
    )
    return beside


def _text(file: IO[bytes], compressed: bool) -> IO[str]:
    if not compressed:
        return io.TextIOWrapper(file, encoding="ascii", newline="\n")
    # Neither name nor time inside, so that the same problems give the same bytes.
    packed = gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0)
    return io.TextIOWrapper(packed, encoding="ascii", newline="\n")
