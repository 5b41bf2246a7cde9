"""`abacist report`: everything that is recorded of a run, in one file that needs nothing else."""

import itertools
import json
import re
import shlex
import shutil
import subprocess
import sys
import time
from dataclasses import replace

import pytest
from pages import Page

import abacist
from abacist import recipes
from abacist.certificates.record import Certificate
from abacist.cli import main
from abacist.errors import RunError
from abacist.inspection.place_attention import place_attention
from abacist.intervals import Proportion
from abacist.reports import repeat_command, run_records, run_report, score_plots, training_plots
from abacist.reports.html import MAX_BYTES
from abacist.runs import identity, repairs
from abacist.runs.directory import RunDirectory
from abacist.scoring.records import Row, Section
from abacist.scoring.scorecard import SUITES, select_suites

SCRIPT = "<script>alert(1)</script>"

KINDS = {
    "decoder": {"training.record_embeddings_every": 8},
    "encoder": {"format": "parallel", "model.direction": "both"},
    "looped": {"model.recurrences": 2, "model.injection": "add"},
    "sorting": {"task": "sort", "format": "labels", "task.max_numbers": 3, "task.max_digits": 2},
    "modular": {
        "task": "add-modulo",
        "task.modulus": 53,
        "format": "residues",
        "model.positions": "gpt2",
    },
    "spaced": {"format.spaces": "around"},
}


@pytest.fixture(scope="session")
def trained_once(tmp_path_factory, quick_settings):
    """A hardly trained run of each kind, scored by every suite that has a use for it."""
    folder, runs = tmp_path_factory.mktemp("reported"), {}
    for kind, changes in KINDS.items():
        settings = quick_settings | {"scoring.largest_space": 5_000} | changes
        if kind == "modular":
            del settings["task.max_digits"]
        run = abacist.train("add", out=folder / kind, settings=settings, threads=1)
        run.score(["all"], num_problems=10, grid_size=4, grid_problems=5, budget=40, longest=20)
        run.prove()
        run.save_attention()
        runs[kind] = run
    return runs


@pytest.fixture
def decoder(trained_once, tmp_path):
    """A copy of a run that a test may change."""
    shutil.copytree(trained_once["decoder"].path, tmp_path / "run")
    return RunDirectory(tmp_path / "run")


def page_of(directory: RunDirectory) -> Page:
    return Page(run_report.run_report(run_records.read(directory)))


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


def test_a_page_loads_nothing_and_runs_nothing(trained_once, kind):
    text = run_report.run_report(run_records.read(trained_once[kind].directory))
    page = Page(text)
    assert len(text.encode()) < MAX_BYTES
    assert not {"script", "link", "img", "iframe", "object", "base"} & {t for t, _ in page.elements}
    for _, attributes in page.elements:
        assert not {"src", "srcset", "xlink:href", "style"} & set(attributes)
        assert not [name for name in attributes if name.startswith("on")]
        assert (attributes.get("href") or "#").startswith("#")
    assert "url(" not in page.styles
    assert "@import" not in page.styles
    assert "//" not in page.styles


def test_a_page_can_be_read_by_everyone(trained_once, kind):
    page = page_of(trained_once[kind].directory)
    assert page.all("html")[0]["lang"] == "en"
    assert [nav["aria-label"] for nav in page.all("nav")] == ["Contents"]
    assert page.headings[0][0] == 1
    levels = [level for level, _ in page.headings]
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    pictures = page.all("svg")
    assert pictures
    assert all(p["role"] == "img" and len(p["aria-label"]) > 20 for p in pictures)
    assert len(page.all("caption")) == len(page.all("table")) > 3
    assert all(header["scope"] in ("row", "col") for header in page.all("th"))
    identifiers = [a["id"] for _, a in page.elements if "id" in a]
    assert len(set(identifiers)) == len(identifiers)
    for link in page.all("a"):
        assert link["href"].removeprefix("#") in identifiers


