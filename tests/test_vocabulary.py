import pytest

from abacist.vocabulary import DIGITS, Vocabulary

VOCABULARY = Vocabulary((*DIGITS, "+", "=", "<end>"))


def test_id_of_a_token_is_its_index() -> None:
    assert [VOCABULARY.id(token) for token in VOCABULARY.tokens] == list(range(len(VOCABULARY)))


def test_a_digits_id_is_its_value() -> None:
    assert [VOCABULARY.id(str(value)) for value in range(10)] == list(range(10))


def test_text_joins_the_tokens() -> None:
    assert VOCABULARY.text([1, 2, 10, 3, 11, 12]) == "12+3=<end>"
    assert VOCABULARY.text([]) == ""


def test_length_counts_all_tokens() -> None:
    assert len(VOCABULARY) == 13


def test_an_unknown_token_has_no_id() -> None:
    with pytest.raises(KeyError, match="<start>"):
        VOCABULARY.id("<start>")


def test_a_repeated_token_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot contain a token twice"):
        Vocabulary(("0", "1", "0"))


def test_vocabularies_of_the_same_tokens_are_equal() -> None:
    assert Vocabulary(("a", "b")) == Vocabulary(("a", "b"))
    assert Vocabulary(("a", "b")) != Vocabulary(("b", "a"))
