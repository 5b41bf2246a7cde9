"""`abacist data`: what is shown, written and counted is what the model gets."""

import gzip
import hashlib
import json
import os
import statistics

import pytest
import torch

from abacist import generators, recipes
from abacist.data import export as module
from abacist.data.check import check
from abacist.data.split import draw_from_split, in_split
from abacist.errors import RunError
from abacist.runs.run import build_problems
from abacist.tasks import digits
from abacist.tasks.config import TASKS
from abacist.tasks.problems import Problems

RECIPE = recipes.find("add")
TASK, FORMAT = build_problems(RECIPE)


def test_show_writes_place_field_and_target_under_every_token(run):
    code, out, _ = run(
        "data", "show", "add", "--num-problems", "1", "--task.max_digits", "2", "--seed", "5"
    )
    problem, token, place, row, field, target = out.splitlines()[:6]
    a, b, answer = problem.replace("=", "+").split("+")
    assert code == 0
    assert int(a) + int(b) == int(answer)
    written = ["<start>", *a[::-1], "+", *b[::-1], "=", *answer[::-1], "<end>"]
    assert token.split() == ["token", *written]
    places = ["*", *range(1, len(a) + 1), "·", *range(1, len(b) + 1), 0, *range(1, len(answer) + 2)]
    assert place.split() == ["place", *map(str, places)]
    rows = ["*", *"1" * len(a), "·", *"2" * len(b), *"3" * (len(answer) + 2)]
    assert row.split() == ["row", *rows]
    assert "".join(field.split()[1:]) == (
        "s" + "a" * len(a) + "o" + "b" * len(b) + "=" + "A" * (len(answer) + 1)
    )
    assert target.count("x") == len(answer) + 1


@pytest.mark.parametrize("ending", [".jsonl", ".jsonl.gz"])
def test_an_export_is_read_back_right_and_of_its_split(run, tmp_path, ending):
    path = tmp_path / f"problems{ending}"
    code, _, _ = run(
        "data", "export", "add", "--split", "test", "--num-problems", "5000", "--out", str(path)
    )
    content = path.read_bytes()
    text = gzip.decompress(content) if ending.endswith("gz") else content
    lines = [json.loads(line) for line in text.splitlines()]
    assert code == 0
    assert len(lines) == 5000
    for line in lines:
        a, b = line["problem"].split("+")
        assert line["answer"] == str(int(a) + int(b))
        assert line["prompt"] == f"<start>{a[::-1]}+{b[::-1]}="
        assert line["target"] == line["answer"][::-1] + "<end>"
    problems = TASK.parse([line["problem"] for line in lines])
    assert bool(in_split(problems, "test", RECIPE.split).all())
    manifest = json.loads((tmp_path / f"{path.name}.manifest.json").read_text())
    assert manifest["sha256"] == hashlib.sha256(content).hexdigest()
    assert manifest["num_problems"] == 5000


def test_the_same_seed_exports_the_same_bytes(run, tmp_path):
    for name in ("a.jsonl.gz", "b.jsonl.gz"):
        run("data", "export", "add", "--num-problems", "50", "--out", str(tmp_path / name))
    assert (tmp_path / "a.jsonl.gz").read_bytes() == (tmp_path / "b.jsonl.gz").read_bytes()


def test_an_export_that_breaks_off_leaves_nothing(tmp_path):
    def failing():
        yield {"problem": "1+1"}
        raise OSError(28, "No space left on device")

    with pytest.raises(RunError, match="No space left on device"):
        module.export(failing(), tmp_path / "x.jsonl", {}, lambda count: None)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["x.jsonl", "x.jsonl.gz"])
def test_an_export_has_its_name_only_once_it_is_on_the_disk(tmp_path, monkeypatch, name):
    path, flush = tmp_path / name, os.fsync

    def fail_to_reach_the_disk(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail_to_reach_the_disk)
    with pytest.raises(RunError, match=rf"cannot write .*{name}: No space left on device"):
        module.export(iter([{"problem": "1+1"}]), path, {}, lambda count: None)
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(os, "fsync", flush)
    module.export(iter([{"problem": "1+1"}]), path, {}, lambda count: None)
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    assert content == b'{"problem": "1+1"}\n'