def test_every_section_and_row_of_the_scorecard_is_there(trained_once, kind):
    run = trained_once[kind]
    card = json.loads(run.directory.scorecard.read_text())
    page = page_of(run.directory)
    assert set(card["sections"]) >= set(select_suites(["all"], run.trained_model())) - {
        "exhaustive"
    }
    for section in card["sections"].values():
        assert (3, section["title"]) in page.headings
        for row in section["rows"]:
            assert row["name"] in page.text


def test_the_report_knows_every_suite_and_proposes_those_with_a_use(trained_once, kind):
    assert set(run_report.SUITES) == set(SUITES)
    run = trained_once[kind]
    useful = set(select_suites(["all"], run.trained_model()))
    assert {name for name in SUITES if run_report._applies(name, run.recipe)} == useful


def test_pictures_of_what_was_recorded(trained_once):
    page = page_of(trained_once["decoder"].directory)
    labels = " ".join(svg["aria-label"] for svg in page.all("svg"))
    for message in (
        "Loss by training step, logarithmic scale",
        "Loss by training step, linear scale",
        "Exact match by training step",
        "Token accuracy by training step",
        "Exact match by number of digits",
        "Exact match by longest chain of carries",
        "Accuracy of single answer tokens by place",
        "Exact match for every pair of operand lengths up to 4 digits",
        "Embeddings of 0 to 9 at steps 0, 8, 16, 24",
        "Embeddings of 0 to 9, moving from step 0 to step 24",
        "Embeddings of all 14 symbols in principal components at steps 0, 8, 16, 24",
        "Embeddings of all 14 symbols in dimensions 1 and 2 at steps 0, 8, 16, 24",
        "Mean attention by difference of place",
    ):
        assert message in labels
    texts = page_of(trained_once["decoder"].directory).text
    assert "validation 20, training sample 200" in texts


def test_single_losses_and_watched_problems_are_in_the_report(tmp_path, quick_settings):
    settings = quick_settings | {
        "training.record_loss_every": 1,
        "training.watch": ("1+1", "57+24"),
    }
    run = abacist.train("add", out=tmp_path / "run", settings=settings, threads=1)
    records = run_records.read(run.directory)
    assert [record.step for record in records.losses] == list(range(1, 25))
    loss = training_plots.of_run(records.metrics, records.losses)[0]
    names = ["training batches", "validation", "training sample", "single batches"]
    assert [curve.name for curve in loss.curves] == names
    page = page_of(run.directory)
    assert "Watched problems, before and after training" in page.text
    assert "written at step 24" in page.text
    run.directory.watched.write_text('{"step": 1, "problem": 3}\n')
    run.directory.losses.write_text('{"step": 1, "loss": "x"}\n')
    records = run_records.read(run.directory)
    assert (records.losses, records.watched) == ([], [])
    assert len(records.damages) == 2


def test_beginnings_and_repairs_are_in_the_report(tmp_path, quick_settings, monkeypatch):
    monkeypatch.setattr(repairs, "_NUM_DRAWN", 50)
    settings = quick_settings | {
        "model.positions": "coupling",
        "training.num_beginnings": 2,
        "training.beginning_steps": 3,
        "training.repair_rounds": 1,
        "training.repair_steps": 4,
    }
    run = abacist.train("add", out=tmp_path / "run", settings=settings, threads=1)
    records = run_records.read(run.directory)
    assert [beginning.number for beginning in records.beginnings] == [0, 1]
    (check,) = records.repairs
    text = page_of(run.directory).text
    assert "Beginnings, of which the best was trained to its end" in text
    assert f"50 drawn problems{check.problems[0]}" in text
    assert "trained for 24 of 24 steps and 4 of repairs" in text
    run.directory.beginnings.write_text('{"step": 3, "number": "x"}\n')
    run.directory.repairs.write_text('{"step": 24, "wrong": 1, "problems": 5}\n')
    records = run_records.read(run.directory)
    assert (records.beginnings, records.repairs) == ([], [])
    assert len(records.damages) == 2


