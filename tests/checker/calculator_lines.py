"""Lines of the calculators: those of the package, and those that a checker continues."""

from abacist.recipes import find


def annotated(name, problems):
    """The lines of a recipe: for each problem, its tokens and their coordinates by name."""
    recipe = find(name)
    task, form = recipe.task.build(), recipe.format.build(recipe.task)
    for problem in problems:
        asked = task.parse([problem])
        tokens = form.write(asked, task.answer(asked))
        coordinates = {name: getattr(tokens, name)[0].tolist() for name in ("place", "row", "step")}
        yield problem, [form.vocabulary.tokens[i] for i in tokens.ids[0].tolist()], coordinates


def written_as(calculation, problem, texts):
    """The line of a problem with these texts after its prompt, and how many of them are the prompt's."""
    line = calculation.prompt(problem)
    length = len(line)
    for text in texts[length:]:
        line.append(calculation.next(line, text))
    return line, length
