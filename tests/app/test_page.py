"""The page, in a browser, from training to the last control, and what people may do to it."""

import json
import re
import threading
import time
import urllib.request

PHONE = {"viewport": {"width": 375, "height": 740}, "has_touch": True, "is_mobile": True}


def ask_json(address: str, name: str, **given: object) -> dict[str, object]:
    """One question to the JSON interface."""
    where = f"{address}/gradio_api/call/v2/{name}"
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(where, json.dumps(given).encode(), headers)
    with urllib.request.urlopen(request, timeout=60) as response:
        event = json.load(response)["event_id"]
    with urllib.request.urlopen(f"{where}/{event}", timeout=60) as response:
        text = response.read().decode()
    assert "event: complete" in text, text
    (result,) = json.loads(text.partition("data: ")[2])
    return result


def test_a_sum_is_typed_hovered_and_broken(visit):
    visit = visit()
    page = visit.page
    visit.ask("95846+4237")
    card = page.locator("#shown .answer")
    assert "✓ Right." in card.inner_text()
    assert "100083" in card.locator(".compared").inner_text()
    # Its digits can be pointed at …
    card.locator(".written").nth(2).hover()
    assert "The model wrote 0" in card.locator(".looked").inner_text()
    assert card.locator(".token[data-share]").count() >= 2
    # … and reached by keyboard.
    card.locator(".written").first.focus()
    page.keyboard.press("ArrowLeft")
    assert page.evaluate("document.activeElement.dataset.written") == "1"
    card.locator(".heads").select_option(label="head 0")
    assert card.locator(".looked tr").count() == 1
    # The layers are stepped through.
    card.locator(".stages").focus()
    page.keyboard.press("Home")
    assert card.locator(".stage").inner_text() == "embedding"
    assert card.locator(".written.early").count() >= 1
    page.keyboard.press("End")
    assert card.locator(".written.early").count() == 0
    # Without its heads it errs, and wrong digits are marked. The controls are folded until then.
    assert not page.get_by_label("head 0", exact=True).is_visible()
    page.get_by_role("button", name="Break it: switch").click()
    for head in ("head 0", "head 1"):
        page.get_by_label(head, exact=True).check()
        page.wait_for_function(f"document.querySelector('#broken').innerText.includes('{head}')")
    assert "✗ Wrong." in card.inner_text()
    assert card.locator(".written.wrong").count() >= 1
    # Heads that are switched off look at nothing.
    card.locator(".written").nth(2).hover()
    card.locator(".heads").select_option(label="head 0")
    assert card.locator(".looked tr").inner_text() == "head 0\tswitched off"
    assert card.locator(".token[data-share]").count() == 0
    card.locator(".heads").select_option(label="all heads, on average")
    rows = card.locator(".looked tr").all_inner_texts()
    assert [row.endswith("switched off") for row in rows] == [True, True, False, False]
    assert card.locator(".token[data-share]").count() >= 1
    assert "The certificate is about all parts on." in card.inner_text()
    assert "of test problems right" in page.locator("#broken").inner_text()
    page.get_by_role("group", name="Beside it").get_by_label("learned", exact=True).check()
    page.wait_for_function("document.querySelectorAll('#shown .answer').length === 2")
    assert "✓ Right." in page.locator("#shown .answer").nth(1).inner_text()
    assert visit.accessibility() == []


def test_lengths_race_and_vectors(visit):
    visit = visit()
    page = visit.page
    page.get_by_role("button", name="Score the grid").click()
    page.wait_for_selector("#lengths button[data-first]")
    corner = page.locator("#lengths button[data-first='20'][data-second='20']")
    corner.click()
    page.wait_for_function("document.querySelector('#cell').innerText.includes('20 digits and 20')")
    page.locator("#lengths button[tabindex='0']").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.wait_for_function("document.querySelector('#cell').innerText.includes('2 digits and 2')")
    page.get_by_role("button", name="Race with this problem").click()
    page.wait_for_function("document.querySelector('#raced').innerText.includes('Python wins')")
    steps = page.get_by_label("Training step")
    before = page.locator("#vectors .point").first.get_attribute("transform")
    steps.focus()
    page.keyboard.press("Home")
    assert page.locator("#vectors output").inner_text() == "0"
    assert page.locator("#vectors .point").first.get_attribute("transform") != before
    assert visit.accessibility() == []


def test_a_length_is_dragged(visit):
    page = visit().page
    number = page.get_by_role("slider", name="Digits")
    number.focus()
    page.keyboard.press("ArrowLeft")
    page.wait_for_function("document.querySelector('#problem textarea').value.length === 11")
    problem = page.get_by_label("Problem", exact=True).input_value()
    assert [len(operand) for operand in problem.split("+")] == [5, 5]