def test_residues_are_drawn_each_as_one_symbol(tmp_path, quick_settings):
    settings = quick_settings | KINDS["modular"] | {"training.record_embeddings_every": 12}
    del settings["task.max_digits"]
    run = abacist.train("add", out=tmp_path / "run", settings=settings, threads=1)
    assert "Embeddings of 0 to 52 at steps 0, 12, 24" in str(page_of(run.directory).all("svg"))


def test_the_attention_drawn_and_described_is_that_of_the_lens(trained_once, kind):
    run = trained_once[kind]
    seen = place_attention(run.look(run.task.example))
    page = page_of(run.directory)
    (label,) = (
        svg["aria-label"] for svg in page.all("svg") if "Mean attention" in svg["aria-label"]
    )
    by_difference = seen.weight.values.sum(axis=2).reshape(-1, len(seen.differences))
    for head, shares in enumerate(by_difference):
        name = f"{head // 2}.{head % 2}" if len(by_difference) > 2 else str(head)
        difference = seen.differences[shares.argmax()]
        clauses = label.replace(" and ", ", ").split("; ")
        (clause,) = (c for c in clauses if re.search(rf"[ ]{re.escape(name)}[, ]", c))
        if difference[-1].isdigit():
            assert difference.replace("-", "−") in clause
    assert f"{seen.num_tokens:,} answer tokens of {seen.num_problems:,} test problems" in page.text
    for name, shares in zip(seen.fields, seen.weight.values.max(axis=(0, 1)), strict=True):
        assert (f"{name} " in page.text) or shares.max() < 0.005


def test_embeddings_move_to_where_they_are_drawn_standing(decoder):
    page = page_of(decoder)
    ends = {
        attributes["class"].split()[1]: attributes["transform"]
        for attributes in page.all("text")
        if attributes.get("class", "").startswith("moves p")
    }
    assert len(ends) == 10
    for name, end in ends.items():
        frames = page.styles.partition(f"@keyframes {name}{{")[2].partition("}}")[0]
        *_, x, y = re.findall(r"-?[\d.]+(?=px)", frames)
        assert end == f"translate({x} {y})"
        assert frames.count("translate") == 5, "at 0, 8, 16 and 24 steps, and standing still"
    shown = [a["class"] for a in page.all("text") if "when" in a.get("class", "")]
    assert [kind.endswith("last") for kind in shown] == [False, False, False, True]


def test_nothing_moves_on_paper_or_for_those_who_want_no_motion(decoder):
    styles = page_of(decoder).styles
    start = styles.index("@media screen and (prefers-reduced-motion: no-preference) {")
    wanted = styles[start : styles.index("\n}", start)]
    assert "animation-duration" in wanted
    assert "animation-duration" not in styles.replace(wanted, "")
    assert ".hold:checked ~ figure .moves { animation-play-state: paused; }" in wanted


def test_the_command_looks_once_at_what_heads_attend_to(decoder, capsys):
    decoder.attention.unlink()
    assert main(["report", str(decoder.path)]) == 0
    assert "Left out" not in capsys.readouterr().out
    assert (2, "Attention by place") in Page(decoder.report.read_text()).headings
    assert decoder.attention in decoder.results


def test_a_run_whose_weights_are_damaged_is_reported_without_them(decoder, capsys):
    decoder.attention.unlink()
    for weights in decoder.checkpoints.glob("*/model.safetensors"):
        weights.write_bytes(b"nonsense")
    assert main(["report", str(decoder.path)]) == 0
    assert "Left out: attention by place: " in capsys.readouterr().out
    assert "Attention by place" not in decoder.report.read_text()


def test_the_command_that_repeats_a_run_makes_the_same_recipe(trained_once, kind, tmp_path):
    run = trained_once[kind]
    text = run_report.run_report(run_records.read(run.directory))
    typed = re.search(r"<pre><code>(.+?)</code></pre>", text)[1]
    words = shlex.split(re.sub("<.+?>", "", typed))
    assert words[:3] == ["abacist", "train", "add"]
    assert words[-6:] == ["--seed", "0", "--threads", "1", "--device", "cpu"]
    assert main([*words[1:], "--train-only", "--out", str(tmp_path / "again")]) == 0
    again = json.loads((tmp_path / "again" / "run.json").read_text())
    assert again["recipe"] == json.loads(run.directory.run_json.read_text())["recipe"]


