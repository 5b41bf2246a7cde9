"""Markup that nothing typed or written can break, and that says in words what colours show."""

import re
from dataclasses import replace

from abacist.app.answer_card import alert, answer_card
from abacist.app.answers import answer
from abacist.app.grid_card import failures_card, grid_card
from abacist.app.lengths import CellFailures, Failed, LengthGrid
from abacist.app.race import Race
from abacist.app.race_card import race_card
from abacist.app.vectors import Vectors
from abacist.app.vectors_card import vectors_card
from abacist.intervals import Proportion

SCRIPT = "<script>alert(1)</script>"


def words(markup: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", markup).split())


def test_no_card_lets_a_script_through():
    for card in (
        alert(SCRIPT),
        grid_card(SCRIPT, LengthGrid([[1]], [[1]], True, True)),
        failures_card(CellFailures(1, 1, Proportion(0, 1), [Failed(SCRIPT, SCRIPT, SCRIPT)])),
        vectors_card(SCRIPT, Vectors([SCRIPT, "1"], [1], [[[0.0, 0.0], [1.0, 1.0]]], 1.0)),
    ):
        assert "<script" not in card
        assert "&lt;script&gt;" in card


def test_a_wrong_answer_is_reported_beside_the_right_one(shown_run):
    result = answer(shown_run, "458+67", shown_run.heads)
    card = answer_card(result)
    assert words(card).startswith(
        "learned without head 0, head 1, head 2, head 3 What the model wrote"
    )
    assert "✗ Wrong." in words(card)
    assert "Right 525" in words(card)
    assert 'class="wrong"' in card
    assert re.search(r'aria-label="\d, units, [\d.]+% sure, wrong, right is 5"', card)


def test_the_token_of_which_the_model_was_least_sure_is_named_with_its_place(shown_run):
    result = answer(shown_run, "458+67")
    least = min(range(3), key=lambda number: result.written[number].probability)
    tokens = [replace(token, probability=0.999) for token in result.written]
    tokens[least] = replace(tokens[least], probability=0.95)
    place = ("units", "tens", "hundreds")[least]
    card = words(answer_card(replace(result, written=tokens)))
    assert f"It was least sure of {tokens[least].text} ({place}), 95%." in card


def test_columns_stand_under_each_other(shown_run):
    card = answer_card(answer(shown_run, "458+67"))
    cells = re.findall(r'grid-row:(\d+);grid-column:(\d+)[^>]*?>(?:<span class="text">)?(.)', card)
    rows = {row: "" for row, _, _ in cells}
    for row, _, text in sorted(cells, key=lambda cell: (cell[0], int(cell[1]))):
        rows[row] += text
    assert rows == {"1": "⟨458", "2": "+67", "3": "=⟩525"}


def test_a_run_that_shows_no_columns_is_shown_as_a_line(looped):
    result = answer(looped, "12+34")
    cells = [type(cell)(cell.text, None, None, cell.key, cell.written) for cell in result.cells]
    card = answer_card(type(result)(**{**vars(result), "cells": cells}))
    assert 'class="line"' in card


def test_the_race_says_who_wins_either_way():
    assert "Python wins: it is 61,000 times as fast" in race_card(Race("1+1", 0.061, 1e-6, True, 1))
    result = race_card(Race("1+1", 1e-6, 5e-6, False, 1))
    assert "The model wins: it is 5.0 times as fast" in result
    assert "The model's answer is wrong" in words(result).replace("&#x27;", "'")


def test_a_large_grid_is_summed_in_blocks():
    size = 100
    grid = LengthGrid([[9] * size] * size, [[10] * size] * size, False, False)
    card = grid_card("run", grid)
    assert card.count("<button") == 34 * 34
    assert 'aria-label="1–3 and 1–3 digits: 81 of 90 right, 90%"' in card
    assert "not complete" in card


def test_a_grid_has_a_legend_and_a_frame_around_the_trained_lengths():
    grid = LengthGrid([[9] * 4] * 4, [[10] * 4] * 4, True, True)
    card = grid_card("run", grid, trained_digits=2)
    assert "× at least one wrong" in words(card)
    assert "framed: lengths in training, up to 2 digits" in words(card)
    assert len(re.findall(r'class="trained[^"]*"', card)) == 4
    assert 'class="trained bottom right"' in card
    assert "Every problem was answered wrongly." not in card


def test_a_grid_without_right_answers_says_so():
    grid = LengthGrid([[0] * 2] * 2, [[10] * 2] * 2, True, True)
    assert "Every problem was answered wrongly." in words(grid_card("run", grid))


def test_results_of_the_model_with_all_parts_say_so():
    assert "2 by 2 digits, with all parts on" in words(
        grid_card("run", LengthGrid([[9] * 2] * 2, [[10] * 2] * 2, True, True))
    )
    cell = CellFailures(3, 2, Proportion(99, 100), [])
    assert words(failures_card(cell)).startswith("3 digits and 2 digits: 99%")
    shown = words(failures_card(cell, speaks_of_parts=True))
    assert shown.startswith("3 digits and 2 digits, with all parts on: 99%")
    cell = CellFailures(3, 2, Proportion(9, 100), [], ["head 0"])
    shown = words(failures_card(cell, speaks_of_parts=True))
    assert shown.startswith("3 digits and 2 digits, without head 0: 9%")
    card = words(race_card(Race("1+1", 0.061, 1e-6, True, 1), speaks_of_parts=True))
    assert "answer, with all parts on, is right" in card


def test_the_bars_of_the_race_are_labelled_as_time():
    card = words(race_card(Race("1+1", 0.061, 1e-6, True, 1)))
    assert "Bars show time, so the shorter one wins. The scale is logarithmic" in card
