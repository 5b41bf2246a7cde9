"""`abacist report`: a run as one HTML file."""

import argparse
import json
from pathlib import Path

from abacist.cli import named_run
from abacist.cli.arguments import Parser
from abacist.errors import UserError
from abacist.runs.directory import RunDirectory


def run(arguments: list[str]) -> int:
    """Return exit code 0 if the report was written, whatever the run is worth."""
    parsed = make_parser().parse(arguments)
    check_html("--out", parsed.out)
    if named_run.is_group(parsed.run):
        return _report_group(parsed)

    from abacist.reports import html, run_records
    from abacist.reports.run_report import run_report

    run_directory = named_run.find(parsed.run, parsed.checkpoint)
    damages = (
        []
        if run_directory.attention.exists()
        else _store_attention(run_directory, parsed.checkpoint)
    )
    records = run_records.read(run_directory)
    path = Path(parsed.out) if parsed.out else run_directory.report
    page = run_report(records)
    html.write(page, path)
    damages = records.damages + damages
    if parsed.json:
        data = {
            "run": str(run_directory.path),
            "report": str(path),
            "bytes": len(page.encode(errors="replace")),
        }
        print(json.dumps(data | {"damages": damages}))
        return 0
    for damage in damages:
        print(f"Left out: {damage}")
    print(f"Report: {path} ({len(page.encode(errors='replace')) / 1000:,.0f} kB)")
    return 0


def make_parser() -> Parser:
    """Return the parser of the command's arguments."""
    parser = Parser(
        "report",
        "Write all records of a run into one HTML file that opens without a network: scores, curves,\n"
        "failures, settings, and how to repeat it. Nothing is scored, so run abacist score first.\n"
        "Many seeds, or a sweep, become one page about all of their runs.",
    )
    parser.add_run()
    parser.add_checkpoint()
    parser.add_argument("--out", metavar="FILE.html", help="default: report.html in the run")
    parser.add_json()
    return parser


def _report_group(parsed: argparse.Namespace) -> int:
    """Write the page of many seeds or of a sweep, and print its table."""
    from abacist.reports import html, sweep_views, terminal
    from abacist.reports.sweep_report import sweep_report
    from abacist.sweeps import sweep
    from abacist.sweeps.plan import PAGE

    if parsed.checkpoint != "last":
        raise UserError(
            f"--checkpoint is for one run, and {parsed.run} holds many. Leave out --checkpoint."
        )
    directory = Path(parsed.run)
    results = sweep.read(directory)
    path = Path(parsed.out) if parsed.out else directory / PAGE
    page = sweep_report(results, directory)
    html.write(page, path)
    if parsed.json:
        data = {
            "run": parsed.run,
            "report": str(path),
            "bytes": len(page.encode(errors="replace")),
            "damages": [],
        }
        print(json.dumps(data | {"sweep": results.to_json()}))
        return 0
    terminal.console().print(terminal.Shown(sweep_views.tables(results)), soft_wrap=True)
    print(f"Report: {path} ({len(page.encode(errors='replace')) / 1000:,.0f} kB)")
    return 0


def _store_attention(run_directory: RunDirectory, checkpoint: str) -> list[str]:
    """Measure the mean attention of a run once, for this report and all later ones.

    Returns the reason if that is impossible, such as damaged weights.
    """
    from abacist.runs.run import load

    try:
        load(run_directory.path, checkpoint=checkpoint).save_attention()
    except UserError as error:
        return [f"attention by place: {error}"]
    return []


def check_html(option: str, path: str | None) -> None:
    """Raise `UserError` unless the file name ends like that of a page."""
    if path is not None and Path(path).suffix not in (".html", ".htm"):
        raise UserError(f"{option} writes HTML, got {path!r}. Type {option} report.html.")
