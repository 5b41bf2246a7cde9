"""`abacist report`: a run as one HTML file."""

import json
from pathlib import Path

from abacist.cli.arguments import Parser
from abacist.errors import UserError


def run(arguments: list[str]) -> int:
    """Exit code 0 when written, whatever the run is worth."""
    parser = Parser(
        "report",
        "Write what is recorded of a run into one HTML file that opens without a network: scores,\n"
        "curves, failures, settings, and how to repeat it. It scores nothing, so score first.",
    )
    parser.add_run()
    parser.add_argument("--out", metavar="FILE.html", help="default: report.html in the run")
    parser.add_json()
    parsed = parser.parse(arguments)
    check_html("--out", parsed.out)

    from abacist.reports import html, run_records
    from abacist.reports.run_report import run_report
    from abacist.runs import directory

    found = directory.find(parsed.run)
    left_out = [] if found.attention.exists() else _attention_kept(found.path)
    known = run_records.read(found)
    path = Path(parsed.out) if parsed.out else found.report
    page = run_report(known)
    html.write(page, path)
    if parsed.json:
        told = {"run": str(found.path), "report": str(path), "bytes": len(page.encode())}
        print(json.dumps(told | {"damages": known.damages + left_out}))
        return 0
    for damage in known.damages + left_out:
        print(f"Left out: {damage}")
    print(f"Report: {path} ({len(page.encode()) / 1000:,.0f} kB)")
    return 0


def _attention_kept(path: Path) -> list[str]:
    """Look once at what the heads of a run attend to, for this report and all later ones.

    Gives why where that cannot be.
    """
    from abacist.runs.run import load

    try:
        load(path).save_attention()
    except UserError as error:
        return [f"attention by place: {error}"]
    return []


def check_html(option: str, path: str | None) -> None:
    """Refuse a file that no browser would open as a page."""
    if path is not None and Path(path).suffix not in (".html", ".htm"):
        raise UserError(f"{option} writes HTML, got {path!r}. Type {option} report.html.")