def test_a_typed_length_beyond_the_ends_is_the_nearer_end(visit):
    page = visit().page
    number = page.locator("#digits input[type=number]")
    for typed, digits in (("500", 100), ("-3", 1)):
        number.fill(typed)
        number.press("Enter")
        page.wait_for_function(
            "length => document.querySelector('#problem textarea').value.length === length",
            arg=2 * digits + 1,
        )
    assert page.locator(".toast-body.error").count() == 0


def test_another_run_is_turned_to(visit):
    visit = visit()
    page = visit.page
    page.get_by_role("group", name="Run").get_by_label("unlearned", exact=True).check()
    page.wait_for_function("document.querySelector('#header').innerText.includes('unlearned')")
    assert page.locator("#shown h3").inner_text() == "unlearned"
    page.get_by_role("button", name="Break it: switch").click()
    # The controls of the other run are drawn when they are opened, which takes a moment.
    page.get_by_label("head 3.1", exact=True).wait_for()
    card = page.locator("#shown .answer")
    card.locator(".written").first.hover()
    assert card.locator(".heads option").count() == 9
    assert visit.accessibility() == []


def test_a_phone_is_wide_enough(visit):
    visit = visit(**PHONE)
    page = visit.page
    visit.ask("999999+1")
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    page.locator("#shown .written").first.tap()
    assert "The model wrote 0" in page.locator("#shown .looked").inner_text()
    assert visit.accessibility() == []


def test_the_button_ends_where_the_cards_do_on_a_narrow_phone(visit):
    page = visit(viewport={"width": 360, "height": 740}).page
    button, card = (page.locator(name).bounding_box() for name in ("#calculate", "#shown .answer"))
    assert button["x"] + button["width"] <= card["x"] + card["width"] + 1


def test_the_answer_is_in_view_on_a_phone(visit):
    visit = visit(**PHONE)
    visit.ask("999999+1")
    box = visit.page.locator("#shown .verdict").bounding_box()
    assert box["y"] + box["height"] <= PHONE["viewport"]["height"]
    assert visit.page.evaluate("scrollY") == 0


def test_the_order_is_problem_answer_looks_certificate(visit):
    page = visit().page
    tops = [
        page.locator(selector).first.bounding_box()["y"]
        for selector in ("#problem", "#shown .verdict", "#shown .sheet", "#certificate", "#lengths")
    ]
    assert tops == sorted(tops)


def test_the_writing_is_played_paused_and_stepped_through(visit):
    visit = visit()
    page = visit.page
    visit.ask("95846+4237")
    card = page.locator("#shown .answer")
    card.get_by_role("button", name="Step").click()
    assert card.locator(".progress").inner_text() == "token 1 of 7"
    assert card.locator(".written.pending").count() == 6
    assert "On paper: Units: 6 + 7 = 13. Write 3, carry 1." in card.locator(".looked").inner_text()
    assert card.locator(".lines path").count() >= 2
    # The window of the model: the units, the next column, and symbols.
    assert 4 <= card.locator(".token.in-view").count() <= 7
    card.get_by_role("button", name="Step").click()
    card.get_by_role("button", name="Back").click()
    assert card.locator(".progress").inner_text() == "token 1 of 7"
    card.get_by_role("button", name="Play").click()
    # Gradio has an element of this class as well while it is busy.
    card.locator(".progress", has_text=re.compile("token [3-7]")).wait_for()
    card.get_by_role("button", name="Pause").click()
    step = card.locator(".progress").inner_text()
    page.wait_for_timeout(1_500)
    assert card.locator(".progress").inner_text() == step
    # The next answer begins anew.
    visit.ask("12+34")
    assert card.locator(".written.pending").count() == 0
    assert card.locator(".progress").inner_text() == ""


def test_the_view_follows_the_digit_that_is_written(visit):
    visit = visit(**PHONE, reduced_motion="reduce")
    visit.ask(f"{'9' * 60}+{'1' * 60}")
    card = visit.page.locator("#shown .answer")

    def is_in_view(number: int) -> bool:
        digit = card.locator(f".written[data-written='{number}']").bounding_box()
        view = card.locator(".scroll").bounding_box()
        return view["x"] <= digit["x"] and digit["x"] + digit["width"] <= view["x"] + view["width"]

    assert is_in_view(0)
    for _ in range(30):
        card.get_by_role("button", name="Step").click()
    assert is_in_view(29)
    assert not is_in_view(0)


def test_examples_are_clicked_and_one_breaks_the_model(visit):
    page = visit().page
    page.get_by_role("button", name="60 digits").click()
    page.wait_for_function("document.querySelector('#problem textarea').value.length === 121")
    page.get_by_role("button", name="99…9 + 1").click()
    page.wait_for_function("document.querySelector('#problem textarea').value === '9999999999+1'")
    page.get_by_role("button", name="break it", exact=True).click()
    page.wait_for_function("document.querySelector('#broken')?.innerText.includes('head 0')")
    assert page.get_by_label("head 0", exact=True).is_checked()


