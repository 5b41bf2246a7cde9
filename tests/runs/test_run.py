"""One line each: tokens, logits, activations, attention and generation of a run, and short reprs."""

import json
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

import abacist
from abacist.certificates.record import Certificate
from abacist.errors import ConfigurationError, ProblemError, RunError
from abacist.files import locked
from abacist.formats.annotated import EVERYWHERE, NO_PLACE
from abacist.models.teacher_forcing import coordinates_of
from abacist.runs.directory import RunDirectory
from abacist.runs.scores import ScorecardFile
from abacist.scoring.records import Row, Scorecard, Section

ROOT = Path(__file__).parents[2]


def test_tokens_are_the_annotated_line(untrained):
    tokens = untrained.tokens("12+34")
    assert tokens["token"] == ["<start>", *"21+43=64", "<end>"]
    task, format = untrained.task, untrained.format
    problems = task.parse(["12+34"])
    line = format.write(problems, task.answer(problems))
    special = {NO_PLACE: None, EVERYWHERE: "*"}
    assert tokens["id"] == line.ids[0].tolist()
    assert tokens["place"] == [special.get(place, place) for place in line.place[0].tolist()]
    assert tokens["target"] == line.target[0].tolist()
    assert tokens["field"][:5] == ["start", "operand 1", "operand 1", "operator", "operand 2"]
    assert len(tokens) == len(list(tokens)) == 10
    assert list(tokens)[1] | {"token": "2", "place": 1, "target": False} == list(tokens)[1]
    assert repr(tokens).splitlines()[2].split() == [
        "1",
        "2",
        "2",
        "operand",
        "1",
        "1",
        "1",
        "False",
    ]
    with pytest.raises(ConfigurationError, match="did you mean 'place'"):
        _ = tokens["plaice"]


def test_tokens_of_an_encoder_have_the_right_answer_beside_the_line(tmp_path, quick_settings):
    run = abacist.train("parallel", out=tmp_path / "run", settings=quick_settings)
    tokens = run.tokens("12+34")
    written = [label for label in tokens["label"] if label is not None]
    assert "".join(written).startswith("64")
    assert run.logits("12+34").shape == (len(tokens), len(run.format.vocabulary))


def test_logits_are_those_of_the_model_on_the_line_with_the_right_answer(untrained):
    task, format = untrained.task, untrained.format
    problems = task.parse(["458+67"])
    line = format.write(problems, task.answer(problems))
    with torch.no_grad():
        expected = untrained.model(line.ids, coordinates_of(line))[0, :-1]
    logits = untrained.logits("458+67")
    torch.testing.assert_close(logits, expected, rtol=1e-4, atol=1e-4)
    assert not logits.requires_grad
    assert len(logits) == len(untrained.tokens("458+67")) - 1


def test_a_hook_changes_the_logits_and_the_cache(untrained):
    hooks = {"blocks.0.hook_mlp_out": lambda mlp_out: 0 * mlp_out}
    assert not torch.equal(untrained.logits("1+2", hooks), untrained.logits("1+2"))
    assert not untrained.cache("1+2", hooks)["blocks.0.hook_mlp_out"].any()
    with pytest.raises(ConfigurationError, match=r"did you mean 'blocks.0.hook_mlp_out'"):
        untrained.logits("1+2", {"blocks.0.hook_mlp_uot": lambda x: x})


def test_attention_is_the_pattern_of_every_head(untrained):
    pattern = untrained.attention("12+34")
    assert pattern.shape == (1, 2, 9, 9)
    torch.testing.assert_close(pattern.sum(dim=-1), torch.ones(1, 2, 9))
    assert torch.equal(pattern, untrained.cache("12+34")["pattern", 0])


def test_generate_is_the_text_that_solve_reads(certified):
    assert certified.generate("12+34") == "64<end>"


def test_a_setting_that_no_suite_follows_is_refused(untrained):
    with pytest.raises(ConfigurationError, match="Type --suite grid, or leave it out"):
        untrained.score(["lengths"], grid_size=3)


