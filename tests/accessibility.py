"""Accessibility of a page that is open in a browser."""


def violations(page) -> list[str]:
    """Return what axe-core finds against WCAG of levels A and AA."""
    from axe_playwright_python.sync_playwright import Axe

    tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]
    results = Axe().run(page, options={"runOnly": {"type": "tag", "values": tags}})
    return [
        f"{found['id']}: {node['html'][:200]} {node.get('failureSummary', '')[:300]}"
        for found in results.response["violations"]
        for node in found["nodes"]
    ]
