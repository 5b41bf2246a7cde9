"""`abacist look`: tables, JSON, pictures, and one line for every mistake."""

import json
import shutil
from xml.etree import ElementTree

import pytest
from PIL import Image

import abacist
from abacist.inspection.lens import LENSES
from abacist.reports.lens_views import _VIEWS

HISTORY = {"training.record_embeddings_every": 12}


@pytest.fixture(scope="module")
def trained(tmp_path_factory, quick_settings):
    """Paths of hardly trained runs, by what is special about them."""
    settings = {
        "plain": {},
        "remembered": HISTORY,
        "looped": {"model.recurrences": 2, "model.positions": "abacus"},
        "products": {"task": "multiply", "format": "reversed"},
    }
    folder = tmp_path_factory.mktemp("looked-at")
    for name, changes in settings.items():
        abacist.train("add", out=folder / name, settings=quick_settings | changes, threads=1)
    return {name: str(folder / name) for name in settings}


@pytest.fixture(scope="module")
def random_orders(tmp_path_factory, quick_settings):
    """Paths of runs of several formats, with the order in which digits are written."""
    folder, orders = tmp_path_factory.mktemp("orders"), {}
    for name, order in (
        ("usual", "highest digit first"),
        ("zero-padded", "the answer units first"),
    ):
        settings = quick_settings | {"format": name, "model.positions": "sinusoidal"}
        abacist.train("add", out=folder / name, settings=settings, threads=1)
        orders[str(folder / name)] = order
    return orders


def test_without_options_next_tokens_and_attention_are_shown(run, trained):
    code, out, err = run("look", trained["plain"], "12+34")
    assert (code, err) == (0, "")
    assert out.startswith("12+34, as the model reads it: 21+43=64 (")
    assert "(units first; ⟨ start, ⟩ end)\n\nnext-tokens: " in out
    assert "attention: " in out
    assert "head 1" in out
    assert "\x1b" not in out


@pytest.mark.parametrize("name", LENSES)
def test_every_lens_is_printed_and_drawn(run, trained, tmp_path, name):
    path = trained[{"evolution": "remembered", "convergence": "looped"}.get(name, "plain")]
    picture = tmp_path / "seen.png"
    arguments = ["look", path, "458+67", "--lens", name, "--num-problems", "20"]
    code, out, _ = run(*arguments, "--out", str(picture))
    assert code == 0
    assert out.startswith("458+67, as the model reads it: 854+76=525 (units first; ")
    assert f"\n\n{name}: {LENSES[name].summary}" in out
    with Image.open(picture) as image:
        assert min(image.size) > 200
    code, out, _ = run(*arguments, "--json")
    output = json.loads(out)
    assert output["problem"] == "458+67"
    assert list(output["lenses"]) == [name]


@pytest.mark.parametrize("name", ["attention", "ablation", "embeddings"])
def test_vectors_hold_text_and_come_out_the_same_every_time(run, trained, tmp_path, name):
    pictures = [tmp_path / "one.svg", tmp_path / "two.svg"]
    for picture in pictures:
        arguments = ["458+67", "--lens", name, "--num-problems", "20", "--out", str(picture)]
        assert run("look", trained["plain"], *arguments)[0] == 0
    one, two = (picture.read_text() for picture in pictures)
    assert one == two
    assert ElementTree.fromstring(one).tag == "{http://www.w3.org/2000/svg}svg"
    assert "<text" in one
    assert "<dc:date>" not in one


def test_next_tokens_are_printed_at_the_answer_only(run, trained):
    _, out, _ = run("look", trained["plain"], "12+34", "--lens", "next-tokens")
    (columns,) = (line.split() for line in out.splitlines() if line.split()[:1] == ["→6"])
    assert columns == ["→6", "→4", "→⟩"]
    assert " 0%" not in out


def test_the_order_of_digits_is_stated_for_every_format(random_orders, run):
    for path, order in random_orders.items():
        heading = run("look", path, "12+34")[1].partition("\n")[0]
        assert f"({order}; " in heading
        assert heading.endswith("⟩ end)")
        assert ("⟨ start" in heading) == ("usual" in path)


def test_every_lens_has_its_picture():
    assert list(_VIEWS) == list(LENSES)


