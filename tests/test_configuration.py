import json
import re
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

from abacist import config_base, recipes
from abacist.config_base import ConfigFamily
from abacist.configuration import from_json, override, settings, to_json
from abacist.errors import ConfigurationError
from abacist.models.config import POSITIONS, ModelConfig, PositionScheme
from abacist.recipes.recipe import Recipe
from abacist.tasks.config import ArithmeticConfig

ADD = recipes.find("add")
ALL_RECIPES = pytest.mark.parametrize("name", recipes.RECIPES)


def value_of(recipe: Recipe, name: str) -> Any:
    return {setting.name: setting.value for setting in settings(recipe)}[name]


def written(recipe: Recipe) -> Any:
    """Return the recipe as a run directory stores it."""
    return json.loads(json.dumps(to_json(recipe)))


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("model.width", "64", 64),
        ("model.head_width", "5", 5),
        ("model.head_width", "none", None),
        ("model.tied_head", "true", True),
        ("model.biases", "none", ()),
        ("model.biases", "mlp-hidden,head", ("mlp-hidden", "head")),
        ("model.norm", "rms", "rms"),
        ("model.activation", "relu", "relu"),
        ("training.learning_rate", "3e-3", 0.003),
        ("training.clip_norm", "2", 2.0),
        ("name", "add-64", "add-64"),
        ("model.positions.0.window", "0,1", (0, 1)),
        ("model.positions.0.window", "-1,2", (-1, 2)),
        ("model.positions.0.window", "none", None),
        ("model.positions.0.coordinate", "index", "index"),
        ("model.positions.0.max_distance", "7", 7),
    ],
)
def test_text_is_parsed_by_the_type_of_the_setting(name: str, text: str, value: Any) -> None:
    changed = value_of(override(ADD, {name: text}), name)
    assert changed == value
    assert type(changed) is type(value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("model.width", 64),
        ("model.head_width", None),
        ("model.tied_head", True),
        ("training.learning_rate", 0.5),
        ("model.positions.0.window", (0, 2)),
        ("model.positions", ()),
    ],
)
def test_a_typed_value_is_taken_as_it_is(name: str, value: Any) -> None:
    assert value_of(override(ADD, {name: value}), name) == value


@pytest.mark.parametrize("name", POSITIONS)
def test_a_name_stands_for_a_whole_set_of_position_schemes(name: str) -> None:
    assert override(ADD, {"model.positions": name}).model.positions == POSITIONS[name]


def test_only_the_settings_named_are_changed() -> None:
    changed = override(ADD, {"model.width": "64", "training.num_steps": "200"})
    before = {setting.name: setting.value for setting in settings(ADD)}
    after = {setting.name: setting.value for setting in settings(changed)}
    assert {name for name in before if before[name] != after[name]} == {
        "model.width",
        "training.num_steps",
    }


def test_only_the_named_setting_of_a_position_scheme_is_changed() -> None:
    (scheme,) = override(ADD, {"model.positions.0.window": "0,2"}).model.positions
    assert scheme == PositionScheme(encoding="relative", coordinate="place", window=(0, 2))


def test_each_scheme_of_several_can_be_changed_by_its_number() -> None:
    two = override(ADD, {"model.positions": (*POSITIONS["gpt2"], *POSITIONS["index-relative"])})
    changed = override(two, {"model.positions.1.max_distance": "3"})
    assert [scheme.max_distance for scheme in changed.model.positions] == [16, 3]


def test_overriding_nothing_gives_an_equal_configuration() -> None:
    assert override(ADD, {}) == ADD


def test_the_original_configuration_stays_unchanged() -> None:
    override(ADD, {"model.width": "64"})
    assert recipes.find("add") == ADD


def test_settings_that_must_agree_can_change_together_in_any_order() -> None:
    changes = {"task.min_digits": "15", "task.max_digits": "20"}
    for order in (changes, dict(reversed(changes.items()))):
        changed = override(ADD, order)
        assert (changed.task.min_digits, changed.task.max_digits) == (15, 20)
    learned = override(
        ADD,
        {
            "model.positions.0.encoding": "learned",
            "model.positions.0.window": "none",
            "model.positions.0.offset": "batch",
            "model.positions.0.max_offset": "50",
        },
    )
    assert learned.model.positions[0].max_offset == 50


