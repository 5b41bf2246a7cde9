"""The documentation as a site: complete, without a broken link, and without a request to elsewhere."""

import os
import re
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from accessibility import violations, violations_of_contrast

ROOT = Path(__file__).parents[1]

LOADED = {("a", "href"): False, ("link", "href"): True}
"""Whether a browser loads an address of its own accord; every other one that stands in a page is."""

CHECKED_PAGES = ("index.html", "calculator.html", "docs/positions.html")
"""The entrance, the embedded page, and a document with a picture, code and a table."""


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """The built site; skipped where its tools cannot be installed, unless ABACIST_NEEDS_SITE is set."""
    installed = subprocess.run(
        ["make", ".venv-docs/installed"], cwd=ROOT, capture_output=True, text=True
    )
    if installed.returncode:
        missing = f"the tools of site/requirements.txt cannot be installed: {installed.stderr}"
        if os.environ.get("ABACIST_NEEDS_SITE"):
            pytest.fail(missing)
        pytest.skip(missing)
    out = tmp_path_factory.mktemp("docs")
    # The build itself fails at a warning.
    built = subprocess.run(
        [ROOT / ".venv-docs" / "bin" / "python", "site/build.py", "--out", out],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    assert built.returncode == 0, built.stdout + built.stderr
    return out / "site"


class Page(HTMLParser):
    """The anchors of a page, the addresses it names, and whether each is loaded with it."""

    def __init__(self, path: Path):
        super().__init__()
        self.anchors: set[str] = set()
        self.addresses: list[tuple[str, bool]] = []
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("id", "name"):
                self.anchors.add(value)
            elif name in ("href", "src", "action", "poster", "data", "srcset") and value:
                self.addresses.append((value, LOADED.get((tag, name), True)))


@pytest.fixture(scope="module")
def pages(site) -> dict[Path, Page]:
    return {path: Page(path) for path in site.rglob("*.html")}


def test_every_link_of_the_site_leads_to_a_page_and_an_anchor(site, pages):
    anchors = {str(path): page.anchors | {"__top"} for path, page in pages.items()}
    files = {str(path) for path in site.rglob("*") if path.is_file()}
    broken = []
    for path, page in pages.items():
        # The page of a missing address stands at the root, wherever it is shown.
        folder = site if path.name == "404.html" else path.parent
        for address in {address for address, _ in page.addresses}:
            parts = urlsplit(address)
            if parts.scheme:
                continue
            target = os.path.normpath(folder / unquote(parts.path).lstrip("/"))
            target = target if parts.path else str(path)
            target = os.path.join(target, "index.html") if os.path.isdir(target) else target
            fragment = unquote(parts.fragment)
            if target not in files or (
                fragment and fragment not in anchors.get(target, {fragment})
            ):
                broken.append((str(path.relative_to(site)), address))
    assert broken == []


def test_no_page_or_style_of_the_site_loads_anything_from_elsewhere(site, pages):
    loaded = {
        address
        for page in pages.values()
        for address, is_loaded in page.addresses
        if is_loaded and urlsplit(address).scheme not in ("", "data")
    }
    assert loaded == set()
    for path in site.rglob("*.css"):
        addresses = re.findall(r"(?:url\(|@import\s*)[\"']?([^\"')]*)", path.read_text())
        assert all(not address or address.startswith("data:") for address in addresses), path


def test_every_document_and_every_module_has_its_page(site):
    for document in (ROOT / "docs").rglob("*.md"):
        name = document.relative_to(ROOT).as_posix().replace("README.md", "overview.md")
        assert (site / name).with_suffix(".html").is_file(), name
    for module in ("index", "tasks/index", "tasks/digits", "certificates/column_addition"):
        assert (site / "api" / f"{module}.html").is_file()
    digits = (site / "api" / "tasks" / "digits.html").read_text()
    assert "Return the sums of two digit tensors of equal shape" in digits
    assert ">>>" not in re.sub(r"<pre.*?</pre>", "", digits, flags=re.DOTALL)


def test_every_document_is_in_the_navigation():
    configuration = (ROOT / "site" / "zensical.toml").read_text()
    for document in (ROOT / "docs").rglob("*.md"):
        name = document.relative_to(ROOT).as_posix().replace("README.md", "overview.md")
        assert f'"{name}"' in configuration, f"add {name} to nav in site/zensical.toml"


def test_the_embedded_page_and_the_search_work_without_a_server(site, browser):
    for scheme, paper in (("light", "rgb(252, 251, 248)"), ("dark", "rgb(18, 22, 28)")):
        context = browser.new_context(color_scheme=scheme, reduced_motion="reduce")
        page, complaints = context.new_page(), []
        page.on("console", lambda message, kept=complaints: kept.append(message.text))
        page.on("pageerror", lambda error, kept=complaints: kept.append(str(error)))
        page.on("request", lambda request, kept=complaints: kept.append(request.url))
        page.goto((site / "calculator.html").as_uri())
        calculator = page.frame_locator("iframe.calculator")
        calculator.locator("#problem").fill("99+1")
        calculator.get_by_role("button", name="Calculate").click()
        assert "✓ right" in calculator.locator("#answer").inner_text()
        background = "getComputedStyle(document.body).backgroundColor"
        assert page.frames[1].evaluate(background) == paper
        page.goto((site / "docs" / "glossary.html").as_uri())
        page.keyboard.press("Control+k")
        page.locator("input:focus").wait_for()
        page.keyboard.type("receptive field", delay=50)
        page.locator("a[href*='certificates/receptive_fields.html']").first.wait_for()
        assert [kept for kept in complaints if not kept.startswith("file:")] == []
        context.close()


def test_pages_fit_a_phone_and_a_desk(site, browser):
    page = browser.new_page()
    for name in ("index.html", "docs/results.html", "api/tasks/digits.html"):
        page.goto((site / name).as_uri())
        for width in (390, 820, 1440):
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate("document.documentElement.scrollWidth") <= width, (name, width)
    page.close()


def test_pages_are_accessible_in_light_and_dark(site, browser):
    for scheme, found in (("light", violations), ("dark", violations_of_contrast)):
        page = browser.new_page(color_scheme=scheme, reduced_motion="reduce")
        for name in CHECKED_PAGES:
            page.goto((site / name).as_uri())
            assert found(page) == [], (name, scheme)
        page.close()
