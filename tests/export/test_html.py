"""The page that calculates and checks its own proof, in a browser."""

import copy
import random
import shlex
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from accessibility import violations

import abacist
from abacist.configuration import override
from abacist.errors import ConfigurationError
from abacist.export import exportable, html
from abacist.export.exportable import Exportable
from abacist.models.teacher_forcing import coordinates_of
from abacist.recipes import find

ROOT = Path(__file__).parents[2]

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


def problems(operation: str, count: int) -> list[str]:
    """Problems with operands of up to 12 digits, some of them rich in nines."""
    generator = random.Random(0)

    def operand() -> int:
        digits = generator.choice(["0123456789", "09999"])
        return int("".join(generator.choices(digits, k=generator.randint(1, 12))))

    return [f"{operand()}{operation}{operand()}" for _ in range(count)]


@pytest.mark.parametrize("name", ["example", "smallest", "geglu", "swiglu", "subtracting"])
def test_answers_and_logits_of_the_page_are_those_of_python(name, request, open_page):
    run = request.getfixturevalue(name)
    page = open_page(run)
    asked = problems(run.task.operations[0], 1_000)
    answers = page.evaluate("asked => Promise.all(asked.map(window.abacist.solve))", asked)
    solved = run.solve(asked)
    # What has no end or no digit is no number for either.
    assert answers == [solution.answer for solution in solved]
    if name in ("example", "smallest"):
        assert all(solution.answer == solution.expected for solution in solved)
    logits = page.evaluate(
        "asked => { const problem = notation.parse(asked);"
        " return Array.from(intact.run(notation.prompt(problem)).logits); }",
        asked[0],
    )
    prompt = run.format.prompt(run.task.parse([asked[0]]))
    with torch.no_grad():
        exact = copy.deepcopy(run.model).double()
        expected = exact(prompt.ids, coordinates_of(prompt))[0, -1].tolist()
    assert logits == pytest.approx(expected, abs=1e-9)


WORK = {
    "multiply": ["23*45", "0*0", "999999*999999", "7*123456789012", "123456789012*7", "40*50"],
    "divide": ["953//26", "953%26", "7//123456", "123456789//3", "999999//999999", "0//5", "80%9"],
    "sort": ["a:821,b:9,c:35", "a:7,b:7", "a:0,b:10,c:0,d:123456789", "a:10,b:9,c:10,d:9,e:1"],
}


def test_a_page_that_writes_out_calculations_agrees_with_python_on_every_token(working, open_page):
    page = open_page(working)
    for asked in WORK[working.recipe.name]:
        problems = working.task.parse([asked])
        lines = working.format.write(problems, working.task.answer(problems))
        with torch.no_grad():
            logits = copy.deepcopy(working.model).double()(lines.ids, coordinates_of(lines))
        targets = lines.target[0].nonzero().squeeze(1)
        right = [working.format.vocabulary.tokens[token] for token in lines.ids[0, targets]]
        seen = page.evaluate(
            """([asked, right]) => {
              const problem = notation.parse(asked), line = notation.prompt(problem);
              const logits = right.map((text) => {
                const row = Array.from(intact.run(line).logits);
                line.push(notation.next(line, text));
                return row;
              });
              return {
                logits, longest: notation.mostTokens(problem), read: notation.read(problem, right),
                unfinished: notation.read(problem, right.slice(0, -1)), right: notation.rightAnswer(problem),
                tokens: notation.rightTokens(problem),
              };
            }""",
            [asked, right],
        )
        for row, expected in zip(seen["logits"], logits[0, targets - 1].tolist(), strict=True):
            assert row == pytest.approx(expected, abs=1e-9)
        answer = working.task.answer(problems).texts()[0]
        assert (seen["read"], seen["right"], seen["unfinished"]) == (answer, answer, None)
        assert seen["longest"] >= len(right)
        assert seen["tokens"] == right


PAIRS = [(97, 8), (8, 97), (5, 5), (10_000, 99), (999_999_999_999, 999_999), (0, 7)]