def test_check_finds_no_overlap_and_counts_every_problem(run, tmp_path):
    picture = tmp_path / "data.png"
    code, out, _ = run(
        "data", "check", "add", "--num-problems", "20000", "--json", "--out", str(picture)
    )
    outcome = json.loads(out)
    assert code == 0
    assert set(outcome["overlap"].values()) == {0}
    assert len(outcome["histograms"]) == 3
    for histogram in outcome["histograms"].values():
        assert sum(histogram.values()) == 20_000
    assert picture.read_bytes().startswith(b"\x89PNG")
    table = run("data", "check", "add", "--num-problems", "2000")[1]
    assert ["train", "&", "test", "0"] in [line.split() for line in table.splitlines()]
    assert "longest carry chain, training split" in table


def test_splits_that_overlap_would_be_found(monkeypatch):
    from abacist.data import check as module

    def everything(task, shapes, split, config, generator):
        return task.draw(shapes, generator)

    monkeypatch.setattr(module, "draw_from_split", everything)
    outcome = check(TASK, RECIPE.split, 3_000, 0, lambda done, total: None)
    assert all(count > 0 for count in outcome.overlap.values())


@pytest.mark.parametrize(
    ("empty", "typed"),
    [
        ("validation", "add --task.max_digits 1 --split.validation_fraction 0.001"),
        ("validation", "add --task add-modulo --task.modulus 3 --format usual"),
        (
            "train",
            "add --task add-modulo --task.modulus 2 --format usual "
            "--split.test_fraction 0.5 --split.validation_fraction 0.4",
        ),
    ],
)
def test_a_split_without_a_problem_is_reported_as_empty(run, monkeypatch, empty, typed):
    monkeypatch.setattr("abacist.data.check._PROBLEMS_PER_BLOCK", 1_000)
    monkeypatch.setattr("abacist.data.split._MOST_DRAWS", 10)
    asked = ["data", "check", *typed.split(), "--split.exempt_digits", "0", "--num-problems", "100"]
    code, out, _ = run(*asked, "--json")
    data = json.loads(out)
    assert code == 0
    assert data["distinct"][empty] == 0
    assert [by_split[empty] for by_split in data["operations"].values()] == [0]
    assert empty not in data["answers"]
    assert bool(data["histograms"]) == (empty != "train")
    assert f"No {empty} problem was found" in run(*asked)[1]
    if empty == "train":
        code, _, error = run(*asked, "--out", "picture.png")
        assert code == 2
        assert "nothing to draw" in error


