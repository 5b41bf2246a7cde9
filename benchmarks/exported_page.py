"""How long an exported page takes to check its own proof in Chromium.

    python benchmarks/exported_page.py RUN

Processor seconds count all processes of the browser, and do not depend on what else the machine does.
Needs Chromium on the PATH and `pip install "abacist[test]"`.
"""

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import CDPSession, sync_playwright

import abacist
from abacist.export import exportable, html

TARGET_SECONDS = {"add": 10.0}
"""Longest time wanted on two quiet cores, by recipe; others have more neighbourhoods and wider models."""


def main() -> int:
    """Check the proof of a run's page once; return exit code 1 if it is refused or takes too long."""
    parser = argparse.ArgumentParser(description="How long a page takes to check its own proof.")
    parser.add_argument("run", metavar="RUN", help="a run whose page is measured")
    run = abacist.load(parser.parse_args().run)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        page_file = Path(folder) / "page.html"
        page_file.write_text(html.page(exportable.of_run(run, "html")), encoding="utf-8")
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = browser.new_page()
        page.goto(page_file.as_uri())
        session = browser.new_browser_cdp_session()
        begin, spent = time.perf_counter(), processor_seconds(session)
        result = page.evaluate("window.abacist.check()")
        seconds, spent = time.perf_counter() - begin, processor_seconds(session) - spent
        browser.close()
    target = TARGET_SECONDS.get(run.recipe.name)
    print(
        f"{run.recipe.name}: {result['neighbourhoods']:,} neighbourhoods, {result['wrong']:,} wrong, "
        f"in {spent:.1f} processor seconds and {seconds:.1f} seconds of the clock"
        + ("" if target is None else f" (at most {target:.0f} wanted on two quiet cores)")
    )
    return 0 if result["certified"] and (target is None or spent <= target) else 1


def processor_seconds(session: CDPSession) -> float:
    """Return the processor time of all processes of a browser so far."""
    processes = session.send("SystemInfo.getProcessInfo")["processInfo"]
    return float(sum(process["cpuTime"] for process in processes))


if __name__ == "__main__":
    sys.exit(main())
