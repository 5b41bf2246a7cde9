"""The suite `notation`: the same problems with other spaces."""

from types import SimpleNamespace

import pytest
import torch
from trained_models import ignored, random_model

from abacist.formats.config import PlainFormatConfig
from abacist.reports import score_plots, svg
from abacist.scoring import notation as module
from abacist.scoring.exact_match import exact_match
from abacist.scoring.notation import EXAMPLES, NOTATION, with_spaces
from abacist.scoring.samples import as_in_training
from abacist.tasks.config import ArithmeticConfig


def test_the_trained_spacing_scores_as_exact_match_does():
    trained_model = random_model(format="spaced", positions="index-relative")
    section = NOTATION.run(trained_model, ignored)
    problems = as_in_training(trained_model, 10, "notation")
    verdicts = exact_match(trained_model, problems)
    (row,) = [r for r in section.rows if r.name.endswith("(as trained)")]
    assert row.proportion == verdicts.proportion
    assert row.smallest_margin == float(verdicts.margins.min())
    measures = [row.measure for row in section.rows]
    assert measures == ["exact match"] * len(EXAMPLES) + ["match without spaces"] * len(EXAMPLES)


def test_the_bars_are_those_of_the_rows():
    trained_model = random_model(format="spaced", positions="index-relative")
    section = NOTATION.run(trained_model, ignored)
    (bars,) = score_plots.of_section("notation", section)
    assert list(bars.series) == ["exact match", "spaces ignored"]
    exact, ignoring = section.rows[:4], section.rows[4:]
    assert bars.names == [row.name for row in exact]
    for name, rows in (("exact match", exact), ("spaces ignored", ignoring)):
        assert bars.series[name] == [row.proportion.value for row in rows]
        assert bars.intervals[name] == [row.proportion.interval for row in rows]
    picture = svg.draw(bars)
    assert picture.count("<rect") == 8 + 2
    assert "(as trained)" in picture


@pytest.mark.parametrize(
    ("spaces", "prompt"),
    [("none", "12345+678="), ("around", "12345 + 678 ="), ("thousands", "12 345 + 678=")],
)
def test_prompts_are_respaced_in_the_ids_of_the_model(spaces, prompt):
    task = ArithmeticConfig(max_digits=5)
    trained_model = random_model(task, "random-spaces", "index-relative")
    other = with_spaces(trained_model.format, task, spaces)
    ids = other.prompt(trained_model.task.parse(["12345+678"])).ids[0].tolist()
    assert trained_model.format.vocabulary.decode(ids) == prompt == EXAMPLES[spaces]


def test_spaces_in_an_answer_are_ignored_by_the_second_measure_only(monkeypatch):
    trained_model = random_model(format="spaced", positions="index-relative")
    space = trained_model.format.space_id

    def spaced(model, prompt, continuation, **_):
        """The correct answers, with a space after the first digit."""
        problems = as_in_training(trained_model, 10, "notation")
        whole = trained_model.format.write(problems, trained_model.task.answer(problems))
        by_prompt = {
            tuple(line[: int(length)]): line[int(length) :]
            for line, length in zip(
                whole.ids.tolist(), trained_model.format.prompt(problems).lengths, strict=True
            )
        }
        lines = []
        for line, length in zip(prompt.ids.tolist(), prompt.lengths.tolist(), strict=True):
            answer = by_prompt[tuple(line[:length])]
            lines.append([*line[:length], answer[0], space, *answer[1:]])
        width = max(map(len, lines))
        padded = [line + [trained_model.format.end_id] * (width - len(line)) for line in lines]
        return SimpleNamespace(ids=torch.tensor(padded, dtype=torch.int32))

    monkeypatch.setattr(module, "generate", spaced)
    problems = as_in_training(trained_model, 10, "notation")
    right = module._num_right_without_spaces(
        trained_model, trained_model.format.vocabulary, problems
    )
    assert right == len(problems) == 10


def test_a_model_without_spaces_is_refused_with_what_to_type():
    assert "Train with --format spaced" in NOTATION.obstacle(random_model())
    other = random_model(format="carry-trace", positions="index-relative")
    assert "plain notations only" in NOTATION.obstacle(other)


def test_lines_of_one_length_get_no_random_spaces():
    config = PlainFormatConfig(
        end="none", operand_padding="fixed", answer_padding="fixed", spaces="around"
    )
    trained_model = random_model(format=config, positions="index-relative")
    section = NOTATION.run(trained_model, ignored)
    assert not any("random" in row.name for row in section.rows)
