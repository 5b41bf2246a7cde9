"""Curves of what was recorded while a run was trained, and of several runs side by side.

>>> of_run(records.metrics, records.losses)      # loss twice, exact match, token accuracy …

In the charts of one run, training problems stand beside validation problems, so that memorisation
shows as a gap between the two.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from abacist.intervals import Proportion, percent
from abacist.reports import plots
from abacist.reports.plots import Axis, Curve, LineChart
from abacist.scoring.records import Measures
from abacist.training.metrics import Metrics, StepLoss

_LOSS = "loss, nats per token"
_BATCHES = "training batches"
_WHEN = (
    " The loss on training batches is a mean over all steps since the last point; the other curves are "
    "measured with the weights at the point itself, so while the loss falls they lie below it."
)


def of_run(metrics: Sequence[Metrics], losses: Sequence[StepLoss] = ()) -> list[LineChart]:
    """The charts of one run: loss on a logarithmic and a linear scale, then shares of right answers.

    Args:
        metrics: the records of `metrics.jsonl`.
        losses: those of `losses.jsonl`, where single losses were recorded.
    """
    if not metrics:
        return []
    charts = _losses(metrics, losses)
    charts += [
        _shares("Exact match", metrics, lambda measures: measures.exact_match),
        _shares("Exact answer", metrics, lambda measures: measures.exact_answer)
        if _has_scratch_work(metrics)
        else None,
        _shares("Token accuracy", metrics, lambda measures: measures.token_accuracy),
        _by_operation(metrics),
    ]
    return [chart for chart in charts if chart is not None]


def of_runs(metrics: Mapping[str, Sequence[Metrics]]) -> list[LineChart]:
    """Training loss, exact match and token accuracy on validation problems, a curve for each run."""
    by_run = {name: records for name, records in metrics.items() if records}
    charts = [
        _loss_chart([_positive(name, _training_loss(r)) for name, r in by_run.items()], True),
        _share_chart(
            "Exact match on validation problems",
            {name: [(r.step, r.exact_match) for r in records] for name, records in by_run.items()},
        ),
        _share_chart(
            "Token accuracy on validation problems",
            {
                name: [(r.step, r.token_accuracy) for r in records if r.token_accuracy]
                for name, records in by_run.items()
            },
        ),
    ]
    known = [chart for chart in charts if chart is not None]
    if len(by_run) < len(metrics):
        # A single curve is named as well, because nobody could know whose it is.
        note = f" Only {' and '.join(by_run)} recorded a training." if by_run else ""
        known = [replace(chart, is_named=True, caption=chart.caption + note) for chart in known]
    return known


def _losses(metrics: Sequence[Metrics], losses: Sequence[StepLoss]) -> list[LineChart | None]:
    """The loss on batches, on validation problems and on a sample of training problems, twice."""
    curves = [
        _positive(_BATCHES, _training_loss(metrics)),
        _positive("validation", [(r.step, r.validation_loss) for r in metrics]),
        _positive(
            "training sample",
            [(r.step, r.training_sample.loss) for r in metrics if r.training_sample],
        ),
        _positive("single batches", [(record.step, record.loss) for record in losses]),
    ]
    return [_loss_chart(curves, is_logarithmic) for is_logarithmic in (True, False)]


def _training_loss(metrics: Sequence[Metrics]) -> list[tuple[int, float | None]]:
    return [(record.step, record.loss) for record in metrics]


def _positive(name: str, pairs: Sequence[tuple[int, float | None]]) -> Curve:
    """The losses that a logarithmic scale can show."""
    known = [(step, loss) for step, loss in pairs if loss and math.isfinite(loss) and loss > 0]
    return Curve(name, [step for step, _ in known], [loss for _, loss in known])


def _loss_chart(curves: Sequence[Curve], is_logarithmic: bool) -> LineChart | None:
    curves = [curve for curve in curves if curve.y]
    if not curves:
        return None
    values = [y for curve in curves for y in curve.y]
    up = (
        plots.logarithmic_axis(_LOSS, values)
        if is_logarithmic
        else plots.linear_axis(_LOSS, max(values))
    )
    scale = "logarithmic" if is_logarithmic else "linear"
    summary = of_each(
        curves, lambda curve: f"from {plots.short(curve.y[0])} to {plots.short(curve.y[-1])}"
    )
    return LineChart(
        f"Loss by training step, {scale} scale. {summary}",
        curves,
        _steps(curves),
        up,
        caption=f"Loss during training, on a {scale} scale ({summary})."
        + _WHEN * any(curve.name == _BATCHES for curve in curves),
    )


def _shares(
    title: str, metrics: Sequence[Metrics], of: Callable[[Measures], Proportion]
) -> LineChart | None:
    """A share on validation problems and on a sample of training problems."""
    validation = [(r.step, of(measures)) for r in metrics if (measures := _validation(r))]
    sample = [(r.step, of(r.training_sample)) for r in metrics if r.training_sample]
    return _share_chart(title, {"validation": validation, "training sample": sample})


def _validation(record: Metrics) -> Measures | None:
    """The measures on validation problems; records of older runs have exact match only."""
    if record.validation_loss is None or not record.token_accuracy or not record.exact_answer:
        nothing = Proportion(0, 0)
        return Measures(math.nan, nothing, record.exact_match, nothing)
    return Measures(
        record.validation_loss, record.token_accuracy, record.exact_match, record.exact_answer
    )


def _has_scratch_work(metrics: Sequence[Metrics]) -> bool:
    """Whether an answer was ever right although its scratch work was not."""
    return any(r.exact_answer is not None and r.exact_answer != r.exact_match for r in metrics)


def _by_operation(metrics: Sequence[Metrics]) -> LineChart | None:
    operations = dict.fromkeys(name for record in metrics for name in record.operations)
    return _share_chart(
        "Exact match on validation problems by operation",
        {
            name: [
                (r.step, r.operations[name].exact_match) for r in metrics if name in r.operations
            ]
            for name in operations
        },
    )


def _share_chart(
    title: str, series: Mapping[str, Sequence[tuple[int, Proportion]]]
) -> LineChart | None:
    curves = [proportion_curve(name, pairs) for name, pairs in series.items()]
    curves = [curve for curve in curves if curve.y]
    if not curves:
        return None
    sizes = ", ".join(
        f"{max(p.n for _, p in series[curve.name]):,} problems"
        if len(curves) == 1
        else f"{curve.name} {max(p.n for _, p in series[curve.name]):,}"
        for curve in curves
    )
    summary = of_each(
        curves,
        lambda curve: (
            f"{percent(curve.y[0])} at step {curve.x[0]:,.0f}, {percent(curve.y[-1])} at step "
            f"{curve.x[-1]:,.0f}"
        ),
    )
    return LineChart(
        f"{title} by training step. {summary}",
        curves,
        _steps(curves),
        plots.percent_axis(title.partition(" on ")[0].lower()),
        caption=f"{title} with 95 % Wilson bands ({summary}; n: {sizes}).",
        band=True,
    )


def _steps(curves: Sequence[Curve]) -> Axis:
    return plots.linear_axis("step", max(x for curve in curves for x in curve.x))


def proportion_curve(name: str, pairs: Sequence[tuple[float, Proportion]]) -> Curve:
    """A curve of proportions with their intervals; those without a sample are left out."""
    known = [(x, p.value, p.interval) for x, p in pairs if p.value is not None and p.interval]
    return Curve(name, [x for x, *_ in known], [y for _, y, _ in known], [i for *_, i in known])


def of_each(curves: Sequence[Curve], summary: Callable[[Curve], str]) -> str:
    """The summary of every curve, with its name if there are several."""
    if len(curves) == 1:
        return summary(curves[0])
    return "; ".join(f"{curve.name}: {summary(curve)}" for curve in curves)