@pytest.mark.parametrize("swap", [False, True])
def test_a_named_scheme_can_be_changed_further_in_the_same_call_in_any_order(swap: bool) -> None:
    changes = {"model.positions": "gpt2", "model.positions.0.num_positions": "256"}
    order = dict(reversed(changes.items())) if swap else changes
    (scheme,) = override(ADD, order).model.positions
    assert scheme == PositionScheme(encoding="learned", coordinate="index", num_positions=256)


def test_settings_inside_a_scheme_that_a_name_removes_are_unknown() -> None:
    with pytest.raises(ConfigurationError, match=r"unknown setting 'model\.positions\.0\.window'"):
        override(ADD, {"model.positions": "nope", "model.positions.0.window": "0,1"})


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("model.widht", "model.width"),
        ("model.positions.0.windw", "model.positions.0.window"),
        ("training.learning-rate", "training.learning_rate"),
        ("model.positions.1.window", "model.positions.0.window"),
    ],
)
def test_an_unknown_setting_is_refused_with_the_nearest_one(typed: str, meant: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        override(ADD, {typed: "1"})
    assert str(caught.value) == f"unknown setting {typed!r}: did you mean {meant!r}?"


@pytest.mark.parametrize("branch", ["model", "model.positions.0", "training"])
def test_a_branch_is_no_setting(branch: str) -> None:
    with pytest.raises(ConfigurationError, match=f"unknown setting {branch!r}"):
        override(ADD, {branch: "1"})


@pytest.mark.parametrize(
    ("name", "text", "allowed"),
    [
        ("model.width", "wide", "a whole number"),
        ("model.width", "64.0", "a whole number"),
        ("model.width", "", "a whole number"),
        ("model.width", "none", "a whole number"),
        ("model.head_width", "x", "a whole number or none"),
        ("training.learning_rate", "fast", "a number"),
        ("model.tied_head", "yes", "true or false, got 'yes'. Try --model.tied_head true."),
        ("model.tied_head", "True", "true or false"),
        ("model.norm", "batch", "one of layer, rms"),
        (
            "model.positions",
            "alibis",
            "one of place-relative, place-row-relative, place-relative-soft",
        ),
        ("model.positions.0.window", "0", "2 values with a comma between, each a whole number"),
        ("model.positions.0.window", "0,1,2", "2 values with a comma between"),
        ("model.positions.0.window", "a,b", "2 values with a comma between"),
    ],
)
def test_ill_typed_text_is_refused_in_one_line_with_value_allowed_and_what_to_type(
    name: str, text: str, allowed: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        override(ADD, {name: text})
    message = str(caught.value)
    assert message.startswith(f"{name} must be {allowed}")
    assert f"got {text!r}" in message
    assert f"Try --{name} " in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("model.width", "0"),
        ("training.learning_rate", "nan"),
        ("training.num_steps", "-5"),
        ("training.clip_norm", "0"),
        ("task.max_digits", "0"),
        ("scoring.longest", "0"),
        ("split.test_fraction", "1"),
    ],
)
def test_a_value_out_of_range_is_refused_in_one_line_that_names_the_setting(
    name: str, text: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        override(ADD, {name: text})
    message = str(caught.value)
    assert message.startswith(f"{name} must be ")
    assert f"Try --{name} " in message
    assert "\n" not in message


def test_a_scheme_after_the_first_complains_by_its_own_number() -> None:
    two = {"model.positions": "place-row-relative", "model.positions.1.max_distance": "0"}
    with pytest.raises(ConfigurationError) as caught:
        override(ADD, two)
    assert str(caught.value) == (
        "model.positions.1.max_distance must be 1 to 1,000,000, got 0. "
        "Try --model.positions.1.max_distance 16."
    )
    data = written(override(ADD, {"model.positions": "place-row-relative"}))
    data["model"]["positions"][1]["max_distance"] = 0
    with pytest.raises(ConfigurationError, match=r"^model\.positions\.1\.max_distance must be 1"):
        from_json(Recipe, data)


def test_all_conflicts_are_reported_together() -> None:
    shortened = {
        "training.num_steps": "60",
        "training.curriculum.0.num_steps": "60",
        "model.width": "33",
    }
    with pytest.raises(ConfigurationError) as caught:
        override(ADD, shortened)
    message = str(caught.value)
    assert "model.width must be a multiple of" in message
    assert (
        "training.warmup_steps must be 0 to 60, got 100. Try --training.warmup_steps 6." in message
    )
    assert "the stages of training.curriculum take 60 steps" in message
    assert message.count(" Also, ") == 2
    assert "\n" not in message


def test_conflicts_are_not_reported_while_a_number_is_out_of_range() -> None:
    changes = {"training.num_steps": "60", "training.batch_size": "0"}
    with pytest.raises(ConfigurationError) as caught:
        override(ADD, changes)
    assert str(caught.value) == (
        "training.batch_size must be 1 to 1,000,000, got 0. Try --training.batch_size 128."
    )


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("model.width", "1 to 65,536"),
        ("training.learning_rate", "1e-09 to 10"),
        ("training.warmup_steps", "0 to num_steps"),
        ("split.validation_fraction", "0.001 to 0.5"),
    ],
)
def test_a_range_is_part_of_the_explanation_and_of_what_may_be_typed(name: str, words: str) -> None:
    setting = next(setting for setting in settings(ADD) if setting.name == name)
    assert setting.explanation == f"{setting.help} Range: {words}."
    assert setting.allowed().endswith(f"a {'whole ' * (type(setting.value) is int)}number, {words}")