def test_all_lenses_go_into_a_directory_except_those_without_data(run, trained, tmp_path):
    pictures = tmp_path / "pictures"
    code, out, _ = run(
        "look", trained["plain"], "1+1", "--lens", "all", "--num-problems", "20",
        "--out", str(pictures),
    )  # fmt: skip
    assert code == 0
    assert "patching: no single digit of 1+1 can be changed" in out
    assert "evolution: this run recorded no embeddings during training" in out
    drawn = {path.stem for path in pictures.iterdir()}
    assert drawn == set(LENSES) - {"patching", "evolution", "convergence"}


def test_looped_models_with_learned_places_are_looked_at_too(run, trained):
    code, out, _ = run("look", trained["looped"], "12+34", "--lens", "all", "--num-problems", "20")
    assert code == 0
    assert "2 (trained)" in out
    assert "learned place" in out
    assert "head 1.0" in out


def test_a_problem_to_patch_from_can_be_typed(run, trained):
    code, out, _ = run("look", trained["plain"], "458+67", "--lens", "patching", "--with", "453+67")
    assert code == 0
    assert "458+67 with activations of 453+67" in out


def test_long_numbers_are_looked_at_in_full(run, trained):
    problem = f"{'9' * 60}+1"
    code, out, _ = run("look", trained["plain"], problem, "--lens", "first-mistake")
    assert code == 0
    assert "mistake at place" in out


MISTAKES = {
    "unknown lens": (["12+34", "--lens", "atention"], "did you mean 'attention'"),
    "no problem": (["twelve"], "it is not a sum of whole numbers"),
    "script": (["<script>"], "it is not a sum of whole numbers"),
    "emoji": (["🧮+1"], "cannot read"),
    "negative": (["-3+4"], "it has a minus sign"),
    "empty": ([""], "empty problem"),
    "none": ([], "abacist look takes one problem, got 0. Type abacist look latest 12+34."),
    "two": (["1+2", "3+4"], "abacist look takes one problem, got 2"),
    "unlooped": (["12+34", "--lens", "convergence"], "runs its layers once"),
    "nothing kept": (["12+34", "--lens", "evolution"], "recorded no embeddings during training"),
    "too long": ([f"{'9' * 100_000}+1"], "lenses accept at most 512"),
    "other length": (
        ["458+67", "--lens", "patching", "--with", "45+67"],
        "have different layouts",
    ),
    "unreadable other": (
        ["12+34", "--lens", "patching", "--with", "ten"],
        "it is not a sum of whole numbers",
    ),
    "unused other": (
        ["12+34", "--with", "16+34"],
        "--with is the second problem of the lens patching, and the lenses are next-tokens,attention",
    ),
    "picture of many": (["12+34", "--out", "seen.png"], "holds the picture of one lens"),
    "vectors of many": (["12+34", "--out", "seen.svg"], "holds the picture of one lens"),
    "other picture": (
        ["12+34", "--out", "seen.pdf"],
        "a directory, a .png or a .svg file, got seen.pdf. Try --out seen.svg.",
    ),
    "few problems": (["12+34", "--num-problems", "0"], "whole number from 4 to 100,000, got '0'"),
    "unknown option": (["12+34", "--lense", "all"], "did you mean '--lens'"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_reported_in_one_line(run, trained, name):
    arguments, said = MISTAKES[name]
    code, out, err = run("look", trained["plain"], *arguments)
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("lens", ["carry-probe", "patching"])
def test_tasks_without_carries_are_refused(run, trained, lens):
    code, _, err = run("look", trained["products"], "12*34", "--lens", lens)
    assert code == 2
    assert err.startswith(f"abacist: lens {lens}: ")


def test_help_lists_every_lens(run):
    code, out, _ = run("look", "--help")
    assert code == 0
    for name, lens in LENSES.items():
        assert f"{name:16}{lens.summary}" in out


def test_a_run_without_its_history_is_still_looked_at(run, trained, tmp_path):
    shutil.copytree(trained["remembered"], tmp_path / "copy")
    shutil.rmtree(tmp_path / "copy" / "embeddings")
    code, out, _ = run("look", str(tmp_path / "copy"), "12+34", "--lens", "embeddings")
    assert code == 0
    assert "wave of k periods" in out
