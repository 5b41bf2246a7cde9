"""What is shown of each lens: sentences, tables and plots, made from the JSON record of its finding.

>>> terminal.Shown(views("attention", finding.to_json()))
>>> matplotlib_figures.draw(plots_of(views("attention", finding.to_json())), Path("attention.png"))
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from abacist.intervals import Proportion, percent
from abacist.reports import plots
from abacist.reports.plots import Bars, Curve, HeatMap, LineChart, Plot, Points, View
from abacist.reports.tables import Table, exact, interval, number, shortened

Record = Mapping[str, Any]

_STARTS = ("<start>", "<sum>", "<difference>", "<product>", "<division>")
_TOKENS = {**dict.fromkeys(_STARTS, "⟨"), "<end>": "⟩"}
_MOST_HEADS = 64
_RAW_AXES = ("dimension 1", "dimension 2")
_MOST_WAVES = 10
_ALMOST_NOTHING = 0.005
"""Attention below it is left out."""


def views(lens: str, record: Record) -> list[View]:
    """Everything that is shown of the record of a lens."""
    return _VIEWS[lens](record)


def plots_of(shown: Iterable[View]) -> list[Plot]:
    """The views that can be drawn."""
    return [view for view in shown if not isinstance(view, str | Table)]


def letter(token: str) -> str:
    """A token as a single letter."""
    return _TOKENS.get(token, token)


def line_as_read(problem: str, tokens: Sequence[str], digit_order: str) -> str:
    """How the model reads a problem: its line, the order of digits, and the signs for start and end.

    >>> line_as_read("12+34", ["<start>", "2", "1", "+", "4", "3", "=", "6", "4", "<end>"], "units first")
    '12+34, as the model reads it: 21+43=64 (units first; ⟨ start, ⟩ end)'
    """
    line = "".join("" if token in _TOKENS else token for token in tokens)
    signs = {_TOKENS[token]: token for token in tokens if token in _TOKENS}
    names = ", ".join(
        f"{sign} {'end' if name == '<end>' else 'start'}" for sign, name in signs.items()
    )
    explained = "; ".join(word for word in (digit_order, names) if word)
    brackets = f" ({explained})" if explained else ""
    return f"{shortened(problem)}, as the model reads it: {shortened(line)}{brackets}"


def _next_tokens(record: Record) -> list[View]:
    ranks = range(len(record["likeliest"][0]))
    right = dict(zip(record["predicting"], record["right"], strict=True))
    probabilities = record["probability"]["values"]
    return [
        HeatMap(
            "likeliest tokens after every token of the line, with their probabilities",
            [[shares[rank] for shares in probabilities] for rank in ranks],
            [f"{rank + 1}." for rank in ranks],
            [
                f"{letter(token)}\n→{letter(right[column])}" if column in right else letter(token)
                for column, token in enumerate(record["tokens"])
            ],
            column_label="tokens of the line; →: the right next token of an answer",
            value_label="probability",
            texts=[
                [
                    f"{letter(tokens[rank])}\n{_whole_percent(shares[rank]) or '<1%'}"
                    for tokens, shares in zip(record["likeliest"], probabilities, strict=True)
                ]
                for rank in ranks
            ],
            wrong=[
                [
                    rank == 0 and column in right and tokens[0] != right[column]
                    for column, tokens in enumerate(record["likeliest"])
                ]
                for rank in ranks
            ],
            columns_in_table=record["predicting"],
        )
    ]


def _attention(record: Record) -> list[View]:
    tokens = [letter(token) for token in record["tokens"]]
    pattern = record["pattern"]["values"]
    shown: list[View] = [
        HeatMap(
            name,
            [weights[query] for query in record["predicting"]],
            [letter(token) for token in record["right"]],
            tokens,
            row_label="before this is written",
            column_label="is looked at",
            value_label="attention",
            colours="Blues",
        )
        for name, weights in _heads(pattern)
    ]
    legend = "Rows: what is looked at before the token on the left is written; ░▒▓█ by quarters."
    return [*shown, legend]


def _place_attention(record: Record) -> list[View]:
    """Attention by difference of place, over all fields and by field."""
    differences, fields = record["differences"], record["fields"]
    heads = _heads(record["weight"]["values"])
    by_difference = {
        name: [sum(field[d] for field in shares) for d in range(len(differences))]
        for name, shares in heads
    }
    by_field = {name: [share for field in shares for share in field] for name, shares in heads}
    names = [f"{field} {difference}" for field in fields for difference in differences]
    sample = f"{record['num_tokens']:,} answer tokens of {record['num_problems']:,} test problems"
    by_target: dict[str, list[str]] = {}
    for name, shares in by_difference.items():
        largest = max(range(len(shares)), key=shares.__getitem__)
        sources = [field[largest] for field in dict(heads)[name]]
        only = fields[sources.index(max(sources))] if max(sources) > 0.99 * sum(sources) else None
        by_target.setdefault(_target(differences[largest], only), []).append(name)
    mostly = _mostly(by_target)
    shown: list[View] = [
        _shares(
            f"Mean attention by difference of place. {mostly}.",
            by_difference,
            differences,
            caption=f"Mean attention of every head over {sample}; +1 is the column that is written "
            "next if an answer begins with its units.",
        ),
        _shares(
            f"Mean attention by field and by difference of place (n = {sample})",
            by_field,
            names,
        ),
    ]
    more = sum(map(len, record["weight"]["values"])) - len(heads)
    return [*shown, f"{more:,} more heads are in the record."] if more else shown


def _target(difference: str, field: str | None) -> str:
    """Name the tokens at a difference of place; `field` is theirs if they all have the same."""
    if difference in _COLUMNS:
        return f"{_COLUMNS[difference]} ({difference})".replace("-", "−")
    if difference == "every column":
        return f"the {field} token" if field else "tokens that stand in every column"
    if difference == "no column":
        return "tokens that stand in no column"
    return f"columns at {difference}".replace("-", "−")


_COLUMNS = {"0": "its own column", "+1": "the next higher column", "-1": "the next lower column"}


def _mostly(heads_by_target: Mapping[str, Sequence[str]]) -> str:
    """Return where the heads look, as in `Head 0 looks mostly at its own column (0); heads 1 and 2 at …`."""
    clauses: list[str] = []
    for target, heads in heads_by_target.items():
        numbers = [head.removeprefix("head ") for head in heads]
        is_one = len(numbers) == 1
        owner = f"head {numbers[0]}"
        if not is_one:
            owner = f"heads {', '.join(numbers[:-1])} and {numbers[-1]}"
            target = target.replace("its own", "their own")
        verb = "" if clauses else " looks mostly" if is_one else " look mostly"
        clauses.append(f"{owner}{verb} at {target}")
    sentence = "; ".join(clauses)
    return sentence[:1].upper() + sentence[1:]


def _shares(
    title: str, heads: Mapping[str, Sequence[float]], columns: Sequence[str], caption: str = ""
) -> HeatMap:
    """Attention of heads in percent, without the columns in which all heads have almost none."""
    largest = [max(shares) for shares in zip(*heads.values(), strict=True)]
    picks = [i for i, share in enumerate(largest) if share >= _ALMOST_NOTHING]
    values = [[shares[i] for i in picks] for shares in heads.values()]
    return HeatMap(
        title,
        values,
        list(heads),
        [columns[i].replace(" ", "\n") for i in picks],
        column_label="place of the key minus place of the query",
        value_label="attention",
        caption=caption,
        texts=[[_whole_percent(value) for value in row] for row in values],
        colours="Blues",
    )


def _logit_lens(record: Record) -> list[View]:
    return [
        HeatMap(
            "what would be written after each stage; colour: probability of the right token",
            record["probability"]["values"],
            record["stages"],
            [letter(token) for token in record["right"]],
            row_label="after",
            column_label="right tokens",
            value_label="probability",
            texts=[[letter(token) for token in row] for row in record["likeliest"]],
            wrong=[
                [token != right for token, right in zip(row, record["right"], strict=True)]
                for row in record["likeliest"]
            ],
        )
    ]


def _convergence(record: Record) -> list[View]:
    distance, step = record["distance"]["values"], record["step"]["values"]
    numbers = range(1, len(distance) + 1)
    across = plots.linear_axis("recurrence", len(numbers), first=1)
    positive = [value for value in (*distance, *step) if value > 0] or [1.0]
    mark = (record["trained"], "trained")
    return [
        LineChart(
            "convergence: lengths over the length of the last state",
            [
                # The last state has distance 0 from itself, which has no logarithm.
                Curve("distance to the last state", numbers[:-1], distance[:-1]),
                Curve("change in this recurrence", numbers, step),
            ],
            across,
            plots.logarithmic_axis("over the length of the last state", positive),
            mark=mark,
        ),
        LineChart(
            "probability of the right token, mean",
            [Curve("probability", numbers, record["probability"]["values"])],
            across,
            plots.percent_axis("probability"),
            mark=mark,
        ),
    ]


def _attribution(record: Record) -> list[View]:
    columns = [
        f"{letter(right)}\n{letter(rival)}"
        for right, rival in zip(record["right"], record["runner_up"], strict=True)
    ]
    return [
        _diverging(
            "what each part adds to the lead of the right token, in logits",
            [*record["contribution"]["values"], record["lead"]["values"]],
            [*record["components"], "together"],
            columns,
            "right token, and below it the runner-up",
            "logits",
        )
    ]


def _ablation(record: Record) -> list[View]:
    without, whole = record["without"], record["whole"]
    series = {"set to 0": "zero", "set to its mean": "mean"}
    return [
        Bars(
            f"exact match without each part (n = {whole['n']:,} test problems, distributed as in "
            "training)",
            [part["component"] for part in without],
            {name: [part[key]["value"] for part in without] for name, key in series.items()},
            "exact match without it",
            {name: [part[key]["interval"] for part in without] for name, key in series.items()},
            reference=(whole["value"], "with all parts"),
            percent=True,
        )
    ]


def _patching(record: Record) -> list[View]:
    columns = [
        letter(own) if own == other else f"{letter(own)}\n{letter(other)}"
        for own, other in zip(record["tokens"], record["partner_tokens"], strict=True)
    ]
    effects = zip(record["effect_everywhere"]["values"], record["effect"]["values"], strict=True)
    return [
        _diverging(
            f"{record['problem']} with activations of {record['partner']}: effect on the digit at "
            f"place {record['place']}, which is {record['right']} and becomes "
            f"{record['partner_right']}; 0: no effect, 1: as in the other problem",
            [[everywhere, *row] for everywhere, row in effects],
            record["components"],
            ["all", *columns],
            "token that is patched (two if the problems differ)",
            "effect",
            largest=1.0,
        )
    ]


def _carry_probe(record: Record) -> list[View]:
    stages = list(dict.fromkeys(probe["stage"] for probe in record["probes"]))
    places = list(dict.fromkeys(probe["place"] for probe in record["probes"]))
    probes = {(p["stage"], p["place"]): p for p in record["probes"]}
    together = [
        (stage, Proportion.from_json(probes[stage, None]["accuracy"]))
        for stage in stages
        if (stage, None) in probes
    ]
    values = [
        [
            probes[stage, place]["accuracy"]["value"] if (stage, place) in probes else None
            for place in places
        ]
        for stage in stages
    ]
    baseline = [
        next((p["majority"] for p in record["probes"] if p["place"] == place), None)
        for place in places
    ]
    values.append(baseline)
    # The scale begins at a round number below the smallest accuracy, so that no colour is clipped.
    smallest = min((v for row in values for v in row if v is not None), default=0.5)
    majority = next((p["majority"] for p in record["probes"] if p["place"] is None), None)
    guess = (
        "" if majority is None else f"; always giving one answer is right in {percent(majority)}"
    )
    return [
        Table(
            "is there a carry into the place about to be written? accuracy of linear probes over "
            f"all places (fitted to {record['num_training_problems']:,} problems, judged on "
            f"{record['num_held_out_problems']:,} others{guess})",
            ("after", "accuracy", "95% interval", "n"),
            [[[stage, exact(p), interval(p), f"{p.n:,}"] for stage, p in together]],
        ),
        HeatMap(
            "accuracy of linear probes for the carry into each place (2: the tens), "
            f"n = {record['num_held_out_problems']:,} problems",
            values,
            [*stages, "always the same answer"],
            ["all" if place is None else str(place) for place in places],
            row_label="after",
            column_label="place that the carry goes into",
            value_label="accuracy",
            texts=[["–" if v is None else _whole_percent(v) for v in row] for row in values],
            low=min(0.5, math.floor(10 * smallest) / 10),
        ),
    ]


def _embeddings(record: Record) -> list[View]:
    shown: list[View] = []
    for table in record["tables"]:
        explained = table["explained"]["values"]
        axes = [
            f"component {number}\n({percent(share)} of the variance)"
            for number, share in enumerate(explained, start=1)
        ]
        name, points = table["name"], table["points"]["values"]
        spectrum = table["spectrum"]["values"]
        raw = table["dimensions"]["values"]
        shown += [
            Points(
                f"{name} in {place}",
                [letter(label) for label in table["labels"]],
                {"last": rows},
                names,
                is_ordered=bool(spectrum),
            )
            for place, rows, names in (
                ("principal components", points, axes),
                ("dimensions 1 and 2", raw, _RAW_AXES),
            )
        ]
        shown += [
            Bars(
                f"variance over the {name} that is a wave of k periods",
                [str(periods) for periods in range(1, len(spectrum) + 1)],
                {"share": spectrum},
                "share of the variance",
                percent=True,
                upright=True,
                name_label="periods of the wave, k",
            )
        ] * bool(spectrum)
    return shown


def _evolution(record: Record) -> list[View]:
    shown: list[View] = []
    for table in record["tables"]:
        steps, points = table["steps"], table["points"]["values"]
        spectrum = table["spectrum"]["values"]
        distances = [
            math.sqrt(sum(v * v for row in rows for v in row) / len(rows)) for rows in points
        ]
        across = plots.linear_axis("training step", max(steps))
        frames, raw_frames = (
            {
                f"step {step:,}": [row[:2] for row in rows]
                for step, rows in zip(steps, moments, strict=True)
            }
            for moments in (points, table["dimensions"]["values"])
        )
        waves = [
            Curve(f"wave {wave + 1}", steps, [shares[wave] for shares in spectrum])
            for wave in range(min(len(spectrum[0]), _MOST_WAVES))
        ]
        title = f"{table['name']}: from step {steps[0]:,} (dots) to {steps[-1]:,}"
        largest = plots.linear_axis("distance", max(distances) * 1.05, first=0)
        shown += [
            Points(title, table["labels"], frames),
            Points(f"{title}, in dimensions 1 and 2", table["labels"], raw_frames, _RAW_AXES),
        ]
        shown += [
            LineChart(
                f"variance over the {table['name']} that is a wave of k periods",
                waves,
                across,
                plots.percent_axis("share of the variance"),
            )
        ] * bool(waves)
        shown += [
            LineChart(
                f"mean distance of the {table['name']} from their mean",
                [Curve("distance", steps, distances)],
                across,
                largest,
            ),
        ]
    return shown


def _first_mistake(record: Record) -> list[View]:
    is_mistake, right, rival = record["is_mistake"], record["right"], record["rival"]
    place = "a token without a place" if record["place"] is None else f"place {record['place']}"
    start = f"first mistake at {place}" if is_mistake else f"no mistake; least certain at {place}"
    contrast = f"{rival} instead of {right}" if is_mistake else f"{right} rather than {rival}"
    sentence = f"{start}: {contrast} after {record['before'] or 'nothing'}"
    sentence += f", margin {number(record['margin'], '+.2f')} logits"
    chain = record["carry_chain"]
    if chain:
        sentence += f"; the carry into it began {chain} column{'s' * (chain > 1)} before"
    elif chain == 0:
        sentence += "; no carry comes in"
    return [
        f"{sentence}.",
        Bars(
            f"{start}: logits for {letter(right)}, which is right, minus those for {letter(rival)}",
            record["components"],
            {"logits": record["contribution"]["values"]},
            "logits",
        ),
    ]


_VIEWS: dict[str, Callable[[Record], list[View]]] = {
    "next-tokens": _next_tokens,
    "attention": _attention,
    "place-attention": _place_attention,
    "logit-lens": _logit_lens,
    "convergence": _convergence,
    "attribution": _attribution,
    "ablation": _ablation,
    "patching": _patching,
    "carry-probe": _carry_probe,
    "embeddings": _embeddings,
    "evolution": _evolution,
    "first-mistake": _first_mistake,
}


def _diverging(
    title: str,
    values: Sequence[Sequence[float]],
    rows: Sequence[str],
    columns: Sequence[str],
    column_label: str,
    value_label: str,
    largest: float | None = None,
) -> HeatMap:
    """Numbers around 0: blue is for, red against."""
    largest = largest or max(abs(value) for row in values for value in row) or 1.0
    form = "+.1f" if largest > 2 else "+.2f"

    def text(value: float) -> str:
        """A number with its sign; empty for what is rounded to 0."""
        rounded = round(value, 1 if largest > 2 else 2)
        return number(rounded, form) if rounded else ""

    return HeatMap(
        title,
        values,
        rows,
        columns,
        column_label=column_label,
        value_label=value_label,
        texts=[[text(value) for value in row] for row in values],
        low=-largest,
        high=largest,
        colours="RdBu",
    )


def _heads(by_layer: Sequence[Sequence[Any]]) -> list[tuple[str, Any]]:
    """What belongs to each head, with its name; the layer is named if there are several."""
    several = len(by_layer) > 1
    return [
        (f"head {layer}.{head}" if several else f"head {head}", of_head)
        for layer, heads in enumerate(by_layer)
        for head, of_head in enumerate(heads)
    ][:_MOST_HEADS]


def _whole_percent(share: float) -> str:
    """A share in whole percent; empty if there is almost nothing."""
    return "" if share < _ALMOST_NOTHING else f"{100 * share:.0f}%"
