"""How each digit of a sum or difference follows from its column, in plain words.

>>> explanations(trained_model, problem, 3)  # 58 + 67
['Units: 8 + 7 = 15. Write 5, carry 1.', 'Tens: 5 + 6, plus the carry 1, is 12. Write 2, carry 1.', …]
"""

from abacist.formats.plain import PlainFormat
from abacist.inspection.carries import carries, has_carries
from abacist.scoring.trained_model import TrainedModel
from abacist.tasks.problems import OPERATIONS, Problems

PLACE_NAMES = ("units", "tens", "hundreds", "thousands")


def explanations(trained_model: TrainedModel, problem: Problems, count: int) -> list[str | None]:
    """Return an explanation for each of the first `count` tokens of the right answer.

    They are None for tasks without columns, and for formats that do not write the units first.
    """
    format = trained_model.format
    if not has_carries(trained_model.task) or not isinstance(format, PlainFormat):
        return [None] * count
    config = format.config
    is_sum = trained_model.task.operations == ("+",)
    units_first = config.answer_order == "reversed" and trained_model.model.is_causal
    unpadded = config.spaces == "none" and (config.answer_padding == "none" or not is_sum)
    if not units_first or not unpadded or not (is_sum or config.negative == "complement"):
        return [None] * count
    states = carries(trained_model, problem)[0].tolist()
    width = int(problem.lengths_BN.max())
    digits = problem.digits_BNW[0].tolist()
    lengths = problem.lengths_BN[0].tolist()
    sentences = []
    for column in range(count):
        if column < width:
            column_digits = [
                number[column]
                for number, length in zip(digits, lengths, strict=True)
                if column < length
            ]
            is_difference = OPERATIONS[int(problem.operation_B[0])] == "-"
            if is_difference and lengths[0] <= column:
                column_digits = [0, *column_digits]
            describe = _difference if is_difference else _sum
            sentence = describe(column_digits, states[column])
            sentences.append(f"{place_name(column + 1).capitalize()}: {sentence}")
        else:
            sentences.append(_beyond(states[width], column - width, problem))
    return list(sentences)


def place_name(place: int) -> str:
    """Return the name of a place: `units` for 1, `place 7` for 7."""
    return PLACE_NAMES[place - 1] if place <= len(PLACE_NAMES) else f"place {place}"


def _sum(digits: list[int], carry: int) -> str:
    total = sum(digits) + carry
    terms = " + ".join(map(str, digits))
    if carry:
        left = f"{terms}, plus the carry {carry}, is {total}"
    else:
        left = f"{terms} = {total}" if len(digits) > 1 else f"only {terms} is left"
    carried = f", carry {total // 10}" if total >= 10 else ""
    return f"{left}. Write {total % 10}{carried}."


def _difference(digits: list[int], borrow: int) -> str:
    first, *others = digits
    result = first - sum(others) - borrow
    terms = " − ".join(map(str, digits))
    total = str(result).replace("-", "−")
    if borrow:
        left = f"{terms}, minus the borrowed 1, is {total}"
    else:
        left = f"{terms} = {total}" if others else f"only {first} is left"
    borrowed = ", borrow 1 from the next column" if result < 0 else ""
    return f"{left}. Write {result % 10}{borrowed}."


def _beyond(state: int, column: int, problem: Problems) -> str:
    """Return what happens above the highest column: the carry that is left, or the end."""
    is_difference = OPERATIONS[int(problem.operation_B[0])] == "-"
    if state and column == 0:
        if is_difference:
            return "Something is still borrowed, so the answer is below 0. Write the sign -."
        return f"Both numbers have ended. Write the carry {state}."
    return "Nothing is left to do. Write the end sign ⟩."