@ALL_RECIPES
def test_every_declared_default_lies_within_its_range(name: str) -> None:
    for setting in settings(recipes.find(name)):
        if setting.range is not None and not setting.range.depends_on_settings:
            assert setting.range.low <= setting.range.suggestion <= setting.range.high


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("model.width", None),
        ("model.num_layers", 1.5),
        ("model.norm", 3),
        ("model.tied_head", 1),
        ("model.positions", None),
        ("model.positions.0.window", (0, 1, 2)),
    ],
)
def test_an_ill_typed_value_is_refused(name: str, value: Any) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(name)):
        override(ADD, {name: value})


@ALL_RECIPES
def test_every_setting_as_typed_parses_back_to_its_value(name: str) -> None:
    recipe = recipes.find(name)
    typed = {setting.name: setting.typed for setting in settings(recipe)}
    # A part without a name of its own is determined by the settings inside it.
    typed = {name: text for name, text in typed.items() if text != "(as below)"}
    assert override(recipe, typed) == recipe


@pytest.mark.parametrize("positions", POSITIONS)
def test_every_setting_of_every_scheme_as_typed_parses_back_to_its_value(positions: str) -> None:
    recipe = override(ADD, {"model.positions": positions})
    typed = {setting.name: setting.typed for setting in settings(recipe)}
    assert override(recipe, typed) == recipe


@ALL_RECIPES
def test_every_setting_of_every_recipe_has_a_help_text(name: str) -> None:
    assert [s.name for s in settings(recipes.find(name)) if not s.help and s.name != "name"] == []


def test_the_name_of_a_recipe_has_a_help_text() -> None:
    assert next(setting for setting in settings(ADD) if setting.name == "name").help


@ALL_RECIPES
def test_every_setting_of_every_recipe_says_what_may_be_typed(name: str) -> None:
    for setting in settings(recipes.find(name)):
        assert setting.allowed() not in ("", "a value"), setting.name


def test_settings_are_listed_depth_first_by_dotted_name() -> None:
    names = [setting.name for setting in settings(ADD)]
    assert names[:3] == ["name", "task", "task.operations"]
    assert names.index("model.positions") + 1 == names.index("model.positions.0.encoding")
    assert len(set(names)) == len(names)


@ALL_RECIPES
def test_a_recipe_comes_back_from_its_json(name: str) -> None:
    for positions in POSITIONS:
        recipe = override(recipes.find(name), {"model.positions": positions})
        assert from_json(Recipe, written(recipe)) == recipe, positions


def test_windows_come_back_from_json_as_tuples() -> None:
    window = from_json(Recipe, written(ADD)).model.positions[0].window
    assert window == (0, 1)
    assert isinstance(window, tuple)


def test_a_whole_number_is_accepted_as_a_number() -> None:
    data = written(ADD)
    data["training"]["clip_norm"] = 2
    clip_norm = from_json(Recipe, data).training.clip_norm
    assert clip_norm == 2.0
    assert isinstance(clip_norm, float)