def test_answers_of_a_page_that_writes_out_calculations_are_those_of_python(working, open_page):
    page = open_page(working)
    asked = WORK[working.recipe.name]
    answers = page.evaluate("asked => Promise.all(asked.map(window.abacist.solve))", asked)
    assert answers == [solution.answer for solution in working.solve(asked)]


def checked(certificate):
    """What the check of a page returns where it ends like a certificate."""
    return {
        "certified": certificate.certified,
        "neighbourhoods": certificate.neighbourhoods,
        "wrong": certificate.wrong,
        "smallestMargin": pytest.approx(certificate.smallest_margin, abs=1e-9),
    }


@pytest.mark.parametrize("working", ["multiply", "sort"], indirect=True)
def test_the_check_of_written_work_ends_like_the_certificate(working, open_page):
    # The neighbourhoods of divisions, which are many, are counted and sampled below.
    certificate = working.prove()
    assert not certificate.certified
    assert open_page(working).evaluate("window.abacist.check()") == checked(certificate)


def test_a_page_of_five_operations_writes_each_in_its_own_notation(calculating, open_page):
    page = open_page(calculating)
    asked = [f"{a}{operation}{b}" for operation in ("+", "-", "*", "//", "%") for a, b in PAIRS]
    lines = page.evaluate(
        """asked => asked.map((text) => {
          const problem = notation.parse(text);
          const prompt = problem.notation.prompt(problem);
          return [Array.from(intact.run(prompt).logits), problem.notation.rightAnswer(problem)];
        })""",
        asked,
    )
    for text, (logits, right) in zip(asked, lines, strict=True):
        problems = calculating.task.parse([text])
        prompt = calculating.format.prompt(problems)
        with torch.no_grad():
            exact = copy.deepcopy(calculating.model).double()
            expected = exact(prompt.ids, coordinates_of(prompt))[0, -1].tolist()
        assert logits == pytest.approx(expected, abs=1e-9)
        assert right == calculating.task.answer(problems).texts()[0]
    answers = page.evaluate("asked => Promise.all(asked.map(window.abacist.solve))", asked)
    assert answers == [solution.answer for solution in calculating.solve(asked)]
    page.fill("#problem", "12?34")
    page.get_by_role("button", name="Calculate").click()
    assert page.inner_text("#mistake").startswith("Type two numbers with + or - or * or // or % ")


@pytest.mark.parametrize("name", ["example", "smallest"])
def test_the_check_of_the_page_ends_like_the_certificate(name, request, open_page):
    run = request.getfixturevalue(name)
    page = open_page(run)
    certificate = exportable.of_run(run, "html").certificate
    assert certificate.certified
    assert page.evaluate("window.abacist.check()") == checked(certificate)
    assert page.evaluate("window.abacist.weightsHash") == certificate.weights_sha256


@pytest.mark.parametrize("name", ["geglu", "swiglu"])
def test_the_check_of_a_page_counts_the_mistakes_that_the_certificate_counts(
    name, request, open_page
):
    run = request.getfixturevalue(name)
    certificate = run.prove()
    assert not certificate.certified
    assert open_page(run).evaluate("window.abacist.check()") == checked(certificate)


def test_a_page_does_not_say_that_a_model_without_training_learned(smallest, open_page):
    page = open_page(smallest)
    assert "84 numbers inside. Its run has 0 steps of training" in page.inner_text("#lead")
    assert "It learned from" not in page.inner_text("body")
    page.locator("#sheet button").first.click()
    assert "its head attended to them" in page.inner_text("#looked")


def test_a_model_that_errs_is_refused_by_its_page(subtracting, open_page):
    page = open_page(subtracting)
    assert "no certificate" in page.inner_text("#lead")
    result = page.evaluate("window.abacist.check()")
    assert (result["certified"], result["neighbourhoods"]) == (False, 24_518)
    assert 0 < result["wrong"] <= 24_518


