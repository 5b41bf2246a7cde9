"""Sweep files: what they may contain, and the line that an error names."""

import pytest

from abacist.errors import ConfigurationError
from abacist.sweeps import sweep_file
from abacist.sweeps.plan import Score

EXAMPLE = """\
recipe = "add"   # the default
seeds = 3
threads = 1
device = "cpu"

[settings]
training.num_steps = 300
"training.warmup_steps" = 30

[contenders.rotary]
model.positions = "rope"

[contenders.learned]
"model.positions" = "gpt2"
"model.positions.0.num_positions" = 512

[over]
training.learning_rate = [1e-3, 3e-3]

[choose]
tune = ["training.learning_rate"]
seeds = [100, 101]

[score]
suites = []
digits = [
  1,
  20,
]
carry_chains = [10]
proved = false
"""


def write(tmp_path, text):
    path = tmp_path / "sweep.toml"
    path.write_text(text)
    return path


def test_a_file_is_the_plan_it_describes(tmp_path):
    plan = sweep_file.read(write(tmp_path, EXAMPLE))
    assert plan.recipe.training.num_steps == 300
    assert (plan.seeds, plan.tuning_seeds) == ([0, 1, 2], [100, 101])
    assert list(plan.contenders) == ["rotary", "learned"]
    assert [group.name for group in plan.groups] == [
        "rotary,learning_rate=0.001",
        "rotary,learning_rate=0.003",
        "learned,learning_rate=0.001",
        "learned,learning_rate=0.003",
    ]
    (scheme,) = plan.recipe_of(plan.groups[2]).model.positions
    assert (scheme.encoding, scheme.num_positions) == ("learned", 512)
    assert plan.score == Score(suites=(), digits=(1, 20), carry_chains=(10,), proved=False)
    assert (plan.device, plan.num_trials) == ("cpu", 4 * 2 + 2 * 3)
    assert len(sweep_file.read(write(tmp_path, EXAMPLE), num_seeds=1).seeds) == 1


def test_ranges_are_drawn_from(tmp_path):
    text = (
        "random = 5\n[over]\n"
        'training.learning_rate = { low = 1e-3, high = 1e-1, scale = "log" }\n'
        'model.norm = ["layer", "rms"]\n'
    )
    plan = sweep_file.read(write(tmp_path, text))
    assert len(plan.groups) == 5


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("seeds = 3", "sedes = 3", 2, "unknown key 'sedes': did you mean 'seeds'?"),
        ("seeds = 3", "seeds = 0", 2, "seeds must be a number from 1 to"),
        ("seeds = 3", "seeds = [1, 1]", 2, "a list of different seeds, got [1, 1]"),
        ("threads = 1", 'threads = "one"', 3, "threads must be a whole number from 1"),
        ("threads = 1", "threads = 5000", 3, "threads must be a whole number from 1 to 1,024, got"),
        ('recipe = "add"', 'examination = "add"', 1, "Leave one of them out"),
        ("threads = 1", "random = true", 3, "random must be a whole number from 1"),
        ('device = "cpu"', "device = 0", 4, "device must be cpu, cuda, mps or auto, got 0"),
        ('recipe = "add"', 'recipe = "ad"', 1, "unknown recipe 'ad': did you mean 'add'?"),
        ('recipe = "add"', "recipe = 1", 1, "recipe must be the name of a recipe, got 1"),
        ('recipe = "add"', 'examination = "ad"', 1, "no examination for 'ad': did you mean 'add'?"),
        ("training.num_steps", "training.num_stpes", 7, "did you mean 'training.num_steps'?"),
        ("= 30\n", "= 3000\n", 8, "training.warmup_steps must be 0 to 300, got 3000"),
        ("= 300\n", '= "many"\n', 7, "training.num_steps must be a whole number"),
        ('"rope"', '"ropes"', 11, "model.positions must be one of"),
        ("= 512", "= 1.5", 15, 'model.positions.0.num_positions must be a whole number, got 1.5'),
        ("[1e-3, 3e-3]", "[]", 18, "training.learning_rate has no value"),
        ("[1e-3, 3e-3]", "1e-3", 18, "must be a list of values, got 0.001. Try [0.001]"),
        ("[1e-3, 3e-3]", "[1e-3, 30]", 18, "training.learning_rate must be 1e-09 to 10, got 30"),
        ("[1e-3, 3e-3]", "{ low = 1, high = 0 }", 18, "from a smaller number to a larger one"),
        ("[1e-3, 3e-3]", "{ low = 1, high = 3 }", 18, "Type --random 20 to draw from it"),
        ('["training.learning_rate"]', '["training.learning"]', 21, "has no values in [over]"),
        ('["training.learning_rate"]', '"training"', 21, "tune must be a list of settings"),
        ("tune =", "tunes =", 21, "unknown key 'tunes': did you mean 'tune'?"),
        ("suites = []", 'suites = ["lenght"]', 25, "did you mean 'lengths'?"),
        ("carry_chains = [10]", 'carry_chains = ["x"]', 30, "score.carry_chains must be"),
        ("carry_chains = [10]", "carry_chain = [10]", 30, "did you mean 'carry_chains'?"),
        ("carry_chains = [10]", "num_problems = 0", 30, "score.num_problems must be 1 to"),
        ("training.num_steps = 300", "model = 3", 7, "did you mean one of its settings, such as"),
        ("num_steps = 300", "num_steps.a = 3", 7, "did you mean 'training.num_steps'?"),
        ("num_steps = 300", "zzz = {q = 1}", 7, "unknown setting 'training.zzz.q': known: name, task, "),
        ("[1e-3, 3e-3]", "{ low = 1 }", 18, "a range needs low and high, and has no high"),
        ("[1e-3, 3e-3]", "{ low = 1, high = 3, by = 1 }", 18, "unknown key 'by' of a range"),
        ('device = "cpu"', 'device = "gpu"', 4, "device must be one of auto, cpu, cuda, mps"),
        ("[over]", "[ovre]", 17, "unknown key 'ovre': did you mean 'over'?"),
        ("[score]", "[settings.score]", 25, "unknown setting 'score.suites'"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_its_line(tmp_path, old, new, line, message):
    assert old in EXAMPLE
    path = write(tmp_path, EXAMPLE.replace(old, new))
    with pytest.raises(ConfigurationError) as error:
        sweep_file.read(path)
    assert str(error.value).startswith(f"{path}, line {line}: ")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_random_and_tuned_settings_need_values(tmp_path):
    for text, message in (
        ("random = 2\n", "line 1: random needs values to draw from. Add a table [over] with them."),
        ('[choose]\ntune = ["model.width"]\n', "line 2: 'model.width' has no values in [over]: "),
        (
            'seeds = 3\n[over]\nmodel.width = [8]\n[choose]\ntune = ["model.width"]\nseeds = [2]\n',
            "line 6: choose.seeds must differ from the seeds of the sweep",
        ),
    ):
        with pytest.raises(ConfigurationError) as error:
            sweep_file.read(write(tmp_path, text))
        assert message in str(error.value)


def test_what_is_no_toml_is_refused_with_its_line(tmp_path):
    path = write(tmp_path, "recipe = add\n")
    with pytest.raises(ConfigurationError, match=r"sweep\.toml is not valid TOML: .*line 1"):
        sweep_file.read(path)
    with pytest.raises(ConfigurationError, match="cannot be read"):
        sweep_file.read(tmp_path / "missing.toml")