def test_an_unknown_key_is_refused_with_the_nearest_one() -> None:
    data = written(ADD)
    data["model"]["widht"] = 64
    with pytest.raises(ConfigurationError) as caught:
        from_json(Recipe, data)
    assert str(caught.value) == "unknown setting model.widht: did you mean 'width'?"


@pytest.mark.parametrize("path", ["task", "name", "model.positions.0.encoding"])
def test_a_missing_key_is_refused_by_its_dotted_name(path: str) -> None:
    data = written(ADD)
    *parents, leaf = path.split(".")
    branch = data
    for parent in parents:
        branch = branch[int(parent)] if parent.isdigit() else branch[parent]
    del branch[leaf]
    with pytest.raises(ConfigurationError, match=rf"^{re.escape(path)} is missing\.$"):
        from_json(Recipe, data)


@pytest.mark.parametrize(
    ("section", "key", "value", "complaint"),
    [
        ("model", "width", "64", 'model.width must be a whole number, got "64".'),
        ("model", "width", 64.0, "model.width must be a whole number, got 64.0."),
        ("model", "width", True, "model.width must be a whole number, got true."),
        ("model", "width", None, "model.width must be a whole number, got null."),
        ("model", "norm", "batch", 'model.norm must be one of layer, rms, got "batch".'),
        ("model", "tied_head", 1, "model.tied_head must be true or false, got 1."),
        ("model", "head_width", "x", 'model.head_width must be a whole number, got "x".'),
        ("model", "positions", [3], "model.positions.0 must be an object, got 3."),
        ("training", "beta1", False, "training.beta1 must be a number, got false."),
        ("training", "beta1", [0.9], "training.beta1 must be a number, got [0.9]."),
    ],
)
def test_an_ill_typed_json_value_is_refused_with_what_is_allowed(
    section: str, key: str, value: Any, complaint: str
) -> None:
    data = written(ADD)
    data[section][key] = value
    with pytest.raises(ConfigurationError) as caught:
        from_json(Recipe, data)
    assert str(caught.value) == complaint


@pytest.mark.parametrize("window", [[0], [0, 1, 2], [0, "1"], "0,1", 3])
def test_a_json_window_that_is_no_pair_of_whole_numbers_is_refused(window: Any) -> None:
    data = written(ADD)
    data["model"]["positions"][0]["window"] = window
    with pytest.raises(ConfigurationError, match=r"^model\.positions\.0\.window must be"):
        from_json(Recipe, data)


@pytest.mark.parametrize("data", [None, [], "add", 3])
def test_json_that_is_no_object_is_no_recipe(data: Any) -> None:
    with pytest.raises(ConfigurationError, match="recipe must be an object"):
        from_json(Recipe, data)


def test_json_out_of_range_is_refused() -> None:
    data = written(ADD)
    data["model"]["width"] = 0
    with pytest.raises(ConfigurationError, match=r"model\.width must be 1 to"):
        from_json(Recipe, data)


@dataclass(frozen=True, kw_only=True)
class ShapeConfig(ConfigFamily):
    """A family of two configurations."""

    section: ClassVar = "shape"


@dataclass(frozen=True, kw_only=True)
class CircleConfig(ShapeConfig):
    kind: ClassVar = "circle"

    radius: int = config_base.setting(1, low=1, high=9)
    """Radius."""


@dataclass(frozen=True, kw_only=True)
class SquareConfig(ShapeConfig):
    kind: ClassVar = "square"


def test_a_kind_is_read_as_soon_as_its_class_is_defined() -> None:
    assert ShapeConfig.kinds == {"circle": CircleConfig, "square": SquareConfig}
    for config in (CircleConfig(radius=3), SquareConfig()):
        assert from_json(ShapeConfig, to_json(config)) == config
    with pytest.raises(ConfigurationError) as caught:
        from_json(ShapeConfig, {"kind": "cube"}, "shape")
    assert str(caught.value) == 'shape.kind must be one of circle, square, got "cube".'


def test_a_configuration_constructed_directly_names_its_own_section() -> None:
    with pytest.raises(ConfigurationError, match=r"^shape\.radius must be 1 to 9, got 0\."):
        CircleConfig(radius=0)


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """A configuration with a list of any length."""

    widths: tuple[int, ...] = (1, 2)
    """Widths,
    over two lines."""