WRITE_BY_THE_LIST = """async (stride) => {
  const listed = new Map(), failures = [];
  for (const one of notation.notations.flatMap((each) => [...each.neighbourhoods()])) {
    const key = intact.keyOf(one.line);
    if (!listed.has(key)) listed.set(key, one);
  }
  for (const [key, one] of [...listed].filter((_, i) => i % stride === 0)) {
    const text = one.notation.problemWith(one), problem = one.notation.parse(text);
    const line = one.notation.prompt(problem), written = [], met = new Set();
    while (written.at(-1) !== END && written.length < 2000) {
      const seen = intact.keyOf(line.filter((token) => intact.sees(line.at(-1), token)));
      if (!listed.has(seen)) break;
      met.add(seen);
      written.push(listed.get(seen).right);
      line.push(one.notation.next(line, written.at(-1)));
    }
    const isRight = one.notation.read(problem, written) === one.notation.rightAnswer(problem);
    if (!isRight || !met.has(key)) failures.push([text, one.notation.describe(one), written.join(" ")]);
  }
  return { neighbourhoods: listed.size, failures: failures.slice(0, 5) };
}"""
"""Write the problem made from each neighbourhood, with each token that the list says must follow."""


@pytest.mark.parametrize("name", ["example", "subtracting", "calculating"])
def test_the_right_tokens_of_a_page_are_those_of_the_format(name, request, open_page):
    run = request.getfixturevalue(name)
    page = open_page(run)
    for operation in run.task.operations:
        for asked in [f"{a}{operation}{b}" for a, b in PAIRS] + [f"0{operation}10"]:
            problems = run.task.parse([asked])
            lines = run.format.write(problems, run.task.answer(problems))
            ids = lines.ids[0, lines.target[0].nonzero().squeeze(1)]
            assert page.evaluate(
                "asked => { const problem = notation.parse(asked);"
                " return problem.notation.rightTokens(problem); }",
                asked,
            ) == [run.format.vocabulary.tokens[token] for token in ids]


def test_wrong_digits_are_framed_and_unsure_ones_underlined(example, open_page):
    page = open_page(example, reduced_motion="reduce")
    assert page.locator("#sheet .wrong, #sheet .unsure").count() == 0
    assert page.locator(".signs li").all_inner_texts() == [
        "7 how certain the model was",
        "7 less than 90 % certain",
        "7 wrong",
        "■ the end of the answer",
    ]
    page.evaluate(
        "() => { model = intact.withWeight('head.weight', 0,"
        " intact.numbers('head.weight')[0] + 3); calculate('0+0'); }"
    )
    wrong = page.locator("#sheet .wrong")
    assert wrong.count() > 0
    right = page.evaluate("shown.steps.map((step, k) => step.text === shown.rights[k])")
    assert wrong.count() == right.count(False)
    wrong.first.click()
    assert "That is wrong: right is" in page.inner_text("#looked")
    assert ", wrong, right is" in (wrong.first.get_attribute("aria-label") or "")
    assert violations(page) == []


@pytest.mark.parametrize(
    ("name", "neighbourhoods"),
    [("example", 24_518), ("subtracting", 24_518), ("calculating", 386_387)],
)
def test_every_neighbourhood_occurs_in_the_problem_that_is_made_from_it(
    name, neighbourhoods, request, open_page
):
    page = open_page(request.getfixturevalue(name))
    stride = neighbourhoods // 3_000
    assert page.evaluate(WRITE_BY_THE_LIST, stride) == {
        "neighbourhoods": neighbourhoods,
        "failures": [],
    }


@pytest.mark.parametrize("working", ["sort"], indirect=True)
def test_a_wrong_pair_of_sorting_is_shown_in_a_list_that_contains_it(working, open_page):
    page = open_page(working, reduced_motion="reduce")
    assert page.evaluate(WRITE_BY_THE_LIST, 1)["failures"] == []
    page.click("#start")
    page.wait_for_selector("#verdict.is-bad")
    assert "The first one: the last token is “,”, and" in page.inner_text("#verdict")
    page.get_by_role("button", name="Watch it fail").click()
    assert "✗ wrong" in page.inner_text("#answer")
    page.locator("#maps canvas").hover(position={"x": 2, "y": 17})
    assert "The last token is “1”, and it points to nothing" in page.inner_text("#pointed")
    assert violations(page) == []