def test_changed_settings_stand_beside_those_of_the_recipe(decoder):
    text = run_report.run_report(run_records.read(decoder))
    assert "Settings changed from the recipe add" in text
    assert "<code>model.width</code></th><td>8</td><td>32</td>" in text


def test_a_report_describes_its_run_and_not_the_promise_of_the_recipe(decoder):
    text = run_report.run_report(run_records.read(decoder))
    records = run_records.read(decoder)
    count = len(repeat_command.changed(recipes.find("add"), records.recipe))
    assert f"Recipe add, {count} settings changed; " in text
    assert recipes.promise("add")[0].removesuffix(".") not in text
    unchanged = replace(records, recipe=recipes.find("add"))
    assert "Recipe add, no settings changed; " in run_report.run_report(unchanged)


def test_results_stand_before_what_the_run_was_trained_with(decoder):
    titles = [title for level, title in page_of(decoder).headings if level == 2]
    assert titles.index("Scorecard") == 0
    assert titles[-2:] == ["How to repeat it", "Settings"]


def test_settings_are_folded_except_for_the_changed_ones(decoder):
    text = run_report.run_report(run_records.read(decoder))
    folded = text[text.index("<details>") : text.index("</details>")]
    assert "All settings" in folded
    assert "Settings changed from the recipe" not in folded


def test_a_certificate_is_drawn_with_a_tile_for_each_neighbourhood(decoder):
    record = replace(
        run_records.read(decoder),
        certificate=Certificate(True, "adds all pairs.", neighbourhoods=24_518),
    )
    page = Page(run_report.run_report(record))
    assert "24,518 tiles, one for each neighbourhood" in [
        svg["aria-label"] for svg in page.all("svg")
    ]
    assert "right at every length" in page.text
    wrong = replace(record, certificate=Certificate(False, "errs.", neighbourhoods=500, wrong=3))
    assert "3 are wrong" in Page(run_report.run_report(wrong)).text


def test_letters_are_equally_large_in_all_pictures(decoder):
    pictures = [svg for svg in page_of(decoder).all("svg") if svg.get("class") != "tiles"]
    assert pictures
    for picture in pictures:
        assert picture["width"] == picture["viewbox"].split()[2]


def test_what_a_user_or_a_model_wrote_is_text(decoder):
    failures = [json.loads(line) for line in decoder.failures.read_text().splitlines()]
    failures[0] |= {"problem": SCRIPT, "answer": SCRIPT, "expected": "<b>&"}
    decoder.failures.write_text("".join(json.dumps(failure) + "\n" for failure in failures))
    for path in (decoder.scorecard, decoder.certificate, decoder.run_json):
        data = json.loads(path.read_text())
        if "sections" in data:
            data["sections"]["lengths"]["title"] = SCRIPT
            data["sections"]["lengths"]["rows"][0]["name"] = SCRIPT
            data["sections"]["lengths"]["features"] = [
                {"name": SCRIPT, "value": SCRIPT, "expected": 0.1,
                 "among_failures": {"successes": 5, "n": 9}}
            ]  # fmt: skip
        elif "reason" in data:
            data |= {"certified": False, "reason": SCRIPT}
            data["counterexample"] = dict.fromkeys(("problem", "answer", "expected"), SCRIPT)
        else:
            data["recipe"]["name"] = SCRIPT
            data["machine"] = SCRIPT + '"'
        path.write_text(json.dumps(data))
    name_this_model(decoder)
    page = page_of(decoder)
    assert not page.all("script")
    assert not page.all("b")
    assert page.text.count(SCRIPT) >= 8


def name_this_model(directory):
    """Give every record that was written by hand the identity of the model in the run."""
    model = identity.of_directory(directory).to_json()
    paths = (directory.scorecard, directory.certificate, directory.attention, directory.failures)
    for path in paths:
        lines = path.read_text().splitlines() if path == directory.failures else [path.read_text()]
        path.write_text("".join(named(line, model) + "\n" for line in lines))


