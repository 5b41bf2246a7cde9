"""Accessibility of a page that is open in a browser."""


def violations(page) -> list[str]:
    """Return what axe-core finds against WCAG of levels A and AA."""
    return _found(page, {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]})


def violations_of_contrast(page) -> list[str]:
    """Return texts with too little contrast: all that can differ between a light and a dark page."""
    return _found(page, {"type": "rule", "values": ["color-contrast"]})


def _found(page, run_only: dict[str, object]) -> list[str]:
    from axe_playwright_python.sync_playwright import Axe

    results = Axe().run(page, options={"runOnly": run_only})
    return [
        f"{found['id']}: {node['html'][:200]} {node.get('failureSummary', '')[:300]}"
        for found in results.response["violations"]
        for node in found["nodes"]
    ]