def test_a_line_without_an_end_is_shown_as_one(example, open_page):
    page = open_page(example, reduced_motion="reduce")
    text = page.evaluate("() => unreadable(notation, ['9', '8', '7'].map((text) => ({ text })))")
    assert text == "…789, without an end"
    assert page.evaluate("[-0.001, -0.5].map((x) => decimals(x, 2))") == ["0.00", "−0.50"]
    assert page.evaluate("unreadable(notation, [{ text: END }])") == "nothing that can be read"


def test_an_unreadable_problem_removes_the_answer_before_it(example, open_page):
    page = open_page(example, reduced_motion="reduce")
    assert page.locator("#written").is_visible()
    page.fill("#problem", "twelve")
    page.get_by_role("button", name="Calculate").click()
    assert page.inner_text("#mistake")
    assert not page.locator("#written").is_visible()
    page.fill("#problem", "1+2")
    page.get_by_role("button", name="Calculate").click()
    assert "✓ right" in page.inner_text("#answer")


def test_a_click_on_a_map_selects_the_token_that_follows_from_the_neighbourhood(example, open_page):
    page = open_page(example, reduced_motion="reduce")
    assert "Press the button: your browser lists them all" in page.inner_text("#check-why")
    page.click("#start")
    page.wait_for_selector("#verdict.is-good", timeout=120_000)
    maps = page.locator("#maps canvas")
    assert page.locator("#pointed").bounding_box()["y"] < maps.first.bounding_box()["y"]
    # Row 1, column 1 of the map with a carry: digits 0 here and 1 next in both numbers.
    maps.nth(1).click(position={"x": 6, "y": 6})
    line = page.evaluate("document.querySelector('#sheet .pen').style.gridArea")
    expected = page.evaluate(
        """() => {
          const key = shown.selected;
          return shown.steps.findIndex(({ seen }) => model.keyOf(seen.map((s) => shown.line[s])) === key);
        }"""
    )
    assert expected == 2
    assert line.startswith("4 / ")
    assert page.evaluate("document.activeElement === shown.tokens[shown.begin + 2]")


def test_the_number_of_a_weight_out_of_range_is_corrected(example, open_page):
    page = open_page(example, reduced_motion="reduce")
    for typed, corrected in (("100000", page.evaluate("Number($('index').max)")), ("-3", 1)):
        page.fill("#index", typed)
        page.locator("#index").blur()
        assert page.input_value("#index") == str(corrected)


def test_a_damaged_weight_makes_the_proof_fail_with_a_counterexample(example, open_page):
    page = open_page(example, reduced_motion="reduce")
    page.click("#start")
    page.wait_for_selector("#verdict.is-good", timeout=120_000)
    assert page.inner_text("#verdict strong") == "Right for every length."
    assert page.inner_text("#count") == "24,518"
    page.select_option("#tensor", "head.weight")
    page.locator("#damage").fill("100")
    page.wait_for_selector("#verdict.is-bad", timeout=120_000)
    assert page.inner_text("#margin")[0] == "−"
    assert "not the changed ones" in page.inner_text("#claim")
    assert "A problem that goes wrong" in page.inner_text("#verdict")
    page.get_by_role("button", name="Watch it fail").click()
    assert "✗ wrong" in page.inner_text("#answer")
    page.get_by_role("button", name="Repair it").click()
    assert "✓ right" in page.inner_text("#answer")
    assert violations(page) == []


def test_a_sum_of_60_digits_fits_a_phone_in_the_dark(example, open_page):
    page = open_page(example, color_scheme="dark", reduced_motion="reduce", **PHONE)
    page.fill("#problem", f"{'9' * 60}+{'1' * 60}")
    page.get_by_role("button", name="Calculate").tap()
    assert "✓ right" in page.inner_text("#answer")
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    page.locator("#sheet button").nth(2).tap()
    assert "Here the model wrote 1" in page.inner_text("#looked")
    page.fill("#problem", "12*34")
    page.get_by_role("button", name="Calculate").tap()
    assert page.inner_text("#mistake") == "Type two numbers with + between them, such as 97+8."
    assert violations(page) == []


