"""`abacist recipes`: list the recipes, or show one with all its settings."""

import json
from pathlib import Path

from abacist import extensions, recipes
from abacist.cli import setting_help
from abacist.cli.arguments import Parser
from abacist.configuration import settings, to_json


def run(arguments: list[str]) -> int:
    """Return exit code 0."""
    parsed = make_parser().parse(arguments)
    if parsed.name is None:
        _list(parsed.json, parsed.csv)
    else:
        _show(parsed.name, parsed.json, parsed.csv)
    return 0


def make_parser() -> Parser:
    """Return the parser of the command's arguments."""
    parser = Parser("recipes", "List the recipes, or show one with all its settings.")
    parser.add_argument("name", nargs="?", metavar="NAME", help="one recipe")
    parser.add_json()
    parser.add_csv()
    return parser


def _list(as_json: bool, csv: Path | None) -> None:
    rows = [{"name": name, **_statements(name)} for name in recipes.RECIPES]
    if csv:
        from abacist.reports import csv_records

        csv_records.write(csv, rows)
    if as_json:
        print(json.dumps(rows))
        return
    for row in rows:
        print(row["name"])
        for line in (row["summary"], *row["promise"].partition("\n\n")[0].splitlines()):
            print(setting_help.fill(line, " " * 4))
    show, train = extensions.command("recipes", "NAME"), extensions.command("train", "NAME")
    last = f"{show} shows every setting; {train} trains."
    print(f"\n{setting_help.fill(last)}")


def _show(name: str, as_json: bool, csv: Path | None) -> None:
    recipe = recipes.find(name)
    if csv:
        from abacist.reports import csv_records

        csv_records.write(csv, csv_records.of_settings(settings(recipe)))
    if as_json:
        print(json.dumps({"name": name, **_statements(name), "settings": to_json(recipe)}))
        return
    statements = _statements(name)
    print(setting_help.fill(f"{name}: {statements['summary']}"))
    print(setting_help.paragraphs(statements["promise"]))
    print(f"\n{setting_help.all_settings(recipe)}")


def _statements(name: str) -> dict[str, str]:
    summary, promise = recipes.promise(name)
    return {"summary": summary, "promise": promise}
