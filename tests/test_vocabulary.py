import json
import re

import pytest

import abacist
from abacist import recipes
from abacist.errors import ProblemError
from abacist.runs.run import build_problems
from abacist.vocabulary import DIGITS, Vocabulary

VOCABULARY = Vocabulary((*DIGITS, "+", "=", "<end>"))


def test_id_of_a_token_is_its_index() -> None:
    assert [VOCABULARY.id(token) for token in VOCABULARY.tokens] == list(range(len(VOCABULARY)))


def test_a_digits_id_is_its_value() -> None:
    assert [VOCABULARY.id(str(value)) for value in range(10)] == list(range(10))


def test_decoding_joins_the_tokens() -> None:
    assert VOCABULARY.decode([1, 2, 10, 3, 11, 12]) == "12+3=<end>"
    assert VOCABULARY.decode([]) == ""


def test_encoding_takes_the_longest_token_that_fits() -> None:
    assert VOCABULARY.encode("12+3=<end>") == [1, 2, 10, 3, 11, 12]
    assert VOCABULARY.encode("") == []
    assert Vocabulary(("/", "//", "///")).encode("/////") == [2, 1]


@pytest.mark.parametrize("text", ["12-3", "-12", "12+3=<start>", "12 "])
def test_text_that_no_token_spells_is_refused(text) -> None:
    with pytest.raises(ProblemError, match="this vocabulary has no token for"):
        VOCABULARY.encode(text)


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


def lines_of(name: str) -> tuple[Vocabulary, list[list[int]]]:
    """Return the vocabulary of a recipe and the ids of an example and its answer."""
    task, format = build_problems(recipes.find(name))
    problems = task.parse([task.example])
    return format.vocabulary, format.write(problems, task.answer(problems)).ids.tolist()


@pytest.mark.parametrize("name", recipes.RECIPES)
def test_the_lines_of_every_recipe_are_encoded_and_decoded(name) -> None:
    vocabulary, lines = lines_of(name)
    for ids in lines:
        assert vocabulary.encode(vocabulary.decode(ids)) == ids


@pytest.mark.parametrize("name", recipes.RECIPES)
def test_the_stored_tokenizer_spells_lines_as_the_vocabulary_does(name) -> None:
    vocabulary, lines = lines_of(name)
    stored = json.loads(json.dumps(vocabulary.to_tokenizer_json()))
    ids_of, pattern = stored["model"]["vocab"], stored["pre_tokenizer"]["pattern"]["Regex"]
    assert [*ids_of] == [*vocabulary.tokens]
    special = {token["content"] for token in stored["added_tokens"]}
    assert special == {token for token in ids_of if re.fullmatch("<[a-z]+>", token)}
    for ids in lines:
        text = vocabulary.decode(ids)
        assert [ids_of[token] for token in re.findall(pattern, text)] == ids


def test_the_tokenizers_library_reads_what_is_stored() -> None:
    tokenizers = pytest.importorskip("tokenizers")
    for name in recipes.RECIPES:
        vocabulary, lines = lines_of(name)
        tokenizer = tokenizers.Tokenizer.from_str(json.dumps(vocabulary.to_tokenizer_json()))
        for ids in lines:
            text = vocabulary.decode(ids)
            assert tokenizer.encode(text).ids == ids
            assert tokenizer.decode(ids, skip_special_tokens=False) == text


def test_transformers_reads_the_tokenizer_of_a_run(tmp_path, quick_settings) -> None:
    run = abacist.train("add", out=tmp_path / "run", settings=quick_settings, threads=1)
    stored = json.loads(run.directory.tokenizer.read_text())
    assert stored == run.format.vocabulary.to_tokenizer_json()
    roles = json.loads(run.directory.tokenizer_config.read_text())
    assert (roles["bos_token"], roles["eos_token"]) == ("<start>", "<end>")
    transformers = pytest.importorskip("transformers")
    tokenizer = transformers.AutoTokenizer.from_pretrained(run.path)
    text = "<start>21+43=64<end>"
    assert tokenizer.encode(text) == run.format.vocabulary.encode(text)
    assert tokenizer.decode(tokenizer.encode(text)) == text
    assert tokenizer.decode(tokenizer.encode(text), skip_special_tokens=True) == "21+43=64"