def test_the_committed_page_is_the_one_that_is_built_from_the_committed_run(example):
    committed = (ROOT / "examples" / "calculator.html").read_text()
    assert committed == html.page(exportable.of_run(example, "html"))


def test_a_page_is_small_and_asks_for_nothing_from_elsewhere(example):
    text = html.page(exportable.of_run(example, "html"))
    assert len(text.encode()) < 1_000_000
    assert "default-src 'none'" in text
    assert "@@" not in text
    addresses = {word for word in text.replace("'", '"').split('"') if word.startswith("http")}
    assert addresses == {"http://www.w3.org/2000/svg"}


def test_a_name_from_a_run_is_not_taken_for_a_part_of_the_page(example, monkeypatch):
    name = "@@script@@"
    monkeypatch.setattr(example, "recipe", override(example.recipe, {"name": name}))
    text = html.page(exportable.of_run(example, "html"))
    assert text.count("const data = JSON.parse") == 1
    assert f'"recipe": "{name}"' in text


def test_a_certificate_of_other_weights_is_not_exported(example, tmp_path):
    path = tmp_path / "run"
    shutil.copytree(example.path, path)
    certificate = path / "certificate.json"
    certificate.write_text(
        certificate.read_text().replace(example.identity.weights_sha256, 64 * "0")
    )
    exported = exportable.of_run(abacist.load(path), "html")
    assert exported.certificate is None
    assert "speaks of other weights" in exported.objection
    certificate.unlink()
    exported = exportable.of_run(abacist.load(path), "html")
    assert f"Type abacist prove {path}." in exported.objection
    assert "Type abacist prove RUN." in exported.shared_objection


@pytest.mark.parametrize("path", [".", "a", "runs/my sums", "/data/a+b"])
def test_an_objection_that_travels_names_no_directory(path):
    typed = shlex.join(["abacist", "prove", path])
    objection = f"{path}/certificate.json speaks of other weights. Type {typed}."
    shared = Exportable(SimpleNamespace(path=Path(path)), b"", None, objection).shared_objection
    quote = "'" * (" " in path)
    assert shared == (
        f"certificate.json speaks of other weights. Type abacist prove {quote}RUN{quote}."
    )


@pytest.mark.parametrize(
    ("recipe", "settings", "message"),
    [
        ("five-operations", {}, r"its task must be one of \+ - \* // % sort, got arithmetic with"),
        ("calculator", {"model.num_layers": 2}, r"model.num_layers must be 1, got 2"),
        ("calculator", {"task.signed": "true"}, r"task.signed must be false, got true"),
        ("multiply", {"format": "partial-products"}, r"its format must be long-multiplication"),
        (
            "multiply",
            {"model.positions": "place-relative"},
            r"windows place \(0, 1\), row \(-1, 0\)",
        ),
        ("add", {"model.num_layers": 2}, r"model.num_layers must be 1, got 2\. It can express add"),
        ("add", {"model.positions": "rope"}, r"positions.0 must be a relative bias with a window"),
        ("add", {"model.positions.0.window": (0, 2)}, r"got place \(0, 2\)\. It can"),
        ("add", {"model.norm_order": "post"}, r"model.norm_order must be pre, got post\. It can"),
        ("add", {"model.length_scaling": "true"}, r"model.length_scaling must be False, got True"),
        ("add", {"format": "usual"}, r"its format must be reversed"),
        ("add-many", {}, r"task.max_operands must be 2, got"),
    ],
)
def test_what_cannot_be_expressed_is_refused_in_one_line(recipe, settings, message):
    with pytest.raises(ConfigurationError, match=message) as refused:
        exportable.check_expressible(override(find(recipe), settings), "html")
    assert "\n" not in str(refused.value)
    assert "add-tiny" in str(refused.value)
