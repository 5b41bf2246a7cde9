"""`abacist recipes`: list the recipes, or show one with all its settings."""

import json

from abacist import recipes
from abacist.cli.arguments import Parser
from abacist.configuration import settings, to_json


def run(arguments: list[str]) -> int:
    """Return exit code 0."""
    parser = Parser("recipes", "List the recipes, or show one with all its settings.")
    parser.add_argument("name", nargs="?", metavar="NAME", help="one recipe")
    parser.add_json()
    parsed = parser.parse(arguments)
    if parsed.name is None:
        _list(parsed.json)
    else:
        _show(parsed.name, parsed.json)
    return 0


def _list(as_json: bool) -> None:
    rows = [{"name": name, **_statements(name)} for name in recipes.RECIPES]
    if as_json:
        print(json.dumps(rows))
        return
    for row in rows:
        print(f"{row['name']:22}{row['summary']}")
        for line in row["promise"].splitlines():
            print(f"{'':22}{line}")
    print("\nabacist recipes NAME shows every setting; abacist train NAME trains.")


def _show(name: str, as_json: bool) -> None:
    recipe = recipes.find(name)
    if as_json:
        print(json.dumps({"name": name, **_statements(name), "settings": to_json(recipe)}))
        return
    print(f"{name}: {_statements(name)['summary']}\n{_statements(name)['promise']}\n")
    for setting in settings(recipe):
        if setting.name != "name":
            print(f"  {'--' + setting.name + ' ' + setting.typed:46}{setting.explanation}")


def _statements(name: str) -> dict[str, str]:
    summary, promise = recipes.promise(name)
    return {"summary": summary, "promise": promise}
