"""A run as a folder that transformers loads: configuration, modelling code, weights, tokenizer, card.

The weights are the checkpoint's `model.safetensors`, byte for byte, so they have the SHA-256 that the
certificate names. The modelling code derives the coordinates of tokens from their ids, and needs no part
of this package. Writing the folder does not need transformers.
"""

import json
from pathlib import Path
from typing import Any

from abacist.configuration import to_json
from abacist.export.exportable import Exportable
from abacist.export.model_card import card
from abacist.formats.plain import PlainFormat
from abacist.vocabulary import Vocabulary

_CODE = Path(__file__).with_name("transformers_code")
_MODULES = ("configuration_abacist", "modeling_abacist")
FILES = (
    "config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json",
    "model.safetensors", *(f"{name}.py" for name in _MODULES),
)  # fmt: skip
"""Names of the files of a folder, beside the model card."""


def folder(exportable: Exportable, *, has_run: bool = False) -> dict[str, bytes]:
    """Return the content of each file of the folder by its name.

    With `has_run` the model card says that the run itself is part of the folder.
    """
    vocabulary = exportable.run.format.vocabulary
    texts = {
        "config.json": _json(_configuration(exportable)),
        "generation_config.json": _json(_generation(exportable)),
        "tokenizer.json": _json(_tokenizer(vocabulary)),
        "tokenizer_config.json": _json(_tokenizer_configuration(vocabulary)),
        "README.md": card(exportable, has_run=has_run),
        **{f"{name}.py": (_CODE / f"{name}.py.txt").read_text("utf-8") for name in _MODULES},
    }
    return {
        "model.safetensors": exportable.weights,
        **{name: text.encode() for name, text in texts.items()},
    }


def _configuration(exportable: Exportable) -> dict[str, Any]:
    run, config = exportable.run, exportable.config
    format = run.format
    assert isinstance(format, PlainFormat)
    tokens = format.vocabulary.tokens
    return {
        "model_type": "abacist",
        "architectures": ["AbacistForCausalLM"],
        "auto_map": {
            "AutoConfig": "configuration_abacist.AbacistConfig",
            "AutoModelForCausalLM": "modeling_abacist.AbacistForCausalLM",
        },
        "dtype": "float32",
        "tokens": list(tokens),
        "operators": [tokens[operator] for operator in format.operator_ids],
        "notation": to_json(format.config),
        "settings": to_json(config),
        "answer_digits": list(format.answer_digits),
        "origin": {
            "recipe": run.recipe.name,
            "seed": run.seed,
            "step": run.step,
            "weights_sha256": exportable.weights_sha256,
            "certified": run.task.claim if exportable.certificate else "",
        },
        "vocab_size": len(tokens),
        "hidden_size": config.width,
        "num_hidden_layers": config.num_layers,
        "num_attention_heads": config.num_heads,
        **_special_ids(format),
        "tie_word_embeddings": config.tied_head,
        "use_cache": False,
    }


def _generation(exportable: Exportable) -> dict[str, Any]:
    format = exportable.run.format
    assert isinstance(format, PlainFormat)
    return {"do_sample": False, "use_cache": False, **_special_ids(format)}


def _special_ids(format: PlainFormat) -> dict[str, int | None]:
    """Return the ids of the tokens that begin, end and pad a line."""
    padding = format.end_id if format.padding_id is None else format.padding_id
    return {"bos_token_id": format.start_id, "eos_token_id": format.end_id, "pad_token_id": padding}


def _tokenizer(vocabulary: Vocabulary) -> dict[str, Any]:
    """Return `tokenizer.json`, whose tokenizer begins each line with the start token, if there is one."""
    tokenizer = vocabulary.to_tokenizer_json()
    if "<start>" not in vocabulary.tokens:
        return tokenizer
    start = {"SpecialToken": {"id": "<start>", "type_id": 0}}
    a, b = ({"Sequence": {"id": name, "type_id": 0}} for name in "AB")
    tokenizer["post_processor"] = {
        "type": "TemplateProcessing",
        "single": [start, a],
        "pair": [start, a, start, b],
        "special_tokens": {
            "<start>": {"id": "<start>", "ids": [vocabulary.id("<start>")], "tokens": ["<start>"]}
        },
    }
    return tokenizer


def _tokenizer_configuration(vocabulary: Vocabulary) -> dict[str, Any]:
    """Return `tokenizer_config.json`; where lines have an end token and no other padding, it pads."""
    configuration = vocabulary.to_tokenizer_config_json()
    if "eos_token" in configuration:
        configuration.setdefault("pad_token", configuration["eos_token"])
    return configuration | {
        "padding_side": "left",
        "model_input_names": ["input_ids", "attention_mask"],
    }


def _json(data: dict[str, Any]) -> str:
    return json.dumps(data, indent=2) + "\n"
