"""The certificate in plain words and as a picture.

The picture shows a sum with a window of two columns, and beside it one tile for each neighbourhood:
everything that the window can hold. `page.js` moves the window and lights the tiles of the
neighbourhoods that the sum passes through.
"""

import json
from collections.abc import Sequence

from abacist import extensions
from abacist.app.shown_runs import ShownRun
from abacist.certificates.record import Certificate
from abacist.reports.certificate_picture import tiles
from abacist.reports.html_builder import Markup, code, element, figure, together
from abacist.reports.run_report import headline
from abacist.reports.tables import number, shortened


def certificate_card(shown_run: ShownRun) -> Markup:
    """What is proved about the run with all its parts, what was measured, and the picture."""
    records, proof = shown_run.records, shown_run.records.certificate
    lines: list[Markup] = []
    kind = ""
    if proof is None:
        command = code(extensions.command("prove", str(shown_run.run.path)))
        strong = element("strong", "Not proved.")
        lines.append(
            element(
                "p", strong, " No proof was tried for this run. To try one, type ", command, "."
            )
        )
    elif proof.certified:
        kind = " good"
        strong = element("strong", "✓ Certified, with all parts on:", class_="good")
        lines.append(element("p", strong, f" {proof.reason}"))
    else:
        kind = " bad"
        strong = element("strong", "✗ Not certified:", class_="bad")
        lines.append(element("p", strong, f" {proof.reason}"))
        if proof.counterexample is not None:
            solution = proof.counterexample
            text = f"{solution.problem}={solution.answer_text}, right is {solution.expected}"
            lines.append(element("p", "A problem with a wrong answer: ", code(shortened(text))))
    best = headline(records)
    if best is not None:
        sample, proportion = best
        lines.append(element("p", f"Measured: {proportion} of {sample} right."))
    if proof is not None and proof.certified:
        lines.append(_details(proof))
    parts = [element("div", *lines, class_="verdict" + kind)]
    table = shown_run.neighbourhoods
    if table is not None:
        parts.append(_slideshow(table.sizes))
    return together([element("h2", "Certificate: why every length?"), *parts])


def _details(proof: Certificate) -> Markup:
    """The figures of the proof, folded."""
    margin = number(proof.smallest_margin, ".2f")
    return element(
        "details",
        element("summary", "Details of the proof"),
        element(
            "p",
            f"{proof.neighbourhoods:,} neighbourhoods were checked and {proof.wrong:,} are wrong. "
            f"The smallest margin is {margin} logits, {proof.rounding}.",
        ),
    )


def _slideshow(sizes: Sequence[int]) -> Markup:
    """The moving picture: buttons, the columns around the window, and the tiles."""
    count = sum(sizes)
    return element(
        "div",
        element(
            "p",
            "To write a digit, the model sees only its own column, the one before it, and the digit that "
            f"it has just written. This window of two columns can hold {count:,} different contents, however long "
            "the numbers are. The proof ran the model on each of them, and it was right each time. Every "
            "calculation is a path from tile to tile.",
        ),
        element(
            "p",
            element("button", "▶ Slide the window over the problem", type="button", class_="slide"),
            class_="buttons",
        ),
        element(
            "div",
            element("div", class_="strip", aria_live="polite"),
            figure(
                tiles(sizes),
                f"One tile for each of the {count:,} neighbourhoods. Those that the problem above "
                "passes through are lit; the present one has a ring.",
            ),
            class_="proof",
        ),
        class_="window-over-tiles",
        data_sizes=json.dumps(list(sizes)),
    )
