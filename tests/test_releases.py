"""What a release says about itself: its version, its changelog entry and its citation."""

import re
from datetime import date
from pathlib import Path

import abacist

ROOT = Path(__file__).parents[1]


def test_the_citation_has_the_version_and_license_of_the_package():
    citation = (ROOT / "CITATION.cff").read_text()
    values = dict(re.findall(r"^([a-z-]+): (.+)$", citation, flags=re.MULTILINE))
    assert values["version"] == abacist.__version__
    assert values["license"] == "MIT"
    assert {"cff-version", "message", "title"} <= set(values)
    assert re.search(r"^authors:\n  - name: ", citation, flags=re.MULTILINE)


def test_every_release_has_a_dated_entry_in_the_changelog_newest_first():
    titles = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)
    assert len(titles) == len(set(titles))
    releases = [title for title in titles if title != "Unreleased"]
    entries = [
        re.fullmatch(r"(\d+)\.(\d+)\.(\d+) – (\d{4}-\d\d-\d\d)", title) for title in releases
    ]
    assert None not in entries
    numbers = [tuple(map(int, entry.groups()[:3])) for entry in entries]
    assert numbers == sorted(numbers, reverse=True)
    for entry in entries:
        date.fromisoformat(entry[4])
    assert titles[0] == "Unreleased" or titles[0].startswith(f"{abacist.__version__} ")
