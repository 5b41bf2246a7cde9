"""Extensions: three ways in, one line for every mistake, and hashes in run directories."""

import html
import json
import re
import sys
from dataclasses import dataclass, replace
from typing import ClassVar

import pytest

import abacist
from abacist import extensions
from abacist.cli import main
from abacist.config_base import Config, ConfigFamily
from abacist.configuration import override
from abacist.errors import ConfigurationError, ProblemError, RunError, UserError
from abacist.extensions import Registry
from abacist.formats.config import FORMATS
from abacist.recipes import RECIPES, find
from abacist.recipes.column_tasks import warning_about_proof
from abacist.sweeps import execution, sweep
from abacist.sweeps.execution import Finished, description
from abacist.tasks.config import COLUMN_TASKS, TASKS, ArithmeticConfig

MACHINE = '''
from abacist import column_task

@column_task("{name}", base=3{settings})
def step(carry, digits):
    """Adds in base 3."""
    total = digits.sum(-1) + carry
    return {result}
'''
TOTALS = "total % 3, total // 3"


pytestmark = pytest.mark.usefixtures("registries_as_before")


def write(path, name="own-sum", settings="", result=TOTALS):
    """Write an extension with one column task."""
    path.write_text(MACHINE.format(name=name, settings=settings, result=result))
    return path


def test_an_extension_adds_a_recipe_a_task_and_a_column_task(tmp_path):
    extensions.load(str(write(tmp_path / "own_tasks.py")))
    assert {"own-sum"} == RECIPES.keys() & TASKS.keys() & COLUMN_TASKS.keys() - {"add"}
    recipe = find("own-sum")
    task = recipe.task.build()
    assert task.answer(task.parse(["12,2"])).texts() == ["21"]
    with pytest.raises(ConfigurationError, match="did you mean 'own-sum'"):
        find("own-sun")


@pytest.mark.parametrize(
    ("expression", "complaint"),
    [
        ("12", "cannot read '12': it has 1 operand. Type 2 operands of the digits 0 to 2"),
        ("1,2,1", "cannot read '1,2,1': it has 3 operands. Type 2 operands of the digits 0 to 2"),
        ("13,2", "cannot read '13,2': '13' is not a number in base 3. Type 2 operands"),
    ],
)
def test_a_problem_that_a_task_cannot_read_is_explained(tmp_path, expression, complaint):
    extensions.load(str(write(tmp_path / "own_tasks.py")))
    with pytest.raises(ProblemError, match=re.escape(complaint)):
        find("own-sum").task.build().parse([expression])


def test_an_extension_is_loaded_once_however_often_it_is_named(tmp_path):
    path = write(tmp_path / "own_tasks.py")
    extensions.load_all([str(path), str(path)])
    assert "own-sum" in RECIPES


def test_another_process_finds_what_this_one_imported_from_any_directory(tmp_path, monkeypatch):
    write(tmp_path / "own_imported.py")
    monkeypatch.syspath_prepend(tmp_path)
    __import__("own_imported")
    assert str(tmp_path / "own_imported.py") in extensions.loaded()


def test_a_module_is_an_extension_by_name_and_by_import(tmp_path, monkeypatch):
    write(tmp_path / "own_module.py")
    monkeypatch.syspath_prepend(tmp_path)
    extensions.load("own_module")
    assert RECIPES.origins["own-sum"].source == "own_module.py"
    assert extensions.loaded()[-1] == str(tmp_path / "own_module.py")


