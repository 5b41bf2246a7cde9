"""Export of problems as JSON lines, for use outside abacist.

    {"problem": "123+45", "answer": "168", "prompt": "<start>321+54=", "target": "861<end>", "split": "test"}

Integers are strings, because most readers cannot hold 100 digits otherwise. A manifest next to the
file says how to generate the same file again.
"""

import contextlib
import gzip
import hashlib
import io
import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO

import torch

from abacist import files, generators
from abacist.data.config import SplitConfig, SplitName
from abacist.data.split import draw_from_split, in_split, split_names
from abacist.errors import RunError
from abacist.formats.annotated import Field
from abacist.formats.format import Format
from abacist.formats.pieces import selected_tokens
from abacist.tasks.problems import Problems
from abacist.tasks.space import Space
from abacist.tasks.task import Task

_PROBLEMS_PER_BLOCK = 4_096
_INDICES_PER_BLOCK = 16_384

GENERATOR_VERSION = 1
"""Version of the generator, which changes whenever the same seed gives other problems."""


def drawn_problems(
    task: Task, config: SplitConfig, split: SplitName, num_problems: int, seed: int
) -> Iterator[Problems]:
    """Yield blocks of independently drawn problems of one split, in which short ones may repeat."""
    for block, begin in enumerate(range(0, num_problems, _PROBLEMS_PER_BLOCK)):
        generator = generators.generator(seed, "export", split, block)
        shapes = task.draw_shapes(_PROBLEMS_PER_BLOCK, generator)
        problems = draw_from_split(task, shapes, split, config, generator)
        yield problems[: num_problems - begin]


def all_problems(space: Space, config: SplitConfig, split: SplitName | None) -> Iterator[Problems]:
    """Yield every problem of a space once, in order, in blocks; only those of `split` unless it is None."""
    for begin in range(0, len(space), _INDICES_PER_BLOCK):
        index = torch.arange(begin, min(begin + _INDICES_PER_BLOCK, len(space)))
        problems = space.problems(index)
        if split is not None:
            problems = problems[in_split(problems, split, config).nonzero().squeeze(1)]
        yield problems


def exported_records(
    task: Task,
    format: Format,
    config: SplitConfig,
    blocks: Iterable[Problems],
    generator: torch.Generator,
) -> Iterator[dict[str, str]]:
    """Yield each problem as it is exported; random choices of the format use the generator."""
    decode = format.vocabulary.decode
    for problems in blocks:
        answer = task.answer(problems)
        lines = format.write(problems, answer, generator)
        visible = lines.field != Field.PADDING
        # An encoder sees the whole line and writes labels at the targets.
        prompt = visible & ~lines.target if lines.labels is None else visible
        labels = lines.ids if lines.labels is None else lines.labels
        for expression, result, prompt_text, target_text, split in zip(
            task.expressions(problems),
            answer.texts(),
            map(decode, selected_tokens(lines.ids, prompt)),
            map(decode, selected_tokens(labels, lines.target)),
            split_names(problems, config),
            strict=True,
        ):
            yield {
                "problem": expression,
                "answer": result,
                "prompt": prompt_text,
                "target": target_text,
                "split": split,
            }


def export(
    lines: Iterator[dict[str, str]],
    path: Path,
    manifest: dict[str, object],
    on_progress: Callable[[int], None],
) -> Path:
    """Write records to a file and its manifest, and return the manifest's path.

    Args:
        lines: the records.
        path: the file, which must not exist; it is compressed with gzip if its name ends in .gz.
        manifest: further entries of the manifest.
        on_progress: called with the number of records written so far.

    Raises:
        RunError: the file exists or cannot be written.
    """
    if path.exists():
        raise RunError(f"{path} exists already. Type another --out, or remove it first.")
    count = 0
    with files.new_file(path) as file, _text(file, compressed=path.suffix == ".gz") as text:
        for count, record in enumerate(lines, start=1):
            text.write(json.dumps(record) + "\n")
            on_progress(count)
    with files.os_errors_as_run_errors("read", path), open(path, "rb") as written:
        checksum = hashlib.file_digest(written, "sha256").hexdigest()
    manifest_path = path.with_name(path.name + ".manifest.json")
    files.write_json(
        manifest_path,
        {
            "file": path.name,
            "num_problems": count,
            "sha256": checksum,
            "generator_version": GENERATOR_VERSION,
            "torch": torch.__version__,
            **manifest,
        },
    )
    return manifest_path


@contextlib.contextmanager
def _text(file: IO[bytes], compressed: bool) -> Iterator[IO[str]]:
    """Open a text file that writes to a binary file, which stays open."""
    if compressed:
        # Without name and time, the same problems give the same bytes.
        packed = gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0)
        with packed, io.TextIOWrapper(packed, encoding="ascii", newline="\n") as text:
            yield text
        return
    plain = io.TextIOWrapper(file, encoding="ascii", newline="\n")
    try:
        yield plain
    finally:
        plain.detach()