def test_the_longest_carry_chain_is_counted_as_by_hand():
    generator = torch.Generator().manual_seed(0)
    rows = torch.randint(10**9, (500, 2), generator=generator).tolist()
    rows += [[999_999, 1], [0, 0], [5, 5], [99, 990_001], [555, 555]]
    counted = TASK.longest_carry_chain(Problems.from_integers([tuple(row) for row in rows]))
    for (a, b), chain in zip(rows, counted.tolist(), strict=True):
        longest = current = carry = 0
        while a or b:
            carry = (a % 10 + b % 10 + carry) // 10
            current = current + 1 if carry else 0
            longest = max(longest, current)
            a, b = a // 10, b // 10
        assert chain == longest
    assert digits.longest_chain(torch.zeros(1, 3, dtype=torch.uint8)).tolist() == [0]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["data", "shwo", "add"], "invalid choice: 'shwo'"),
        (["data", "show", "ad"], "did you mean 'add'?"),
        (["data", "show", "add", "--split", "tests"], "invalid choice: 'tests'"),
        (["data", "show", "add", "--task.max_digits", "0"], "must be 1 to 1,000,000"),
        (["data", "show", "add", "--task.min_digits", "12"], "must be 1 to 10"),
        (["data", "export", "add"], "got none. Try --out problems.jsonl"),
        (["data", "export", "add", "--out", "x.csv"], "ending in .jsonl"),
        (["data", "export", "add", "--out", "/proc/x.jsonl"], "cannot write"),
        (["data", "check", "add", "--out", "x.pdf"], "draws a .png"),
        (["data", "check", "add", "--num-problems", "0"], "of at least 1"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_mistakes_get_one_line_and_exit_2(run, tmp_path, monkeypatch, arguments, complaint):
    monkeypatch.chdir(tmp_path)
    code, out, err = run(*arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert complaint in err
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_exists_is_not_overwritten(run, tmp_path):
    path = tmp_path / "problems.jsonl"
    path.write_text("precious")
    code, _, err = run("data", "export", "add", "--out", str(path))
    assert code == 2
    assert "exists already. Type another --out" in err
    assert path.read_text() == "precious"


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (
            ["add", "--task", "sort", "--format", "carry-trace"],
            "the carry-trace format cannot write this sorting task: it writes calculations with "
            "two operands. Try --format labels (or insertion-sort).",
        ),
        (["add", "--format", "carry-trace"], "it writes operands of at most 3 digits"),
        (["add", "--task", "sort"], "Try --format labels (or insertion-sort)."),
        (["add", "--task.min_digits", "5", "--task.max_digits", "3"], "must be 1 to 3, got 5"),
        (["add", "--task.max_digits", "0"], "task.max_digits must be 1 to 1,000,000, got 0"),
        (
            ["add", "--task", "sort", "--task.max_numbers", "53"],
            "task.max_numbers must be 1 to 52, got 53",
        ),
        (["add", "--task", "sum"], "task must be one of add, add-many, subtract"),
        (["add", "--format", "reverse"], "format must be one of reversed, usual"),
        (["add", "--task.operations", "+,^"], "each one of +, -, *, //, %"),
        (["add", "--task", "subtract", "--task.weights", "1,2"], "Try --task.weights 1."),
        (["add", "--format.end", "none"], "needs lines of one length"),
        (["add", "--split", "all"], "--split all requires export --every"),
        (["add", "--every"], "--every is an option of export, got show"),
        (["add", "--out", "a.jsonl"], "--out is an option of export and check, got show"),
    ],
)
def test_what_does_not_go_together_is_said_in_one_line(run, typed, said):
    code, out, error = run("data", "show", *typed)
    assert (code, out) == (2, "")
    assert said in error
    assert error.count("\n") == 1


def test_more_problems_than_a_disk_holds_are_not_exported(run, tmp_path):
    path = tmp_path / "every.jsonl"
    code, out, error = run("data", "export", "signed-calculator", "--every", "--out", str(path))
    assert (code, out, error.count("\n")) == (2, "", 1)
    assert "at most 100,000,000 problems, and this task has 19,999,976,000,007. Try" in error
    assert not path.exists()


def test_a_format_that_does_not_fit_is_refused_before_anything_is_written(run, tmp_path):
    path = tmp_path / "run"
    code, _, error = run("train", "add", "--format", "labels", "--out", str(path))
    assert code == 2
    assert "it writes labelled numbers to sort" in error
    assert not path.exists()


def test_a_split_without_problems_is_refused_before_anything_is_written(run, tmp_path):
    path = tmp_path / "run"
    settings = ["--task.max_digits", "1", "--split.validation_fraction", "0.001"]
    code, _, error = run("train", "add", *settings, "--out", str(path))
    assert code == 2
    assert "no validation problem" in error
    assert "--split.exempt_digits 1" in error
    assert not path.exists()


def test_an_encoders_format_is_refused_by_a_decoder(run, tmp_path):
    code, _, error = run("train", "add", "--format", "parallel", "--out", str(tmp_path / "run"))
    assert code == 2
    assert "Try --model.direction both, or --format reversed." in error


def test_every_problem_of_a_space_is_exported_once_with_its_split(run, tmp_path):
    path = tmp_path / "every.jsonl"
    arguments = ["--task", "five-operations", "--format", "carry-trace", "--task.max_digits", "1"]
    code, out, _ = run("data", "export", "add", *arguments, "--every", "--out", str(path))
    assert code == 0
    assert out.startswith("480 problems in ")
    records = [json.loads(line) for line in path.read_text().splitlines()]
    assert len({record["problem"] for record in records}) == 480
    for record in records:
        assert str(eval(record["problem"])) == record["answer"]
        assert len(record["prompt"] + record["target"]) == 28
        assert record["split"] in ("train", "validation", "test")
    manifest = json.loads((tmp_path / "every.jsonl.manifest.json").read_text())
    assert (manifest["num_problems"], manifest["split"], manifest["every"]) == (480, "all", True)
    only = tmp_path / "test.jsonl"
    run("data", "export", "add", *arguments, "--every", "--split", "test", "--out", str(only))
    expected = [record for record in records if record["split"] == "test"]
    assert [json.loads(line) for line in only.read_text().splitlines()] == expected