def test_a_problem_that_is_no_text_is_refused(certified):
    with pytest.raises(ProblemError, match="problems are text, got 5"):
        certified.solve([5])


def test_reprs_are_short_and_html_shows_text_as_text(certified):
    assert repr(certified) == f"Run({str(certified.path)!r}, recipe 'add', seed 0, step 900)"
    section = Section("title", [Row("<b>", "trained", 1, None, note="none")], errors=2)
    card = Scorecard({"lengths": section})
    assert repr(card) == "Scorecard(lengths: 1 rows, 2 wrong answers)"
    assert "&lt;b&gt;" in card._repr_html_()
    certificate = abacist.Run.prove(certified, max_minutes=0)
    assert repr(certificate).startswith("Certificate(not certified: ")
    for shown in (certified, card, certificate, certified.tokens("1+2"), certified.cache("1+2")):
        assert shown._repr_html_().startswith("<table><caption>")
        assert len(repr(shown)) < 500


def test_two_processes_that_score_one_run_keep_the_sections_of_both(untrained):
    files = [
        ScorecardFile(untrained.directory, untrained.step, untrained.identity) for _ in range(2)
    ]
    for file, suite in zip(files, ("lengths", "strata"), strict=True):
        file.store(Scorecard({suite: Section(suite, [Row("a row", "trained", 1, None)])}))
    stored = json.loads(untrained.directory.scorecard.read_text())
    assert list(stored["sections"]) == ["lengths", "strata"]


def test_a_scorecard_is_not_read_while_another_process_is_about_to_write_it(untrained, monkeypatch):
    read = ScorecardFile._read

    def read_slowly(file):
        stored = read(file)
        time.sleep(0.1)
        return stored

    def store(suite):
        file = ScorecardFile(untrained.directory, untrained.step, untrained.identity)
        file.store(Scorecard({suite: Section(suite, [Row("a row", "trained", 1, None)])}))

    monkeypatch.setattr(ScorecardFile, "_read", read_slowly)
    # The lock is one of open files, so threads wait for each other as processes do. A training locks
    # the directory for hours, for which nothing waits.
    with locked(untrained.path), ThreadPoolExecutor(2) as threads:
        list(threads.map(store, ("lengths", "strata")))
    stored = json.loads(untrained.directory.scorecard.read_text())
    assert stored["sections"].keys() == {"lengths", "strata"}


def test_a_record_that_cannot_be_added_is_reported_in_one_line(tmp_path):
    directory = RunDirectory(tmp_path)
    directory.metrics.mkdir()
    with pytest.raises(RunError, match=r"cannot write .*metrics\.jsonl: Is a directory\.$"):
        directory.append(directory.metrics, {"step": 1})


def test_dir_lists_the_public_names():
    assert set(abacist.__all__) <= set(dir(abacist))


@pytest.mark.parametrize(
    ("margin", "text"),
    [(10.61, "10.6"), (7.84, "7.8"), (7.78, "7.78"), (0.000678, "0.000678"), (11.0, "11")],
)
def test_the_margin_that_rounding_leaves_is_never_rounded_up(margin, text):
    certificate = Certificate(True, "claim", remaining_margin=margin, rounding_is_proved=True)
    assert certificate.rounding == f"at least {text} after rounding in float32 on any machine"


def test_a_refusal_in_another_precision_leaves_the_certificate_in_place(tmp_path):
    shutil.copytree(ROOT / "examples" / "add-tiny", tmp_path / "run")
    run = abacist.load(tmp_path / "run")
    before = run.directory.certificate.read_bytes()
    with pytest.warns(UserWarning, match="keeps the certificate that these weights have"):
        refusal = run.prove(precision="bfloat16")
    assert not refusal.certified
    assert "in bfloat16 can lose by rounding" in refusal.reason
    assert run.directory.certificate.read_bytes() == before
    assert run.prove().certified
