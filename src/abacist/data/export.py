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
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import torch

from abacist import files, seeds
from abacist.data.config import SplitConfig, SplitName
from abacist.data.split import draw_from_split
from abacist.errors import RunError
from abacist.formats.reversed import ReversedFormat
from abacist.tasks.addition import Addition

_PROBLEMS_PER_BLOCK = 4_096

GENERATOR_VERSION = 1
"""Raised whenever the same seed would give other problems."""


def records(
    task: Addition,
    format: ReversedFormat,
    config: SplitConfig,
    split: SplitName,
    num_problems: int,
    seed: int,
) -> Iterator[dict[str, str]]:
    """Problems of one split, drawn independently: short ones may come twice."""
    for block, begin in enumerate(range(0, num_problems, _PROBLEMS_PER_BLOCK)):
        generator = seeds.generator(seed, "export", split, block)
        lengths = task.draw_lengths(_PROBLEMS_PER_BLOCK, generator)
        problems = draw_from_split(task, lengths, split, config, generator)
        problems = problems[: num_problems - begin]
        answer = task.answer(problems)
        lines = format.write(problems, answer)
        first = lines.target.long().argmax(dim=1).tolist()
        for row, (expression, result, begins, ends) in enumerate(
            zip(
                task.expressions(problems),
                answer.texts(),
                first,
                lines.lengths.tolist(),
                strict=True,
            )
        ):
            ids = lines.ids[row, :ends].tolist()
            yield {
                "problem": expression,
                "answer": result,
                "prompt": format.vocabulary.text(ids[:begins]),
                "target": format.vocabulary.text(ids[begins:]),
                "split": split,
            }


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