def named(line, model):
    """A line of JSON with the identity of a model, if the line is an object."""
    try:
        data = json.loads(line)
    except ValueError:
        return line
    return json.dumps(data | model) if data and isinstance(data, dict) else line


def test_what_is_no_answer_is_called_so(decoder):
    failure = json.loads(decoder.failures.read_text().splitlines()[0]) | {"answer": None}
    decoder.failures.write_text(json.dumps(failure) + "\n")
    proof = json.loads(decoder.certificate.read_text()) | {"certified": False}
    proof["counterexample"] = {"problem": "1+1", "answer": None, "expected": "2"}
    decoder.certificate.write_text(json.dumps(proof))
    page = page_of(decoder)
    assert page.text.count("(no answer)") == 2
    assert "None" not in page.text


def test_an_unscored_run_names_what_is_missing(decoder):
    for path in (decoder.scorecard, decoder.certificate, decoder.failures):
        path.unlink()
    shutil.rmtree(decoder.embeddings)
    page = page_of(decoder)
    assert "Not proved." in page.text
    assert "never scored on test problems" in page.text
    for suite in ("lengths", "strata", "grid", "counterexamples"):
        assert f"abacist score {decoder.path} --suite {suite}" in page.text
    assert f"abacist prove {decoder.path}" in page.text
    assert "--training.record_embeddings_every 3" in page.text
    assert "recurrences" not in page.text.partition("What is missing")[2].partition("Settings")[0]


def test_a_looped_run_has_a_curve_over_recurrences_for_each_sample(trained_once):
    run = trained_once["looped"]
    section = run_records.read(run.directory).sections["recurrences"]
    (chart,) = score_plots.of_section("recurrences", section)
    assert [curve.name for curve in chart.curves] == ["trained lengths", "6 digits"]
    assert [name for _, name in chart.across.ticks] == ["1", "2", "4", "8", "16", "32"]
    assert chart.across.label == "recurrences, 2 in training"
    assert "Exact match by number of recurrences" in page_of(run.directory).text


def test_a_damaged_section_of_recurrences_has_no_curve():
    rows = [Row(name, "trained", 3, Proportion(1, 2)) for name in ("nonsense", "a, 2 recurrences")]
    assert score_plots.of_section("recurrences", Section("", rows)) == []


def test_nothing_is_missing_where_all_was_done(trained_once):
    titles = [title for _, title in page_of(trained_once["decoder"].directory).headings]
    assert "What is missing" not in titles


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("scorecard", "{", "scorecard.json is damaged and left out. Type abacist score"),
        ("scorecard", '{"sections": 3}', "scorecard.json is damaged"),
        ("certificate", "[]", "certificate.json is damaged and left out. Type abacist prove"),
        ("certificate", "{}", "certificate.json is damaged"),
        ("attention", "3", "attention.json is damaged and left out. Delete it, and type abacist"),
        (
            "attention",
            '{"fields": ["a"], "differences": ["0"], "weight": {"values": [[[[0.5]]]]}, '
            '"num_problems": 1, "num_tokens": 1}',
            "attention.json is damaged",
        ),
        ("failures", '{"suite": "lengths"}\nnonsense\n', "2 damaged lines of"),
        ("metrics", "nonsense\n", "metrics.jsonl is damaged from line 1 on"),
        ("metrics", '{"step": 1}\n', "metrics.jsonl is damaged from line 1 on"),
    ],
)
def test_a_damaged_record_is_reported_and_left_out(decoder, name, content, message):
    getattr(decoder, name).write_text(content)
    name_this_model(decoder)
    page = page_of(decoder)
    assert message in page.text
    assert (2, "Settings") in page.headings