def test_too_large_a_space_is_not_exported_whole(run, tmp_path):
    code, _, error = run("data", "export", "add", "--every", "--out", str(tmp_path / "all.jsonl"))
    assert code == 2
    assert "Try --task.max_digits 3" in error


def test_check_counts_operations_and_describes_answers():
    recipe = recipes.find("five-operations-10m")
    task = recipe.task.build()
    outcome = check(task, recipe.split, 20_000, 0, lambda done, total: None)
    # The split has no validation problem of two single digits, which are left out.
    assert outcome.num_problems == 20_000
    for split in ("train", "validation"):
        assert sum(by_split[split] for by_split in outcome.operations.values()) == 20_000
    assert list(outcome.operations) == ["+", "-", "*", "//", "%"]
    drawn = answers_of_training(task, recipe.split)
    answers = outcome.answers["train"]
    assert (answers.smallest, answers.largest) == (min(drawn), max(drawn))
    assert answers.mean == pytest.approx(statistics.fmean(drawn))
    assert answers.standard_deviation == pytest.approx(statistics.pstdev(drawn))
    assert answers.smallest < 0


def answers_of_training(task, split):
    """The answers of the training problems that `check` draws, as Python integers."""
    generator = generators.generator(0, "check", "train", 0)
    problems = draw_from_split(task, task.draw_shapes(20_000, generator), "train", split, generator)
    return [int(text) for text in task.answer(problems).texts()]


def test_answers_that_are_no_small_numbers_have_no_statistics(run):
    for asked in (["sort"], ["multiply", "--task.max_digits", "10"]):
        out = run("data", "check", *asked, "--num-problems", "200", "--json")[1]
        assert json.loads(out)["answers"] == {}
    out = run("data", "check", "three-digit", "--num-problems", "500")[1]
    assert "Problems by operation and split" in out
    assert "standard deviation" in out


@pytest.mark.parametrize("name", TASKS)
def test_every_task_can_be_shown_exported_and_checked(run, tmp_path, name):
    format = "labels" if name == "sort" else "usual"
    asked = ["add", "--task", name, "--format", format]
    code, out, _ = run("data", "show", *asked, "--num-problems", "2", "--json")
    assert code == 0
    for line in out.splitlines():
        record = json.loads(line)
        assert record["target"] == record["answer"] + "<end>"
    path = tmp_path / "problems.jsonl.gz"
    assert run("data", "export", *asked, "--num-problems", "20", "--out", str(path))[0] == 0
    assert gzip.decompress(path.read_bytes()).count(b"\n") == 20
    code, out, _ = run("data", "check", *asked, "--num-problems", "500", "--json")
    assert code == 0
    assert set(json.loads(out)["overlap"].values()) == {0}


def test_an_encoders_target_is_what_it_writes_at_its_slots(run):
    asked = ["add", "--format", "parallel", "--task.max_digits", "3", "--num-problems", "5"]
    for line in run("data", "show", *asked, "--json")[1].splitlines():
        record = json.loads(line)
        assert record["prompt"].endswith("<slot>")
        assert record["target"] == record["answer"][::-1] + "<end>"
    shown = run("data", "show", *asked)[1]
    assert "label" in shown


def test_exempted_problems_are_named_in_the_check_and_in_the_file(run, tmp_path):
    asked = ["add", "--task.max_digits", "1", "--split.exempt_digits", "1"]
    code, out, _ = run("data", "check", *asked, "--num-problems", "300")
    assert code == 0
    assert "Problems of at most 1 digits are in all splits" in out
    path = tmp_path / "small.jsonl"
    run("data", "export", *asked, "--every", "--out", str(path))
    assert {json.loads(line)["split"] for line in path.read_text().splitlines()} == {"every"}
