"""Documents that cannot lie: tables come from records, commands and names exist."""

import importlib.util
import json
import re
from dataclasses import fields
from pathlib import Path

import pytest
import typed_commands
from extension_tasks import column_task

from abacist.cli import COMMANDS
from abacist.configuration import settings
from abacist.formats.config import FORMATS
from abacist.inspection.lens import LENSES
from abacist.intervals import percent
from abacist.models.config import POSITIONS, ModelConfig, PositionScheme
from abacist.recipes import RECIPES, find
from abacist.runs.run import build_model
from abacist.scoring.config import ScoringConfig
from abacist.scoring.records import Failure, Solution
from abacist.scoring.scorecard import SUITES
from abacist.tasks.config import TASKS, ArithmeticConfig
from abacist.training.config import TrainingConfig

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
DOCUMENTS = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]


def benchmark(name: str):
    specification = importlib.util.spec_from_file_location(name, ROOT / f"benchmarks/{name}.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_tables_and_the_page_of_results_are_those_of_the_committed_records():
    for path, text in benchmark("records").pages().items():
        assert text == path.read_text(), path


def test_every_recipe_has_its_examination():
    assert set(benchmark("records").EXAMINATIONS) >= set(RECIPES)


def anchors_of(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document):
    for target in re.findall(r"\]\(([^)\s]+)\)", document.read_text()):
        if "://" in target:
            continue
        file, _, anchor = target.partition("#")
        page = document.parent / file if file else document
        assert page.exists(), target
        if anchor:
            assert anchor in anchors_of(page), target


def test_the_readme_is_short():
    assert len(README.split()) <= 1_300


def test_the_output_shown_in_the_readme_is_that_of_the_record():
    seed = json.loads((ROOT / "results" / "add.json").read_text())["seeds"][0]
    output = README.partition("$ make demo\n")[2].partition("```")[0]
    assert f"{seed['parameters']:,} parameters, {seed['threads']} thread\n" in output
    steps = re.findall(r"step +([\d,]+) of [\d,]+ +loss ([\d.]+) +exact match ([\d.]+%)", output)
    curve = {point["step"]: point for point in seed["curve"]}
    assert len(steps) == 3
    for step, loss, exact_match in steps:
        point = curve[int(step.replace(",", ""))]
        assert (loss, exact_match) == (f"{point['loss']:.5f}", percent(point["exact_match"]))
    rows = {row["name"]: row for row in seed["rows"]}
    shown = re.findall(r"^(.+?) +100% +(\d+) +([\d,]+) +(?:.+%|–) +([\d.]+)$", output, re.MULTILINE)
    assert len(shown) == 5
    for name, wrong, n, margin in shown:
        row = rows[name]
        assert (int(wrong), int(n.replace(",", ""))) == (row["errors"], row["n"])
        assert float(margin) == row["smallest_margin"]
    proof = seed["certificate"]
    assert f"{proof['neighbourhoods']:,} neighbourhoods checked, {proof['wrong']} wrong" in output
    assert f"smallest margin {proof['smallest_margin']} logits" in output


def commands_of(document: Path) -> list[str]:
    """Return the commands of a page that are more than a name, up to a pipe or a redirection."""
    text = document.read_text().replace("\\\n", " ")
    found = re.findall(r"`(abacist [^`\n]+)`", text)
    found += re.findall(r"^(?: {4}|\$ )(?:\.venv/bin/)?(abacist .+)$", text, flags=re.MULTILINE)
    typed = [re.split(r" [|>] ", command)[0] for command in found]
    return [c for c in dict.fromkeys(typed) if "…" not in c and c not in _NAMES_OF_COMMANDS]


_NAMES_OF_COMMANDS = {f"abacist {name}" for name in COMMANDS} | {
    "abacist data show",
    "abacist data check",
}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_command_of_a_document_can_be_typed(document, monkeypatch, registries_as_before):
    monkeypatch.chdir(ROOT)
    for command in commands_of(document):
        if "my_tasks.py" not in command:
            typed_commands.check(command, monkeypatch)


def test_commands_of_the_readme_are_found():
    assert len(commands_of(ROOT / "README.md")) >= 5


def test_examples_of_the_readme_use_the_run_that_its_first_command_makes():
    demo = re.search(r"^demo: .*\n\t.+ --out (\S+)", (ROOT / "Makefile").read_text(), re.MULTILINE)[
        1
    ]
    assert f"training add into {demo}: " in README
    runs = re.findall(r"^\$ \.venv/bin/abacist (?:solve|look) (\S+)", README, flags=re.MULTILINE)
    assert set(runs) == {demo}


def test_the_training_time_of_add_is_one_figure_everywhere():
    seeds = json.loads((ROOT / "results" / "add.json").read_text())["seeds"]
    seconds = f"{benchmark('records').training_seconds(seeds):.0f}"
    assert f"about {seconds} seconds of training" in RECIPES["add"].__doc__
    assert f"| sums of every length | 13,676 | {seconds} |" in README
    chapter = (ROOT / "docs" / "results.md").read_text().partition("\n## add\n")[2]
    assert f" {seconds} s of training (median)" in chapter.partition("\n## ")[0]


def test_files_named_in_the_reading_order_exist():
    section = README.partition("## The code")[2].partition("## Contributing")[0]
    names = re.findall(r"`([a-z_]+/[a-z_]+\.py)`", section)
    assert len(names) > 5
    for name in names:
        assert (ROOT / "src" / "abacist" / name).is_file(), name


def prose(document: Path) -> list[str]:
    """Return the lines of a document without code, tables, comments and headings; blank where one was."""
    text = re.sub(r"^```.*?^```$", "", document.read_text(), flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^ {4,}\S.*$", "", text, flags=re.MULTILINE)
    lines = [re.sub(r"`[^`]*`", "code", line) for line in text.splitlines()]
    heading = r" *(\||#|<!--|!\[|\*\*[^*]+\*\*$)"
    return ["" if re.match(heading, line) else line for line in lines]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_markdown_has_one_sentence_a_line(document):
    lines = prose(document)
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        text = re.sub(r"\([^()]*\)", "", line).replace("et al. ", "et al ")
        text = re.sub(r"^ *(\*|\d+\.) ", "", text)
        assert not re.search(r"[a-z0-9)*…%][.?!]\*{0,2} +\S", text), line
        if line.strip() and following.strip() and not re.match(r" *(\*|\d+\.) ", following):
            assert re.search(r"[.?!:;]\W*$", line), line


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_paragraphs_have_at_most_five_sentences(document):
    for paragraph in re.split(r"\n(?: *\n| *(?:\*|\d+\.) )", "\n".join(prose(document))):
        assert len(paragraph.strip().splitlines()) <= 5, paragraph


RETIRED = r"behind|told|for ever|reach(?:es)? of|listing"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_documents_use_the_words_of_the_glossary(document):
    for line in prose(document):
        assert not re.search(rf"\b(?:{RETIRED})\b", line), line


def test_benchmarks_and_records_named_in_documents_exist():
    for document in DOCUMENTS:
        for name in re.findall(r"(?:benchmarks|results)/[\w-]+\.\w+", document.read_text()):
            assert (ROOT / name).is_file(), f"{name} in {document.name}"


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_states_its_parameters_and_has_the_record_it_promises(name):
    promise = RECIPES[name].__doc__
    stated = re.search(r"Cost: ([\d,]+) parameters", promise)[1]
    assert int(stated.replace(",", "")) == build_model(find(name)).num_parameters
    assert f"`{name}`" in README
    if f"results/{name}.json" not in promise:
        assert "records" not in promise
        return
    record = json.loads((ROOT / "results" / f"{name}.json").read_text())
    assert record["recipe"] == name
    assert record["seeds"][0]["parameters"] == build_model(find(name)).num_parameters
    assert record["seeds"][0]["steps"] == find(name).training.num_steps
    assert f"docs/results.md#{name}" in README


def test_the_pages_on_certificates_count_as_the_program_does():
    pages = {path.stem: path.read_text() for path in (ROOT / "docs").glob("certificate*.md")}
    for name, counted, page in (
        ("add", 24_518, "certificate"),
        ("subtract", 24_518, "certificate-differences"),
        ("add-many", 97_834, "certificate-differences"),
        ("multiply", 67_555, "certificate-products"),
        ("divide", 269_796, "certificate-divisions"),
        ("modulo", 262_910, "certificate-divisions"),
        ("sort", 3_599, "certificate-sorting"),
    ):
        record = json.loads((ROOT / "results" / f"{name}.json").read_text())
        assert {seed["certificate"]["neighbourhoods"] for seed in record["seeds"]} == {counted}
        assert f"{counted:,}" in pages[page]
    assert "223,518" in pages["certificate"]


DIVISIONS = (ROOT / "docs" / "certificate-divisions.md").read_text()


def test_the_picture_of_a_division_is_that_of_the_model():
    assert (ROOT / "docs" / "division.svg").read_text() == benchmark("division_picture").picture()


def test_the_division_worked_out_is_the_line_of_the_format():
    task = TASKS["divide"].build()
    format = FORMATS["non-restoring-division"].build(TASKS["divide"])
    problems = task.parse(["953//26"])
    lines = format.write(problems, task.answer(problems))
    text = format.vocabulary.decode(lines.ids[0].tolist()).removeprefix("<start>")
    assert f"`{text}`" in DIVISIONS
    work = text.partition("=")[2]
    rows = re.findall(
        r"^\| `([-+]\d)` \| (\S+) \| (\S+) \| `(\S+)` \| (\S*) ?\| (\S*) ?\|$",
        DIVISIONS.replace("−", "-"),
        flags=re.MULTILINE,
    )
    assert work == "".join(f"{row[0]}:{row[3]}" for row in rows) + "-0:<end>"
    for count, before, after, digits, mirrored, mirrored_after in rows:
        assert int(before) + (26 if count[0] == "+" else -26) == int(after)
        assert int(digits.replace("'", "")[::-1]) == int(after) % 1000
        if mirrored:
            assert (int(mirrored), int(mirrored_after)) == (-1 - int(before), -1 - int(after))


PROBLEMS = (ROOT / "docs" / "problems.md").read_text()


def rows_of(table: str) -> dict[str, str]:
    """Return the second cell of each row of a table, by the name in the first."""
    section = PROBLEMS.partition(f"## {table}")[2].partition("\n## ")[0]
    return dict(re.findall(r"^\| `(\w[\w-]*)` \| (.+?) \|$", section, flags=re.MULTILINE))


def test_every_task_and_format_has_its_row():
    assert [name for name in rows_of("Tasks") if name in TASKS] == list(TASKS)
    assert list(rows_of("Formats")) == list(FORMATS)


@pytest.mark.parametrize("name", [name for name in TASKS if name != "five-operations"])
def test_the_example_of_a_task_has_the_answer_shown(name):
    problem, answer = re.findall(r"`([^`]+)`", rows_of("Tasks")[name])[:2]
    task = TASKS[name].build()
    assert task.answer(task.parse([problem])).texts() == [answer]


@pytest.mark.parametrize(
    ("name", "task", "problem"),
    [
        ("reversed", TASKS["add"], "123+45"),
        ("usual", TASKS["add"], "123+45"),
        ("complement", TASKS["subtract"], "45-123"),
        ("zero-padded", ArithmeticConfig(max_digits=3), "654+114"),
        ("coupled", TASKS["add"], "123+45"),
        ("spaced", TASKS["add"], "1234+5678"),
        ("random-spaces", TASKS["add"], "1234+5678"),
        ("carry-trace", TASKS["five-operations"], "123*45"),
        ("running-sums", TASKS["add-many"], "12+34+56"),
        ("long-division", TASKS["divide"], "97//8"),
        ("non-restoring-division", TASKS["divide"], "7//3"),
        ("partial-products", TASKS["multiply"], "23*45"),
        ("long-multiplication", TASKS["multiply"], "23*45"),
        ("worked", TASKS["five-operations"], "97%8"),
        ("labels", TASKS["sort"], "a:821,b:9"),
        ("insertion-sort", TASKS["sort"], "a:821,b:9,c:35"),
        ("parallel", TASKS["add"], "123+45"),
        ("mirrored", ArithmeticConfig(max_digits=3), "12+34"),
        ("residues", TASKS["add-modulo"], "95+30"),
        ("text", column_task("test-add"), "12,34"),
        ("columns", column_task("test-add"), "12,34"),
        ("column-trace", column_task("test-add"), "12,34"),
        ("column-trace-digits", column_task("test-add"), "12,34"),
    ],
)
def test_the_line_of_a_format_is_the_one_shown(name, task, problem):
    shown = re.search(r"`([^`]+)`", rows_of("Formats")[name])[1]
    problems = task.build().parse([problem])
    format = FORMATS[name].build(task)
    lines = format.write(problems, task.build().answer(problems))
    assert format.vocabulary.decode(lines.ids[0].tolist()) == shown


def test_every_position_scheme_and_its_fields_have_their_rows():
    text = (ROOT / "docs" / "models.md").read_text()
    assert re.findall(r"^\| `([\w-]+)` \| .+ \| .+ \|$", text, flags=re.MULTILINE) == list(
        POSITIONS
    )
    for field in fields(PositionScheme):
        assert f"`{field.name}`" in text, field.name
    for field in fields(ModelConfig):
        sizes = ("width", "num_heads", "mlp_width", "positions")
        assert f"`model.{field.name}`" in text or field.name in sizes, field.name


def test_speeds_in_the_document_are_those_of_the_record():
    record = json.loads((ROOT / "results" / "data.json").read_text())
    for row in record["rows"]:
        cells = (row["problems_per_second"], row["best_problems_per_second"])
        shown = " | ".join(f"{cell:,.0f}" for cell in cells)
        assert f"| {row['name']} | {shown} | {row['ratio']:.1f} |" in PROBLEMS
    assert set(record["overlap in 10,000,002 draws"].values()) == {0}


def test_step_times_in_the_document_are_those_of_the_record():
    record = json.loads((ROOT / "results" / "model.json").read_text())
    text = (ROOT / "docs" / "models.md").read_text()
    for row in record["steps"]:
        assert f"| {row['size']} | {1000 * row['seconds']['ours']:.1f} ms |" in text
        assert f"| {row['ours_over_products']:.1f} |" in text
        ours, plain = row["seconds"]["ours"], row["seconds"]["plain"]
        assert f"| {1000 * ours:.1f} ms | {plain / ours:.2f} |" in text
        assert (
            f" {row['ours_over_products']:.1f} | {row['share_of_products']:.0%} |".replace(
                "%", " %"
            )
            in text
        )
    step = json.loads((ROOT / "results" / "step-time.json").read_text())
    assert f"about {step['ratio']:.1f} times as long as they would alone" in text


def test_settings_named_in_the_page_on_training_exist():
    text = (ROOT / "docs" / "training.md").read_text()
    named = set(re.findall(r"training\.([a-z_]+\d?)", text))
    all_settings = {field.name for field in fields(TrainingConfig)}
    assert len(named) > 12
    assert named <= all_settings
    # docs/models.md describes these two, for looped models.
    described = {"progressive_loss", "progressive_weight"}
    assert not {name for name in all_settings - named - described if name not in text}


def test_every_suite_has_its_row():
    text = (ROOT / "docs" / "scoring.md").read_text()
    assert re.findall(r"^\| `(\w+)` \| .+ \|$", text, flags=re.MULTILINE) == list(SUITES)
    options = {setting.name for setting in settings(ScoringConfig())}
    for option in re.findall(r"--([a-z][a-z-]+)", text):
        assert option.replace("-", "_") in options or option in (
            "suite",
            "stored",
            "help",
            "out",
            "threads",
        ), option


def test_the_failure_shown_has_the_keys_of_real_ones():
    text = (ROOT / "docs" / "scoring.md").read_text()
    shown = json.loads(re.search(r"^    (\{.+?\})$", text, flags=re.MULTILINE | re.DOTALL)[1])
    failure = Failure("", "<start>1+1=", Solution("1+1", "3", "2", 0.1), 1, 0, -0.1)
    assert set(shown) == {"suite", *failure.to_json()}


LOOKING = (ROOT / "docs" / "looking.md").read_text()


def test_every_lens_has_its_row():
    rows = re.findall(r"^\| `(\w[\w-]+)` \| .+ \|$", LOOKING, flags=re.MULTILINE)
    assert rows == list(LENSES)


def test_the_page_on_looking_speaks_python_that_runs(untrained, monkeypatch):
    monkeypatch.setattr("abacist.load", lambda name: untrained)
    blocks = re.findall(r"```python\n(.+?)```", LOOKING, flags=re.DOTALL)
    assert len(blocks) == 3
    names: dict[str, object] = {}
    for block in blocks:
        exec(block, names)
    assert names["seen"].weight.axes == ("depth", "head", "field", "difference")


HOW_IT_ADDS = (ROOT / "docs" / "how-it-adds.md").read_text()


def record_of(name: str):
    return json.loads((ROOT / "results" / f"{name}.json").read_text())


def test_figures_on_how_it_adds_are_those_of_the_committed_record():
    assert benchmark("how_it_adds").with_tables(HOW_IT_ADDS) == HOW_IT_ADDS
    assert "| head 0 |" in HOW_IT_ADDS
    assert "| what all heads bring |" in HOW_IT_ADDS


def test_figures_on_how_it_calculates_are_those_of_the_committed_record():
    page = (ROOT / "docs" / "how-it-calculates.md").read_text()
    assert benchmark("how_it_calculates").with_tables(page) == page
    assert "| head 3 |" in page
    assert "| 64 at random |" in page


def test_the_receptive_field_that_is_drawn_holds_the_same_tokens_in_both_sums():
    record = record_of("how-it-adds")
    contexts = {tuple(sum["tokens"][token] for token in sum["reach"]) for sum in record["reach"]}
    assert contexts == {("<start>", "6", "4", "7", "0", "4")}
    other_sums = record["elsewhere"]
    low, high = other_sums["places"]
    assert f"In {other_sums['n']:,} other sums" in HOW_IT_ADDS
    assert f"at places from {low} to {high} " in HOW_IT_ADDS
    assert f"by at most {other_sums['largest difference']:.0e}," in HOW_IT_ADDS
    proof = record["certificate"]
    assert (proof["certified"], proof["neighbourhoods"], proof["wrong"]) == (True, 24_518, 0)
    assert f"by {proof['smallest_margin']:.2f} logits" in HOW_IT_ADDS
    assert f"rounding takes at most {proof['rounding_bound']:.2f}" in HOW_IT_ADDS


def test_learned_places_break_where_one_head_loses_its_column():
    for seed in record_of("how-it-adds-learned")["seeds"]:
        lengths = {row["digits"]: row["exact match"]["value"] for row in seed["lengths"]}
        assert lengths[10] > 0.9
        assert lengths[11] == lengths[12] == 0
        right = {row["patched"]: row["right"]["value"] for row in seed["transplants"]}
        heads = sorted((right[f"what head {head} brings"], head) for head in range(4))
        assert heads[-1][0] > 0.59
        assert heads[-2][0] < 0.09
        shares = seed["columns"]["next"][heads[-1][1]]
        assert sum(shares[:9]) / 9 > 0.5
        assert max(shares[9:]) < 0.2
        assert right["what all heads bring"] > 0.77
        assert right["the token's own embedding"] < 0.05
    assert f"{seed['parameters']:,} parameters" in HOW_IT_ADDS
    attention = record_of("how-it-adds")["columns"]
    for head in (*attention["next"], *attention["own"]):
        assert max(head[-2:]) - min(head[2:9]) < 0.08, "the recipe attends alike at every place"


def test_head_0_of_the_record_carries_and_the_others_do_not():
    record = record_of("how-it-adds")
    off_by_one = {row["component"]: row["off by one"]["interval"] for row in record["errors"]}
    moved = {row["patched"]: row["more than half"]["interval"] for row in record["patching"]}
    assert off_by_one["head 0"][0] > 0.95
    assert max(off_by_one["head 1"][1], off_by_one["head 2"][1]) < 0.5
    assert moved["head 0"][0] > max(moved[f"head {head}"][1] for head in (1, 2, 3))
    after = {row["stage"]: row for row in record["carry-probe"]["probes"] if row["place"] is None}
    assert after["attention"]["accuracy"]["value"] > 0.999


def test_the_seed_that_samples_miss_is_in_the_record_of_modulo():
    (seed,) = (seed for seed in record_of("modulo")["seeds"] if seed["seed"] == 7)
    proof, text = seed["certificate"], (ROOT / "docs/certificate.md").read_text()
    assert sum(row["errors"] for row in seed["rows"]) == 0
    assert (
        f"Seed 7 of `modulo` is right on all of the {sum(row['n'] for row in seed['rows']):,} problems of "
        f"its record, but {proof['wrong']} of its {proof['neighbourhoods']:,} neighbourhoods is wrong"
    ) in text


def test_figures_about_killed_runs_are_those_of_the_committed_record():
    kills, text = record_of("repeating")["kills"], (ROOT / "docs/training.md").read_text()
    resumed = [step for step in kills["steps_kept"] if step]
    assert f"{kills['same']} of {kills['kills']} are the same" in text
    assert (
        f"{len(resumed)} continued from a checkpoint between steps {min(resumed)} and {max(resumed)} "
        in text
    )


def test_figures_about_the_other_seed_are_in_its_record():
    record, text = record_of("how-it-adds-seed-1"), HOW_IT_ADDS
    effect = {row["patched"]: row["mean"] for row in record["patching"]}
    others = max(effect[f"head {head}"] for head in (1, 2, 3))
    assert f"mean effect of {effect['head 0']:.2f} against at most {others:.2f}" in text
    off_by_one = record["errors"][0]["off by one"]["value"]
    assert f"without it {percent(off_by_one)} of the wrong digits" in text
