"""The picture of a division in docs/certificate-divisions.md.

    python benchmarks/division_picture.py

It writes 953 // 26 as the recipe `divide` does, draws the rows under each other as on paper, and
boxes the tokens that one digit sees. These are taken from the masks of the model itself; no training
is needed for them. Writes docs/division.svg.
"""

from pathlib import Path

from abacist.models.teacher_forcing import coordinates_of
from abacist.recipes import find
from abacist.runs.run import build_model, build_problems

PICTURE = Path(__file__).parents[1] / "docs" / "division.svg"
PROBLEM = "953//26"
QUERY_ROW, QUERY_DIGIT = 5, 1
"""The digit drawn as the query: row +8, its lowest digit."""
COLUMN, LINE, LEFT, TOP = 34, 28, 120, 44
"""Sizes in pixels."""


def picture() -> str:
    """Return the SVG."""
    recipe = find("divide")
    task, format = build_problems(recipe)
    problems = task.parse([PROBLEM])
    line = format.write(problems, task.answer(problems))
    ids = line.ids[0].tolist()
    tokens = [format.vocabulary.tokens[id] for id in ids]
    (visible,) = build_model(recipe).visibility(coordinates_of(line, equal_lengths=True))
    dividend, divisor = PROBLEM.split("//")
    first, width = tokens.index("=") + 1, len(divisor) + 3
    query = first + QUERY_ROW * width + 1 + QUERY_DIGIT
    seen = set(visible[0, query].nonzero().squeeze(1).tolist())

    # Tokens and where they are drawn, (column, row): columns grow to the right, row 0 is the prompt.
    columns = len(dividend) + 1
    drawn: dict[int, tuple[float, int]] = {1 + i: (1 + i, 0) for i in range(len(dividend))}
    drawn |= {2 + len(dividend) + i: (columns + 1 + i, 0) for i in range(len(divisor))}
    remarks = []
    rest, steps_done, num_rows = int(dividend[: len(divisor)]), 0, 0
    for begin in range(first, len(tokens) - 3, width):
        row = tokens[begin : begin + width]
        num_rows += 1
        drawn[begin] = (-1.6, num_rows)
        drawn[begin + 1] = (-0.8, num_rows)
        units = len(divisor) + steps_done
        drawn |= {begin + 2 + i: (units - i, num_rows) for i in range(len(divisor) + 1)}
        sign = 1 if row[0].startswith("+") else -1
        after = rest + sign * int(divisor)
        remarks.append(f"{rest} {'+' if sign > 0 else '−'} {divisor} = {after}".replace("-", "−"))
        rest = after
        if row[-1].endswith("'") and units < len(dividend):
            rest = 10 * rest + int(dividend[units])
            steps_done += 1
            remarks[-1] += f", bring down {dividend[units]}: {rest}".replace("-", "−")
    drawn[len(tokens) - 3] = (-1.6, num_rows + 1)
    drawn[len(tokens) - 2] = (-0.8, num_rows + 1)
    remarks.append(f"no digit left, {rest} ≥ 0: done")

    def place(column: float, row: int) -> tuple[float, int]:
        return LEFT + COLUMN * column, TOP + LINE * row + (8 if row else 0)

    height = TOP + LINE * (num_rows + 2) + 34
    body = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 {height}" '
        'font-family="monospace" font-size="17" text-anchor="middle">',
        f"<title>{dividend} divided by {divisor}, row by row</title>",
        f'<rect width="640" height="{height}" fill="white"/>',
    ]
    for token, position in drawn.items():
        x, y = place(*position)
        if token in seen:
            colour = "#d55e00" if token == query else "#0072b2"
            body.append(
                f'<rect x="{x - 15:g}" y="{y - 17}" width="30" height="23" rx="4" fill="{colour}" '
                f'fill-opacity=".18" stroke="{colour}" stroke-width="2"/>'
            )
        body.append(f'<text x="{x:g}" y="{y}">{tokens[token].replace("-", "−")}</text>')
    x, y = place(columns + 0.2, 0)
    body.append(f'<text x="{x:g}" y="{y}">//</text>')
    x, y = place(-2, 0)
    right, _ = place(columns + 3, 0)
    body.append(f'<path d="M{x:g} {y + 12}H{right:g}" stroke="#888"/>')
    for number, remark in enumerate(remarks, start=1):
        x, y = place(columns + 1, number)
        body.append(
            f'<text x="{x:g}" y="{y}" font-size="13" fill="#555" text-anchor="start">{remark}</text>'
        )
    written = tokens[query + 1].replace("-", "−")
    caption = f"{tokens[query]} (orange) sees the blue tokens; then {written} is written."
    body.append(
        f'<text x="20" y="{height - 16}" font-size="14" text-anchor="start">{caption}</text>'
    )
    assert all(token == 0 or token in drawn for token in seen), "a token that is seen is not drawn"
    return "\n".join([*body, "</svg>"]) + "\n"


if __name__ == "__main__":
    PICTURE.write_text(picture())