def test_an_installed_package_offers_extensions_by_entry_points(tmp_path, monkeypatch):
    write(tmp_path / "own_installed.py")
    metadata = tmp_path / "own_installed-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: own-installed\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text("[abacist.extensions]\nown = own_installed\n")
    monkeypatch.syspath_prepend(tmp_path)
    extensions.load_installed()
    assert "own-sum" in RECIPES


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("1 / 0\n", "at line 1: ZeroDivisionError: division by zero"),
        ("x = 1\nimport no_such_package\n", "needs the module no_such_package.*pip install no_such_package"),
        ("def f(:\n", "at line 1: SyntaxError"),
        ("raise SystemExit(3)\n", "at line 1: SystemExit: 3"),
        (MACHINE.format(name="add", settings="", result=TOTALS), "'add' is built in"),
        (
            MACHINE.format(name="own", settings="", result=TOTALS) * 2,
            "'own' is registered already, by .*own_bad.py",
        ),
        (
            MACHINE.format(name="own", settings="", result="total / 3, total // 3"),
            r"the digit must be whole numbers, got torch.float32. Use //",
        ),
        (
            MACHINE.format(name="own", settings="", result="total % 4, total // 3"),
            "in state 0 with digits 1, 2 gives digit 3, and a digit must be 0 to 2",
        ),
        (
            MACHINE.format(name="own", settings="", result="total % 3, total - 1"),
            "in state 0 with digits 0, 0 gives state -1, and a state must be 0 to 9,999",
        ),
        (
            MACHINE.format(name="own", settings="", result="total % 3, [5, 6, 7][0:0][total]"),
            "in state 0 with digits 0, 0 raises",
        ),
        (
            MACHINE.format(name="own", settings="", result="digits % 3, total // 3"),
            "the digit must have shape",
        ),
        (MACHINE.format(name="own", settings="", result="total % 3"), "must return two tensors"),
        (
            MACHINE.format(name="own", settings="", result="total % 3, (total + 1) % 2 + 1"),
            "columns of zeros never lead back to state 0",
        ),
        (
            MACHINE.format(name="own", settings=", answer=lambda a, b: 'no'", result=TOTALS),
            "for 0,0 the machine writes 0 and answer returns no",
        ),
        (
            MACHINE.format(name="own", settings=", answer=lambda a, b: 1 // a", result=TOTALS),
            "for 0,0, answer raises ZeroDivisionError",
        ),
        (MACHINE.format(name="own", settings=", operands=5", result=TOTALS), "operands must be a whole number"),
        (MACHINE.format(name="own", settings=", symbol='a'", result=TOTALS), "symbol must be one"),
        (MACHINE.format(name="own", settings=", left_over='x'", result=TOTALS), "left_over must be"),
        (
            MACHINE.format(name="own", settings=", direction='down'", result=TOTALS),
            "direction must be",
        ),
        (MACHINE.format(name="my own", settings="", result=TOTALS), "must consist of letters.*'my own'"),
        (MACHINE.format(name="../own", settings="", result=TOTALS), r"must consist of.*'\.\./own'"),
        (
            "from abacist import column_task\n@column_task\ndef f(s, d):\n    return d, s\n",
            "a column task needs a name, got function",
        ),
        (
            "from abacist import column_task\n\ncolumn_task('own', bas=7)\n",
            "at line 3: TypeError: .*unexpected keyword argument 'bas'",
        ),
        (
            "from abacist import POSITIONS\nPOSITIONS.register('own', None)\n",
            "'own' must be a tuple of PositionScheme",
        ),
        (
            MACHINE.format(name="own", settings=", direction='most-significant-first'", result=TOTALS),
            "left_over 'digits' is for direction",
        ),
    ],
)  # fmt: skip
def test_a_bad_extension_is_one_line_and_registers_nothing(tmp_path, capsys, source, message):
    path = tmp_path / "own_bad.py"
    path.write_text(source)
    before = set(RECIPES), set(COLUMN_TASKS), set(TASKS)
    assert main(["recipes", "--extension", str(path)]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert re.search(message, error), error
    assert (set(RECIPES), set(COLUMN_TASKS), set(TASKS)) == before


WHOLE = """
from dataclasses import dataclass
from typing import ClassVar
from abacist import FORMATS, OwnTaskConfig, TextFormatConfig, own_recipe, recipe

@dataclass(frozen=True, kw_only=True)
class Own(OwnTaskConfig):
    {kind}
    def {method}(self, *operands):
        return {answer}

@dataclass(frozen=True, kw_only=True)
class OwnFormat(TextFormatConfig):
    kind: ClassVar = "own-format"
    def construct(self, task):
        return None

FORMATS.register("own-format", OwnFormat())

@recipe("own-task")
def own_task():
    return {recipe}
"""
WHOLE_DEFAULTS = {
    "kind": 'kind: ClassVar = "own-task"',
    "method": "answer",
    "answer": "operands[0]",
    "recipe": 'own_recipe("own-task", Own(max_digits=2))',
}


@pytest.mark.parametrize(
    ("changes", "format", "message"),
    [
        ({"answer": "1 // 0"}, "text", "own_whole.py failed at line 10: ZeroDivisionError"),
        ({"answer": "5"}, "text", "answer must return text of the digits 0 to 9, got 5"),
        ({"answer": "'x'"}, "text", "answer must return text of the digits 0 to 9, got 'x'"),
        ({"method": "answers"}, "text", "Own needs a method answer"),
        ({"kind": "pass"}, "text", "the class Own needs a name in JSON"),
        ({"recipe": "None"}, "text", "'own-task' must return a Recipe, got NoneType"),
        ({"recipe": "Own(max_digit=2)"}, "text", "failed at line 22: TypeError.*'max_digit'"),
        ({}, "own-format", "construct of OwnFormat must return a format, got NoneType"),
    ],
)
def test_a_mistake_in_a_whole_task_is_one_line(tmp_path, capsys, changes, format, message):
    path = tmp_path / "own_whole.py"
    path.write_text(WHOLE.format(**WHOLE_DEFAULTS | changes))
    arguments = ["--extension", str(path), "own-task", "--format", format, "--num-problems", "1"]
    assert main(["data", "show", *arguments]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert re.search(message, error), error


def test_an_installed_extension_that_fails_is_left_out_with_a_warning(
    tmp_path, monkeypatch, capsys
):
    (tmp_path / "own_broken.py").write_text("import no_such_package\n")
    metadata = tmp_path / "own_broken-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: own-broken\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text("[abacist.extensions]\nown = own_broken\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert main(["recipes"]) == 0
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "warning: the extension own_broken needs the module no_such_package" in error


def test_data_check_compares_more_problems_with_the_answer_of_a_task(tmp_path, capsys):
    path = write(tmp_path / "own_sums.py", settings=", answer=lambda a, b: in_base(a + b, 3)")
    path.write_text(f"from abacist import in_base\n{path.read_text()}")
    extensions.load(str(path))
    arguments = ["data", "check", "own-sum", "--num-problems", "500"]
    assert main(arguments) == 0
    assert "The answers of 500 problems agree" in capsys.readouterr().out

    # Right for the small problems that are compared when the task is registered.
    machine = COLUMN_TASKS["own-sum"]
    COLUMN_TASKS["own-sum"] = replace(
        machine, oracle=lambda a, b: "0" if a > 500 else machine.oracle(a, b)
    )
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert re.search(r"own-sum: for \d+,\d+ the machine writes \d+ and answer returns 0", error)
    assert error.count("\n") == 1


def test_a_certificate_that_cannot_be_checked_in_time_is_announced(tmp_path):
    source = write(tmp_path / "own_four.py", "own-four", ", operands=4")
    source.write_text(source.read_text().replace("3", "10"))
    extensions.load(str(source))
    recipe = find("own-four")
    assert warning_about_proof(recipe) is None
    plain = override(recipe, {"format": "columns"})
    assert warning_about_proof(plain) == (
        "own-four will hardly be certified: two columns of 4 operands and a state have 400,000,000 "
        "combinations, and checking them would take about 111 hours; abacist prove gives up after 60 "
        "minutes. Try --format column-trace, where one column and a state have 40,000."
    )
    with pytest.warns(UserWarning, match="own-four will hardly be certified"):
        abacist.train(plain, out=tmp_path / "run", settings=QUICK)


MANY_STATES = """
from abacist import column_task

@column_task("{name}", operands={operands}, left_over="state", direction="most-significant-first")
def step(state, digits):
    return 0 * state, (state + {sum}) % {states}
"""


def test_a_machine_of_more_states_than_tokens_writes_their_digits(tmp_path):
    path = tmp_path / "own_many.py"
    source = MANY_STATES.format(name="own-many", operands=1, sum="7 * digits[:, 0]", states=201)
    path.write_text(source)
    extensions.load(str(path))
    recipe = find("own-many")
    assert recipe.format == FORMATS["column-trace-digits"]
    with pytest.raises(ConfigurationError, match=r"201 states\. Try --format column-trace-digits"):
        override(recipe, {"format": "column-trace"}).format.build(recipe.task)
    assert warning_about_proof(override(recipe, {"task.max_digits": 24})) is None
    assert warning_about_proof(recipe) == (
        "own-many will hardly be certified: it has states that are entered after 23 columns at the "
        "earliest, and training problems have at most 20 columns. Try --task.max_digits 48."
    )


def test_a_certificate_over_thousands_of_states_is_announced_before_training(tmp_path):
    path = tmp_path / "own_thousands.py"
    source = MANY_STATES.format(
        name="own-thousands", operands=2, sum="100 * digits[:, 0] + digits[:, 1]", states=9_000
    )
    path.write_text(source)
    extensions.load(str(path))
    assert warning_about_proof(find("own-thousands")) == (
        "own-thousands will hardly be certified: one column of 2 operands and a state, before each of "
        "the tokens that follow from them, have 5,400,000 combinations, and checking them would take "
        "about 2 hours; abacist prove gives up after 60 minutes. Try fewer states, fewer operands or a "
        "smaller base."
    )


def test_python_loads_installed_extensions_when_it_trains_and_loads(tmp_path, monkeypatch):
    called = []
    monkeypatch.setattr(extensions, "load_installed", lambda: called.append(1))
    run = abacist.train("add", out=tmp_path / "run", settings=QUICK)
    abacist.load(run.path)
    assert len(called) == 2


@pytest.mark.parametrize("source", ["missing.py", "no_such_module", "no.such.module"])
def test_an_extension_that_does_not_exist_is_one_line(source):
    with pytest.raises(UserError, match=f"there is no extension {source}"):
        extensions.load(source)


def test_an_extension_that_fails_leaves_no_table_that_it_made(tmp_path):
    # As in a process that has not imported the table before: whatever it holds is withdrawn.
    path = tmp_path / "own_table.py"
    path.write_text(
        "from abacist.extensions import Registry\n"
        "table = Registry('thing')\n"
        "for name in ('first', 'second'):\n"
        "    table.register(name, name)\n"
        "del table['first']\n"
        "1 / 0\n"
    )
    with pytest.raises(UserError, match="at line 6: ZeroDivisionError"):
        extensions.load(str(path))
    assert Registry.all.pop() == {}


def test_extension_without_a_name_is_refused(capsys):
    assert main(["recipes", "--extension"]) == 2
    assert "--extension needs a Python file" in capsys.readouterr().err


def test_a_kind_is_defined_once():
    @dataclass(frozen=True, kw_only=True)
    class Family(ConfigFamily):
        section: ClassVar = "own"

    @dataclass(frozen=True, kw_only=True)
    class First(Family):
        kind: ClassVar = "first"

    with pytest.raises(ConfigurationError, match="the own kind 'first' is registered already"):

        @dataclass(frozen=True, kw_only=True)
        class Second(Family):
            kind: ClassVar = "first"

    assert issubclass(First, Config)
    with pytest.raises(ConfigurationError, match="'arithmetic' is built in"):

        class Other(ArithmeticConfig):
            kind: ClassVar = "arithmetic"


QUICK = {
    "training.num_steps": 2,
    "training.warmup_steps": 0,
    "training.batch_size": 4,
    "training.validation_problems": 4,
}


def test_a_run_names_its_extension_and_asks_for_it(tmp_path, capsys):
    path = write(tmp_path / "own_tasks.py")
    extensions.load(str(path))
    run = abacist.train("own-sum", out=tmp_path / "run", settings=QUICK)
    (extension,) = json.loads((run.path / "run.json").read_text())["extensions"]
    assert extension["source"] == str(path)
    assert len(extension["sha256"]) == 64
    assert abacist.train("add", out=tmp_path / "add", settings=QUICK).path
    assert json.loads((tmp_path / "add" / "run.json").read_text())["extensions"] == []

    extensions._by_module.clear()
    with pytest.raises(RunError, match=f"Type --extension {path}"):
        abacist.load(run.path)


def change(path):
    """Change the extension own_tasks.py, as if it were loaded for the first time after that."""
    module = sys.modules.pop("abacist_extensions.own_tasks")
    assert module.__file__ == str(path)
    for table in (RECIPES, TASKS, COLUMN_TASKS):
        del table["own-sum"]
    extensions._by_module.clear()
    path.write_text(path.read_text() + "# changed\n")


def test_a_changed_extension_is_a_warning_or_an_error(tmp_path, capsys):
    path = write(tmp_path / "own_tasks.py")
    arguments = ["--extension", str(path)]
    quick = [word for name, value in QUICK.items() for word in (f"--{name}", str(value))]
    out = str(tmp_path / "run")
    assert main(["train", "own-sum", *arguments, "--out", out, "--train-only", *quick]) == 0
    # What is printed to be typed next works as printed.
    assert f"solve {out} 10,11 --extension {path}" in capsys.readouterr().out
    change(path)
    capsys.readouterr()

    assert main(["solve", out, "1,1", *arguments]) in (0, 1)
    assert "which has changed since" in capsys.readouterr().err
    for command in (["prove", out], ["train", "--resume", "--out", out]):
        assert main([*command, *arguments]) == 2
        assert "type --accept-changed-extension" in capsys.readouterr().err
    assert main(["prove", out, *arguments, "--accept-changed-extension"]) in (0, 1)


class InThisProcess:
    """An executor that carries out its trials in this process, until a seed at which it is interrupted."""

    def __init__(self, interrupted_at=None):
        self.interrupted_at = interrupted_at

    def carry_out(self, trials, path):
        for trial in trials:
            if trial.seed == self.interrupted_at:
                raise KeyboardInterrupt
            directory = trial.run_directory(path)
            yield Finished(trial, execution.carry_out(description(trial, directory.path)))

    def steps_made(self):
        return 0


def test_a_sweep_is_resumed_with_a_changed_extension_only_if_that_is_typed(tmp_path, capsys):
    path = write(tmp_path / "own_tasks.py")
    extensions.load(str(path))
    plan = sweep.of_seeds(override(find("own-sum"), QUICK), [0, 1])
    seeds = tmp_path / "seeds"
    with pytest.raises(KeyboardInterrupt):
        sweep.start(plan, seeds, InThisProcess(interrupted_at=1))
    (seeds / "seed-0" / "outcome.json").unlink()
    change(path)
    for command in ("train", "sweep"):
        arguments = ["--resume", "--out", str(seeds), "--extension", str(path)]
        assert main([command, *arguments]) == 2
        message = "another version of own_tasks.py, which has changed since. Restore it, or type "
        assert message.replace("own_tasks.py", str(path)) in capsys.readouterr().err
    with pytest.raises(RunError, match="which has changed since"):
        sweep.resume(seeds, InThisProcess())
    # The results can still be read.
    assert sweep.read(seeds).unfinished == 2
    results = sweep.resume(seeds, InThisProcess(), accept_changed_extension=True)
    assert [outcome.seed for outcome in results.groups[0].outcomes] == [0, 1]


SOURCE = [{"name": "own_tasks", "source": "own tasks.py", "sha256": "0" * 64}]


def test_a_command_line_names_the_extensions_of_a_record_or_of_this_command(tmp_path):
    assert extensions.command("prove", "my run") == "abacist prove 'my run'"
    extensions.load_all([path := str(write(tmp_path / "own_tasks.py"))])
    assert extensions.command("score", "RUN") == f"abacist score RUN --extension {path}"
    of_record = extensions.command("score", "RUN", record={"extensions": SOURCE})
    assert of_record == "abacist score RUN --extension 'own tasks.py'"
    assert extensions.command("prove", "RUN", record={}) == "abacist prove RUN"


def test_a_run_of_an_interactive_session_names_no_file():
    record = {"extensions": [{"name": "__main__", "source": "__main__", "sha256": None}]}
    assert extensions.command("prove", "RUN", record=record) == "abacist prove RUN"
    record["extensions"][0]["name"] = "an-earlier-session"
    with pytest.raises(RunError, match=r"not loaded\. Define it again in Python\.$"):
        extensions.check_loaded(record, "RUN")


COMMAND = r"abacist (?:train|score|prove|report|solve|look|sweep|compare|recipes)(?: [^<`\n]*)"


def test_every_command_of_a_report_and_of_an_error_names_the_extension(tmp_path, capsys):
    """Commands about a run that needs an extension can be typed as they are printed."""
    path = str(write(tmp_path / "own_tasks.py"))
    load, option = ["--extension", path], f"--extension {path}"
    out, quick = str(tmp_path / "run"), [f"--{n}={v}" for n, v in QUICK.items()]
    assert main(["train", "own-sum", *load, "--out", out, "--train-only", *quick]) == 0
    assert main(["report", out, *load]) == 0
    text = (tmp_path / "run" / "report.html").read_text()
    contents = re.findall(r"<(code|pre)\b[^>]*>(.*?)</\1>", text, re.DOTALL)
    plain = [html.unescape(re.sub(r"<[^>]+>", "", content)) for _, content in contents]
    commands = [content for content in plain if content.startswith("abacist ")]
    assert len(commands) >= 5
    assert {command for command in commands if option not in command} == set()
    capsys.readouterr()
    for arguments in (
        ["score", out, "--stored"],
        ["compare", out, out],
        ["train", "--resume", "--out", out, "--seed", "5"],
    ):
        assert main([*arguments, *load]) == 2
        for command in re.findall(COMMAND, error := capsys.readouterr().err):
            assert command.count(option) == command.count("abacist "), error
        assert option in error
    assert main(["recipes", *load]) == 0
    assert f"train NAME {option}" in " ".join(capsys.readouterr().out.split())
