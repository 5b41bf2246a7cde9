"""The mapping between tokens and the ids that a model sees.

>>> vocabulary = Vocabulary(("0", "1", "+", "<end>"))
>>> vocabulary.encode("1+0<end>")
[1, 2, 0, 3]
>>> vocabulary.decode([1, 2, 0, 3])
'1+0<end>'

A run stores its vocabulary as `tokenizer.json`, which `tokenizers` and `transformers` read:

>>> AutoTokenizer.from_pretrained("runs/add-20261121-153012").encode("12+34=")
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from abacist.errors import ProblemError

DIGITS = tuple("0123456789")

_LONGEST_QUOTED = 20


@dataclass(frozen=True)
class Vocabulary:
    """An ordered set of tokens. The id of a token is its index.

    By convention the ten digits come first, so that the id of a digit is its value.
    """

    tokens: tuple[str, ...]

    def __post_init__(self) -> None:
        if len(set(self.tokens)) != len(self.tokens):
            raise ValueError(f"a vocabulary cannot contain a token twice, got {self.tokens}")

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {token: index for index, token in enumerate(self.tokens)}

    @cached_property
    def _pattern(self) -> str:
        """A regular expression that matches one token: the longest that fits."""
        return "|".join(re.escape(token) for token in sorted(self.tokens, key=len, reverse=True))

    @property
    def special_tokens(self) -> tuple[str, ...]:
        """The tokens that stand for no character of a problem, such as `<start>` and `<end>`."""
        return tuple(token for token in self.tokens if re.fullmatch(r"<\w+>", token))

    def id(self, token: str) -> int:
        """Return the id of a token; raise `KeyError` if the vocabulary lacks it."""
        return self._ids[token]

    def encode(self, text: str) -> list[int]:
        """Return the ids of the tokens that spell a text, always taking the longest token that fits.

        Raises `ProblemError` where no token fits.
        """
        ids, position = [], 0
        for match in re.finditer(self._pattern, text):
            if match.start() > position:
                break
            ids.append(self._ids[match[0]])
            position = match.end()
        if position < len(text):
            raise ProblemError(
                f"this vocabulary has no token for {text[position:][:_LONGEST_QUOTED]!r}. "
                f"Its tokens are {' '.join(map(repr, self.tokens))}."
            )
        return ids

    def decode(self, ids: Iterable[int]) -> str:
        """Return the tokens of `ids` as one text."""
        tokens = self.tokens
        # A list instead of a generator takes half the time.
        return "".join([tokens[i] for i in ids])

    def to_tokenizer_json(self) -> dict[str, Any]:
        """Return the content of `tokenizer.json`: a tokenizer that encodes and decodes as this does."""
        return {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": [
                {
                    "id": self.id(token),
                    "content": token,
                    "single_word": False,
                    "lstrip": False,
                    "rstrip": False,
                    "normalized": False,
                    "special": True,
                }
                for token in self.special_tokens
            ],
            "normalizer": None,
            "pre_tokenizer": {
                "type": "Split",
                "pattern": {"Regex": self._pattern},
                "behavior": "Isolated",
                "invert": False,
            },
            "post_processor": None,
            "decoder": {"type": "Fuse"},
            # No token is called <unk>, so that text that the vocabulary cannot spell is an error.
            "model": {"type": "WordLevel", "vocab": self._ids, "unk_token": "<unk>"},
        }

    def to_tokenizer_config_json(self) -> dict[str, Any]:
        """Return the content of `tokenizer_config.json`, which names the roles of special tokens."""
        roles = {"bos_token": "<start>", "eos_token": "<end>", "pad_token": "<pad>"}
        named = {role: token for role, token in roles.items() if token in self._ids}
        return {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "clean_up_tokenization_spaces": False,
            **named,
        }

    def __len__(self) -> int:
        return len(self.tokens)
