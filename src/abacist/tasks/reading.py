"""What all tasks need to read expressions that people type."""

from abacist.errors import ProblemError

_LONGEST_SHOWN = 40


def shown(expression: str) -> str:
    """An expression as an error message quotes it."""
    cut = expression if len(expression) <= _LONGEST_SHOWN else expression[:37] + "..."
    return repr(cut)


def whole_number(text: str, expression: str, max_digits: int) -> str | None:
    """A number without leading zeros, or None where `text` is none; too long a one is refused."""
    if not (text.isascii() and text.isdigit()):
        return None
    text = text.lstrip("0") or "0"
    if len(text) > max_digits:
        raise ProblemError(
            f"{shown(expression)} has an operand of {len(text):,} digits; "
            f"at most {max_digits:,} are accepted."
        )
    return text