@pytest.mark.parametrize(("text", "widths"), [("", ()), ("5", (5,)), ("1,2,3", (1, 2, 3))])
def test_a_list_of_any_length_is_typed_with_commas(text: str, widths: tuple[int, ...]) -> None:
    assert override(Sizes(), {"widths": text}).widths == widths
    assert from_json(Sizes, to_json(Sizes(widths=widths))).widths == widths


def test_help_is_the_docstring_under_the_field_without_its_indentation() -> None:
    (setting,) = settings(Sizes())
    assert setting.help == "Widths,\nover two lines."
    assert setting.allowed() == "a list, each a whole number, with commas between"


def test_a_record_from_before_a_setting_existed_gets_its_default() -> None:
    data = written(ADD)
    del data["task"]["max_operands"]
    assert from_json(Recipe, data) == ADD


@pytest.mark.parametrize(
    ("name", "text", "proposal"),
    [
        ("model.positions", "rop", "rope"),
        ("model.activation", "geul", "gelu"),
        ("model.norm", "xyz", "layer"),
    ],
)
def test_a_mistyped_name_gets_the_nearest_name_as_a_proposal(name, text, proposal):
    with pytest.raises(ConfigurationError, match=rf"Try --{name} {proposal}\.$"):
        override(recipes.find("add"), {name: text})


@pytest.mark.parametrize(
    ("construct", "message"),
    [
        (
            lambda: ModelConfig(direction="decoder"),
            "model.direction must be one of causal, both, got 'decoder'. Try --model.direction causal.",
        ),
        (
            lambda: ModelConfig(norm="layernorm"),
            "model.norm must be one of layer, rms, got 'layernorm'. Try --model.norm layer.",
        ),
        (
            lambda: ArithmeticConfig(max_digits=2.5),
            "task.max_digits must be a whole number, 1 to 1,000,000, got 2.5. Try --task.max_digits 10.",
        ),
        (
            lambda: ArithmeticConfig(max_digits="5"),
            "task.max_digits must be a whole number, 1 to 1,000,000, got '5'. Try --task.max_digits 10.",
        ),
        (
            lambda: ModelConfig(tied_head="no"),
            "model.tied_head must be true or false, got 'no'. Try --model.tied_head false.",
        ),
        (
            lambda: ModelConfig(width=True),
            "model.width must be a whole number, 1 to 65,536, got True. Try --model.width 32.",
        ),
        (
            lambda: ArithmeticConfig(operations=["+", "-"]),
            "task.operations must be a tuple, got the list ['+', '-']. Try ('+', '-').",
        ),
        (
            lambda: ArithmeticConfig(operations=("^",)),
            "task.operations must be a list, each one of +, -, *, //, %, with commas between, got ('^',).",
        ),
    ],
)
def test_an_ill_typed_value_is_refused_when_a_configuration_is_constructed(construct, message):
    with pytest.raises(ConfigurationError) as refused:
        construct()
    assert str(refused.value) == message


@pytest.mark.parametrize("number", [np.int64(48), np.float64(3e-3), np.float32(0.5)])
def test_a_number_of_numpy_is_taken_as_a_number(number):
    name = "model.width" if isinstance(number, np.integer) else "training.learning_rate"
    assert value_of(override(ADD, {name: number}), name) == number.item()


def test_a_value_that_no_record_can_hold_is_refused_in_one_line():
    with pytest.raises(
        ConfigurationError, match=r"^model.width must be a whole number, got \{1\}\.$"
    ):
        override(ADD, {"model.width": {1}})


def test_a_class_without_source_has_settings_without_help():
    """As with classes that are typed into an interpreter or read from standard input."""
    namespace: dict[str, Any] = {"__name__": "typed"}
    text = (
        "from dataclasses import dataclass\n"
        "from abacist.config_base import Config, setting\n"
        "@dataclass(frozen=True, kw_only=True)\n"
        "class Typed(Config):\n"
        "    section = 'typed'\n"
        "    size: int = setting(3, low=1, high=5)\n"
    )
    exec(text, namespace)
    (only,) = settings(namespace["Typed"]())
    assert (only.name, only.value, only.help) == ("size", 3, "")
