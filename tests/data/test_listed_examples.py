"""Training on problems that a person has listed."""

import pytest

import abacist
from abacist.cli import main
from abacist.configuration import override
from abacist.data.config import SplitConfig
from abacist.data.examples import Examples, listed_problems
from abacist.data.split import in_split, split_names
from abacist.data.stream import TrainingStream
from abacist.errors import ConfigurationError
from abacist.formats.config import FORMATS
from abacist.scoring.splits import _sample
from abacist.tasks.config import TASKS, ArithmeticConfig

SPLIT = SplitConfig()
CONFIG = ArithmeticConfig(max_digits=3)
TASK = CONFIG.build()


def named(split: str, count: int) -> tuple[str, ...]:
    """Return some sums of one split."""
    sums = [f"{a}+{7 * a + 3}" for a in range(1, 100)]
    names = split_names(TASK.parse(sums), SPLIT)
    return tuple([text for text, name in zip(sums, names, strict=True) if name == split][:count])


LISTED = named("train", 12)


def test_an_epoch_shows_every_listed_problem_once_and_no_other():
    format = FORMATS["reversed"].build(CONFIG)
    stream = TrainingStream(TASK, format, SPLIT, 4, 0, Examples(12, listed=LISTED))
    for epoch in range(3):
        lines = [
            format.vocabulary.decode(line)
            for step in range(3 * epoch, 3 * epoch + 3)
            for line in stream.batch(step).ids.tolist()
        ]
        prompts = [line.partition("=")[0].removeprefix("<start>") for line in lines]
        reversed_numbers = ["+".join(n[::-1] for n in text.split("+")) for text in LISTED]
        assert sorted(prompts) == sorted(reversed_numbers)


def test_the_first_listed_problems_are_a_sample():
    listed = Examples(12, listed=LISTED)
    assert TASK.expressions(listed.problems(TASK, SPLIT, 0)) == list(LISTED)
    assert TASK.expressions(listed.sample(TASK, SPLIT, 0, 5)) == list(LISTED[:5])


@pytest.mark.parametrize(
    ("more", "complaint"),
    [
        (named("test", 2), "and 2 of 14 are not; the first is .* reserved for test"),
        (named("validation", 1), "and 1 of 13 are not; the first is .* reserved for validation"),
        (LISTED[:1], rf"must be distinct, got {LISTED[0].replace('+', '[+]')} again"),
        (("12-34",), r"training\.examples: .*12-34"),
        (("12345+1",), r"training\.examples: .*at most 3 are accepted"),
    ],
)
def test_a_problem_that_is_not_one_to_train_on_is_refused(more, complaint):
    with pytest.raises(ConfigurationError, match=complaint):
        listed_problems(TASK, SPLIT, LISTED + more)


def test_problems_too_small_to_be_split_may_be_listed():
    exempt = SplitConfig(exempt_digits=1)
    small = tuple(f"{a}+{b}" for a in range(10) for b in range(10))
    assert not bool(in_split(TASK.parse(list(small)), "train", SPLIT).all())
    assert len(listed_problems(TASK, exempt, small)) == 100


def test_problems_of_other_tasks_can_be_listed():
    task = TASKS["sort"].build()
    listed = tuple(
        text
        for text in ("31,4,15", "92,6", "5,35,8,9")
        if split_names(task.parse([text]), SPLIT) == ["train"]
    )
    problems = listed_problems(task, SPLIT, listed)
    assert task.expressions(problems) == task.expressions(task.parse(list(listed)))


def test_listed_and_drawn_problems_exclude_each_other():
    recipe = abacist.recipes.find("add")
    with pytest.raises(ConfigurationError, match="got both"):
        override(recipe, {"training.examples": LISTED, "training.num_examples": 100})
    with pytest.raises(ConfigurationError, match="balanced_examples is about a fixed number"):
        override(recipe, {"training.examples": LISTED, "training.balanced_examples": True})


def test_a_run_keeps_its_listed_problems_and_resumes_with_them(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sums.txt").write_text("\n".join(LISTED) + "\n\n")
    short = ["--training.num_steps", "4", "--training.warmup_steps", "0"]
    command = ["train", "add", "--examples", "sums.txt", "--train-only", *short]
    assert main([*command, "--out", "run"]) == 2
    assert "training.examples must be at least the batch size, 128, got 12" in (
        capsys.readouterr().err
    )
    command += ["--training.batch_size", "5", "--training.keep_partial_batches", "true"]
    assert main([*command, "--out", "run"]) == 0
    (tmp_path / "sums.txt").unlink()
    run = abacist.load("run")
    assert run.recipe.training.examples == LISTED
    assert run.task.expressions(_sample(run.trained_model(), "train", 3)) == list(LISTED[:3])
    assert main(["train", "--resume", "--out", "run", "--examples", "sums.txt"]) == 2
    assert "--resume keeps the problems that the run has" in capsys.readouterr().err


def test_a_file_without_problems_is_refused(tmp_path, capsys):
    (tmp_path / "empty.txt").write_text("\n \n")
    (tmp_path / "prose.txt").write_text("What is 12 plus 34?\n")
    complaints = {
        "empty.txt": "holds no problem",
        "none.txt": "cannot be read",
        "prose.txt": "training.examples: cannot read 'What is 12 plus 34?'",
    }
    for name, complaint in complaints.items():
        assert main(["train", "add", "--examples", str(tmp_path / name)]) == 2
        assert complaint in capsys.readouterr().err