def test_the_steps_of_a_function_are_clicked(visit):
    visit = visit()
    page = visit.page
    page.get_by_role("group", name="Run").get_by_label("calculator", exact=True).check()
    page.get_by_role("button", name="a common divisor").click()
    page.wait_for_selector("#shown .steps")
    assert visit.accessibility() == []
    page.get_by_role("button", name="1071%462").click()
    page.wait_for_selector("#shown .answer .written")
    assert page.get_by_label("Problem", exact=True).input_value() == "1071%462"
    assert visit.accessibility() == []


def test_one_sign_for_the_end_and_one_number_for_each_part(visit):
    visit = visit()
    page = visit.page
    page.get_by_role("group", name="Run").get_by_label("unlearned", exact=True).check()
    page.wait_for_function("document.querySelector('#header').innerText.includes('unlearned')")
    card = page.locator("#shown .answer")
    card.locator(".written").first.hover()
    assert "<end>" not in page.locator("body").inner_text()
    card.locator(".stages").focus()
    page.keyboard.press("ArrowLeft")
    assert card.locator(".stage").inner_text() == "attention 3"
    page.get_by_role("button", name="Break it: switch").click()
    # Fails as well if there are several.
    page.get_by_label("MLP 3", exact=True).wait_for()


def test_dark_and_still(visit):
    visit = visit(color_scheme="dark", reduced_motion="reduce")
    visit.ask("999999+1")
    assert visit.page.evaluate(
        "getComputedStyle(document.querySelector('.written')).animationName"
    ) in ("none", "")
    visit.page.locator("#shown .written").first.hover()
    assert visit.accessibility() == []


NO_PROBLEMS = {
    "<script>document.title='taken'</script>": "cannot read",
    "<img src=x onerror=document.title='taken'>": "cannot read",
    "9" * 60_000 + "+1": "60,000 digits; at most 1,000",
    "": "empty problem",
    "🧮+1": "cannot read '🧮+1'",
}


def test_invalid_problems_are_refused_in_one_line(visit):
    visit = visit()
    for typed, result in NO_PROBLEMS.items():
        visit.type(typed)
        alert = visit.page.locator("#shown").get_by_role("alert").filter(has_text=result)
        alert.wait_for()
        assert "\n" not in alert.inner_text()
        assert visit.page.title() == "abacist"
        visit.ask("12+34")
        assert "46" in visit.page.locator("#shown .compared").inner_text()


def test_a_refused_problem_leaves_no_earlier_one_in_the_window(visit):
    visit = visit()
    # This run has no certificate, and so no window of its own.
    visit.page.evaluate(
        """() => document.querySelector("#certificate").insertAdjacentHTML("beforeend",
          '<div class="window-over-tiles"><p class="lights">path</p><p class="strip">7</p></div>')"""
    )
    visit.type("12+")
    visit.page.locator("#shown").get_by_role("alert").wait_for()
    assert visit.page.locator("#certificate .lights").inner_text() == ""
    assert visit.page.locator("#certificate .strip").inner_text() == ""


def test_fifty_requests_at_once_are_all_answered(address):
    result: list[dict[str, object]] = []

    def ask(number: int) -> None:
        problem = "x" * 10_000 if number % 10 == 9 else f"{number}+{number}"
        result.append(ask_json(address, "answer", problem=problem))

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(50)]
    begin = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert time.perf_counter() - begin < 30
    assert len(result) == 50
    assert sum("error" in answer for answer in result) == 5
    assert {answer["expected"] for answer in result if "error" not in answer} == {
        str(2 * number) for number in range(50) if number % 10 != 9
    }


def test_every_documented_question_is_answered_over_http(address):
    arguments = {
        "answer": {"problem": "12+34"},
        "race": {"problem": "12+34"},
        "failures": {"first": 3, "second": 2},
        "draw": {"digits": 5},
    }
    for name in ("runs", "answer", "draw", "ablation", "failures", "race", "vectors"):
        assert "error" not in ask_json(address, name, **arguments.get(name, {})), name


def test_nonsense_at_the_json_interface_leaves_the_page_up(address):
    for given in (
        {"problem": 7},
        {"problem": None},
        {"problem": ["1+1"]},
        {"problem": "1+1", "run": "nobody"},
        {"problem": "1+1", "off": "head 0"},
    ):
        assert "error" in ask_json(address, "answer", **given)
    assert ask_json(address, "answer", problem="1+1")["expected"] == "2"
