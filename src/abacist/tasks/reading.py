"""Helpers for reading expressions that people type, shared by all tasks."""

from abacist.errors import ProblemError

_LONGEST_QUOTED = 40


def quoted(expression: str) -> str:
    """Return an expression in quotation marks, shortened if it is long, for error messages."""
    if len(expression) > _LONGEST_QUOTED:
        expression = expression[: _LONGEST_QUOTED - 3] + "..."
    return repr(expression)


def signed_number(text: str, expression: str, max_digits: int) -> str | None:
    """Return a number that may begin with a minus sign; otherwise as `whole_number`."""
    magnitude = whole_number(text.removeprefix("-"), expression, max_digits)
    is_negative = text.startswith("-") and magnitude not in (None, "0")
    return f"-{magnitude}" if is_negative else magnitude


def whole_number(text: str, expression: str, max_digits: int) -> str | None:
    """Return a number without leading zeros, or None if `text` is not a whole number.

    Raises:
        ProblemError: the number has more than `max_digits` digits; the message quotes `expression`.
    """
    if not (text.isascii() and text.isdigit()):
        return None
    text = text.lstrip("0") or "0"
    if len(text) > max_digits:
        raise ProblemError(
            f"{quoted(expression)} has an operand of {len(text):,} digits; "
            f"at most {max_digits:,} are accepted."
        )
    return text
