"""`abacist model`: the components of the model of a recipe."""

import json
from dataclasses import asdict

from abacist import recipes
from abacist.cli.arguments import Parser, setting_names, split_off_settings
from abacist.configuration import override, to_json

_SAMPLE = 1_000


def run(arguments: list[str]) -> int:
    """Return exit code 0."""
    changes, options = split_off_settings(arguments)
    parsed = make_parser().parse(options, setting_names(arguments))
    recipe = override(recipes.find(parsed.recipe), changes)

    from abacist import generators
    from abacist.models.parameter_count import BYTES_PER_PARAMETER, blocks, components
    from abacist.reports import csv_records
    from abacist.runs.run import build_model, build_problems

    task, format = build_problems(recipe)
    model = build_model(recipe)
    generator = generators.generator(0, "model")
    problems = task.draw(task.draw_shapes(_SAMPLE, generator), generator)
    lines = format.write(problems, task.answer(problems))
    tokens = round(float(lines.lengths.double().mean()))
    predicting = round(float(lines.target.sum(dim=1).double().mean()))
    vocabulary = len(format.vocabulary)
    parts = components(recipe.model, vocabulary, tokens, predicting)
    total = sum(part.parameters for part in parts)
    if total != model.num_parameters:
        raise AssertionError(f"{total} parameters by formula, {model.num_parameters} in the model")
    work = sum(part.multiply_adds for part in parts)
    if parsed.csv:
        csv_records.write(parsed.csv, [asdict(part) for part in parts])
    if parsed.json:
        data = {
            "recipe": recipe.name,
            "parameters": total,
            "multiply_adds": work,
            "vocabulary": vocabulary,
            "tokens": tokens,
            "predicted_tokens": predicting,
            "bytes": BYTES_PER_PARAMETER * total,
            "components": [asdict(part) for part in parts],
            "blocks": [asdict(block) | {"bytes": block.bytes} for block in blocks(parts)],
            "model": to_json(recipe.model),
        }
        print(json.dumps(data))
        return 0
    from abacist.cli import show
    from abacist.reports import terminal

    console = terminal.console()
    console.print(show.components(parts, tokens, predicting))
    console.print()
    console.print(show.blocks(blocks(parts)))
    console.print(
        f"{total:,} parameters in {BYTES_PER_PARAMETER * total:,} bytes, "
        f"{work:,} multiply-adds per problem"
    )
    return 0


def make_parser() -> Parser:
    """Return the parser of the command's arguments."""
    parser = Parser(
        "model",
        "Show the parameters and multiply-adds of a recipe's model by component, and its shapes and\n"
        "bytes by block.",
        "Settings of the recipe may be added, such as --model.width 64 or --model.positions rope.",
    )
    parser.add_argument("recipe", metavar="RECIPE", help="a name from abacist recipes")
    parser.add_json()
    parser.add_csv()
    return parser
