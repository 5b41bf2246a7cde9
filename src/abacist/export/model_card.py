"""The model card, which the Hub shows: what the model calculates, what is proved and measured, how to use it."""

import json
import re
from dataclasses import replace

from abacist import __version__, extensions
from abacist.export.exportable import Exportable
from abacist.reports import run_records
from abacist.reports.repeat_command import command
from abacist.reports.tables import Table, markdown, number, score_table
from abacist.runs.run import Run

_USE = """\
## Use

```python
from transformers import AutoModelForCausalLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("NAME", trust_remote_code=True)
model = AutoModelForCausalLM.from_pretrained("NAME", trust_remote_code=True)
line = tokenizer({prompt}, return_tensors="pt")
print(tokenizer.decode(model.generate(**line)[0], skip_special_tokens=True))  # {written}
```

Replace `NAME` by the name of this repository, or by the path of this folder.
A line is written as the model was trained to read it: {notation}
`modeling_abacist.py` is the whole model, and needs no package but transformers and PyTorch.
"""

_LOAD = """\
## The run

The folder `run` holds the training run with its settings, scores and certificate.
With abacist installed, `abacist.load("hf://USER/NAME")` downloads and loads it.
"""


def card(exportable: Exportable, *, is_transformers: bool = True, has_run: bool = False) -> str:
    """Return the model card of a run, as Markdown.

    Args:
        exportable: the run.
        is_transformers: whether the folder can be loaded by transformers.
        has_run: whether the folder holds the run itself.
    """
    run = exportable.run
    parts = [
        _front_matter(is_transformers),
        f"# {_plain(run.recipe.name)}\n",
        f"A transformer with {run.model.num_parameters:,} parameters {_purpose(run)} "
        f"abacist {__version__}.\n",
        _claim(exportable),
        _use(exportable) if is_transformers else "",
        _LOAD if has_run else "",
        _measured(exportable),
        _origin(exportable),
        _citation(exportable),
    ]
    return "\n".join(part for part in parts if part)


def _front_matter(is_transformers: bool) -> str:
    library = "library_name: transformers\npipeline_tag: text-generation\n"
    return f"---\n{library if is_transformers else ''}tags:\n- abacist\n- arithmetic\n---\n"


def _purpose(run: Run) -> str:
    # The weights of a run of 0 steps may come from a training of another kind (studies/smallest_adder.py).
    return "that was trained on arithmetic with" if run.step else "for arithmetic, made with"


def _claim(exportable: Exportable) -> str:
    certificate = exportable.certificate
    if certificate is None:
        return (
            "**Not certified:** it may err.\n"
            f"The reason is: {_plain(exportable.shared_objection).rstrip('.')}.\n"
        )
    margin = number(certificate.smallest_margin, ".2f")
    return (
        f"**Certified:** it {exportable.run.task.claim}.\n"
        f"`abacist prove` checked {certificate.neighbourhoods:,} neighbourhoods, of which "
        f"{certificate.wrong:,} are wrong; the smallest margin is {margin} logits, "
        f"{certificate.rounding}.\n"
    )


def _use(exportable: Exportable) -> str:
    run = exportable.run
    problem = run.task.example
    format = run.format
    lines = format.prompt(run.task.parse([problem]))
    start = "<start>" if "<start>" in format.vocabulary.tokens else ""
    prompt = format.vocabulary.decode(lines.ids[0].tolist()).removeprefix(start)
    text = run.generate(problem).replace("<end>", "")
    added = "\nThe tokenizer adds the start token." if start else ""
    return _USE.format(
        prompt=json.dumps(prompt),
        written=prompt + text,
        notation=f"`{problem}` is `{prompt}`.{added}",
    )


def _measured(exportable: Exportable) -> str:
    """Return a table of all sections of the scorecard that speak of these weights."""
    records = run_records.read(exportable.run.directory, exportable.run.identity)
    tables = [
        f"### {_plain(section.title)}\n\n{markdown(_escaped(score_table('', section.rows)))}\n"
        for section in records.sections.values()
        if section.rows
    ]
    if not tables:
        scoring = extensions.command("score", exportable.run.path.name, record=records.run)
        return f"## Measured\n\nThis model was never scored: `{scoring}` does it.\n"
    note = "Intervals are 95 % Wilson intervals; margins are in logits.\n"
    return "\n".join(["## Measured\n", note, *tables])


def _origin(exportable: Exportable) -> str:
    run = exportable.run
    records = run_records.read(run.directory, run.identity)
    repeat = command(run.recipe, records.run)
    lines = [
        "## Origin\n",
        "| | |\n|---|---|",
        f"| recipe | {_plain(run.recipe.name)} |",
        f"| seed | {run.seed} |",
        f"| steps | {run.step:,} |",
        f"| SHA-256 of `model.safetensors` | `{exportable.weights_sha256}` |",
    ]
    if exportable.extensions:
        lines.append(
            f"| extensions that do not travel | {_plain(', '.join(exportable.extensions))} |"
        )
    if repeat is not None:
        # Nothing in an indented line of code means anything in Markdown.
        lines.append(f"\nTo train it again:\n\n    {_one_line(repeat)}")
    return "\n".join(lines) + "\n"


def _citation(exportable: Exportable) -> str:
    return (
        "## Citation\n\n```bibtex\n@software{abacist,\n"
        "  title = {abacist: transformers that are proved to calculate},\n"
        "  author = {{The abacist authors}},\n"
        f"  version = {{{__version__}}},\n  year = {{2026}},\n"
        f"  note = {{Model with the SHA-256 {exportable.weights_sha256}}}\n}}\n```\n"
    )


def _plain(text: str) -> str:
    """Return text from a run's directory, escaped where it would mean something in Markdown or HTML."""
    return re.sub(r"[\\`|<>*\[\]&]", r"\\\g<0>", _one_line(text))


def _one_line(text: str) -> str:
    return "".join(c for c in text if c.isprintable())


def _escaped(table: Table) -> Table:
    groups = [[[_plain(cell) for cell in row] for row in group] for group in table.groups]
    return replace(table, groups=groups)