def test_a_damaged_section_leaves_the_others(decoder):
    card = json.loads(decoder.scorecard.read_text())
    card["sections"]["grid"]["details"]["right"] = [[1]]
    del card["sections"]["strata"]["rows"][0]["digits"]
    card["sections"]["splits"]["rows"][0]["proportion"]["successes"] = 10**6
    decoder.scorecard.write_text(json.dumps(card))
    page = page_of(decoder)
    assert f"abacist score {decoder.path} --suite grid" in page.text
    assert f"abacist score {decoder.path} --suite strata" in page.text
    assert f"abacist score {decoder.path} --suite splits" in page.text
    assert (3, "Exact match on test problems") in page.headings


def test_damaged_embeddings_are_left_out(decoder):
    (decoder.embeddings / "step-000008.safetensors").write_bytes(b"nonsense")
    page = page_of(decoder)
    assert "step-000008.safetensors is damaged" in page.text
    assert "Embeddings of 0 to 9 at steps 0, 16, 24" in str(page.all("svg"))


def test_a_loss_that_is_no_number_is_not_drawn(decoder):
    lines = [json.loads(line) for line in decoder.metrics.read_text().splitlines()]
    lines[1]["loss"] = float("nan")
    decoder.metrics.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert "nan" not in str(page_of(decoder).all("path"))


def test_large_records_stay_below_the_limit(decoder):
    card = json.loads(decoder.scorecard.read_text())
    size = 400
    card["sections"]["grid"]["details"] |= {
        "right": [[3] * size] * size,
        "count": [[4] * size] * size,
    }
    row = card["sections"]["lengths"]["rows"][1]
    card["sections"]["lengths"]["rows"] = [row | {"digits": n} for n in range(1, 5_000)]
    decoder.scorecard.write_text(json.dumps(card))
    failure = json.loads(decoder.failures.read_text().splitlines()[0])
    long = failure | {"problem": "9" * 10**5 + "+1", "answer": "9" * 10**5, "expected": "8" * 10**5}
    decoder.failures.write_text((json.dumps(long) + "\n") * 30)
    line = json.loads(decoder.metrics.read_text().splitlines()[0])
    many = (json.dumps(line | {"step": step}) + "\n" for step in range(1, 5_000))
    decoder.metrics.write_text("".join(many))
    text = run_report.run_report(run_records.read(decoder))
    Page(text)
    assert len(text.encode()) < MAX_BYTES / 2


def test_the_command_writes_the_report_and_says_where(decoder, tmp_path, capsys):
    assert main(["report", str(decoder.path)]) == 0
    assert str(decoder.report) in capsys.readouterr().out
    Page(decoder.report.read_text())
    out = tmp_path / "elsewhere.html"
    assert main(["report", str(decoder.path), "--out", str(out), "--json"]) == 0
    message = json.loads(capsys.readouterr().out)
    assert message["report"] == str(out)
    assert message["bytes"] == out.stat().st_size
    assert out.read_bytes() == decoder.report.read_bytes()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["no-such-run"], "there is no run no-such-run. Type a run directory"),
        (["{run}", "--out", "report.pdf"], "--out writes HTML, got 'report.pdf'. Type --out"),
        (["{run}", "--out", "no/where/report.html"], "cannot write no/where/report.html"),
        ([], "required: RUN. Type abacist report --help"),
    ],
)
def test_mistakes_are_reported_in_one_line(decoder, words, message, capsys):
    assert main(["report", *(word.format(run=decoder.path) for word in words)]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_a_run_that_was_never_trained_has_no_report(decoder):
    shutil.rmtree(decoder.checkpoints)
    decoder.metrics.unlink()
    with pytest.raises(RunError, match=r"never trained.+Type abacist train --resume --out"):
        run_records.read(decoder)


def test_a_report_needs_no_torch_and_little_time(decoder):
    script = (
        "import sys\nfrom abacist.cli import main\n"
        "assert main(sys.argv[1:]) == 0\nassert 'torch' not in sys.modules\n"
    )
    begin = time.perf_counter()
    words = [sys.executable, "-c", script, "report", str(decoder.path)]
    result = subprocess.run(words, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert time.perf_counter() - begin < 15


def test_a_run_that_goes_on_takes_its_report_away(decoder):
    assert decoder.report in decoder.results
