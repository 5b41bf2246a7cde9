"""The certificate is shown for all parts on, with a tile for each neighbourhood."""

import re
from dataclasses import replace

import pytest

from abacist.app.answer_card import answer_card
from abacist.app.answers import answer
from abacist.app.certificate_card import certificate_card
from abacist.app.shown_runs import ShownRun
from abacist.certificates.neighbourhood_table import neighbourhood_table
from abacist.certificates.record import Certificate
from abacist.reports.certificate_picture import tile_corner, tiles


@pytest.fixture(scope="module")
def certified_run(certified) -> ShownRun:
    """The run with a certificate, whose proof would take half a minute here."""
    shown_run = ShownRun("certified", certified)
    proof = Certificate(
        certified=True,
        reason="adds all pairs of non-negative integers of every length.",
        neighbourhoods=24_518,
        smallest_margin=8.8,
        remaining_margin=8.66,
        rounding_is_proved=True,
    )
    shown_run.__dict__["records"] = replace(shown_run.records, certificate=proof)
    return shown_run


def test_there_is_a_number_for_each_neighbourhood_of_the_certificate(certified_run):
    table = neighbourhood_table(certified_run.trained_model)
    # As many as `abacist prove` reports for the recipe, in as many patterns.
    assert table.num_neighbourhoods == 24_518
    assert len(table.sizes) == 10
    numbers = sorted(number for group in table.numbers.values() for number in group.values())
    assert numbers == list(range(24_518))


@pytest.mark.parametrize("problem", ["58+67", "999999+1", "1+1", f"{'9' * 60}+{'1' * 60}"])
def test_a_right_answer_passes_through_neighbourhoods_of_the_table(certified_run, problem):
    result = answer(certified_run, problem)
    assert result.correct
    assert None not in result.inside.neighbourhoods
    assert len(result.inside.neighbourhoods) == len(result.written)
    # Each depends on two columns: at most six tokens and the start.
    assert all(len(field) <= 7 for field in result.inside.receptive_fields)


def test_the_card_speaks_of_all_parts_on(certified_run):
    from abacist.app.page import _header  # imports Gradio, which takes seconds

    card = certificate_card(certified_run)
    assert "Certified, with all parts on:" in card
    before_details = card.partition("<details")[0]
    assert "logit" not in before_details
    assert "24,518" in card
    assert "Certified" not in _header(certified_run)
    margins = "The smallest margin is 8.80 logits, at least 8.66 after rounding in float32 on any machine."
    assert margins in card
    off = answer_card(answer(certified_run, "458+67", certified_run.heads))
    assert "The certificate is about all parts on." in off
    assert "The certificate is about" not in answer_card(answer(certified_run, "458+67"))


def test_rounding_that_was_only_measured_is_not_called_bounded(certified_run):
    shown_run = ShownRun("measured", certified_run.run)
    proof = replace(certified_run.records.certificate, rounding_is_proved=False, rounding_bound=3.0)
    shown_run.__dict__["records"] = replace(certified_run.records, certificate=proof)
    assert "and rounding in float32 was measured on this machine, not bounded." in certificate_card(
        shown_run
    )


def test_a_run_without_a_proof_says_how_to_try_one(looped):
    card = certificate_card(looped)
    assert "abacist prove" in card or "Not certified" in card
    assert "window-over-tiles" not in card


def test_every_tile_has_a_corner_of_its_own():
    sizes = [450, 3, 201]
    corners = [tile_corner(sizes, number) for number in range(sum(sizes))]
    assert len(set(corners)) == sum(sizes)
    assert corners[0] == (0, 0)
    assert corners[450][1] > corners[449][1]
    with pytest.raises(IndexError):
        tile_corner(sizes, sum(sizes))


def test_the_picture_lights_the_tiles_of_a_calculation():
    picture = tiles([450, 3], [7, 451])
    assert len(re.findall('class="lit"', picture)) == 2
    assert picture.count('class="ring"') == 1
    assert "453 tiles" in picture
