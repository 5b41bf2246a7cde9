"""What is enumerated for a column task is what its lines contain, in both notations."""

from collections import defaultdict

import pytest
import torch
from extension_tasks import MACHINES, GreatestCommonDivisorConfig, adds, column_task

from abacist.certificates.calculation_layout import find_layout
from abacist.certificates.certificate import count_wrong, prove
from abacist.certificates.column_addition import ColumnAdditionEnumeration, columns_below
from abacist.certificates.receptive_fields import pattern_of, visibility_in
from abacist.formats.config import FORMATS
from abacist.models.config import ModelConfig
from abacist.models.transformer import Transformer
from abacist.recipes.column_tasks import choose_notation, make_recipe
from abacist.scoring.trained_model import TrainedModel
from abacist.tasks.column_machine import ColumnMachine
from abacist.tasks.column_rule import ColumnRule
from abacist.tasks.problems import OWN, Problems

NOTATIONS = ("columns", "column-trace", "column-trace-digits")
SMALL = [name for name in MACHINES if "hexadecimal" not in name]
FEW_CONTEXTS = [
    "test-compare",
    "test-complement",
    "test-divide",
    "test-fifth",
    "test-larger-digits",
    "test-parity",
]
"""Machines of so few contexts that 3,000 random problems contain all of them."""
PAIRS = [
    (name, notation)
    for name in SMALL
    for notation in NOTATIONS
    if notation != "columns" or MACHINES[name].state_is_described
    if notation == "column-trace-digits" or name != "test-remainder"
]


def small_model(name, notation, steps_window=True):
    """A model of the recipe's positions, its task and its format."""
    machine, task = MACHINES[name], column_task(name)
    format = FORMATS[notation].build(task)
    positions = make_recipe(machine, task, notation).model.positions
    if not steps_window:
        positions = tuple(scheme for scheme in positions if scheme.coordinate != "step")
    config = ModelConfig(width=8, num_heads=2, mlp_width=8, positions=positions)
    torch.manual_seed(0)
    return TrainedModel(Transformer(config, len(format.vocabulary)), task.build(), format)


def enumerated_contexts(trained_model):
    """For every pattern, the contexts that are enumerated, with their right next tokens."""
    layout = find_layout(trained_model.task, trained_model.format, trained_model.model.config)
    enumeration = ColumnAdditionEnumeration(trained_model.model, layout, most_cases=1e9)
    contexts = defaultdict(set)
    for part, _ in enumeration.parts():
        for context in part:
            rows = torch.cat([context.ids, context.target.unsqueeze(1)], dim=1)
            contexts[context.pattern.key] |= set(map(tuple, rows.tolist()))
    return layout, contexts


def contexts_in_lines(trained_model, layout, problems):
    """For every pattern, the contexts that right lines contain."""
    task, format = trained_model.task, trained_model.format
    contexts = defaultdict(set)
    patterns_by_shape = {}
    answer = task.answer(problems)
    lines = format.write(problems, answer)
    rows = zip(
        lines.ids.tolist(), problems.lengths_BN.tolist(), answer.lengths_B.tolist(), strict=True
    )
    for ids, lengths, written in rows:
        if task.rule.most_significant_first:
            lengths = [max(lengths)] * len(lengths)
        shape = (tuple(lengths), written)
        if shape not in patterns_by_shape:
            skeleton = layout._calculation(*shape)
            visibility = visibility_in(trained_model.model, skeleton.line)
            patterns_by_shape[shape] = [
                (query, pattern_of(skeleton, visibility, query)) for query in skeleton.queries
            ]
        length = ids.index(format.end_id) + 1
        for query, pattern in patterns_by_shape[shape]:
            if query < length - 1:
                held = [ids[token] for token in pattern.tokens]
                contexts[pattern.key].add((*held, ids[query + 1]))
    return contexts


@pytest.mark.parametrize(("name", "notation"), PAIRS)
def test_the_enumeration_holds_exactly_what_right_lines_contain(name, notation):
    trained_model = small_model(name, notation)
    layout, enumerated = enumerated_contexts(trained_model)
    task = trained_model.task
    generator = torch.Generator().manual_seed(0)
    shapes = task.draw_shapes(3_000 if name in FEW_CONTEXTS else 1_000, generator)
    drawn = task.draw(shapes, generator)
    contained = contexts_in_lines(trained_model, layout, drawn)
    for key, contexts in contained.items():
        assert contexts <= enumerated[key]
    if name in FEW_CONTEXTS:
        assert contained == {key: contexts for key, contexts in enumerated.items() if contexts}


@pytest.mark.parametrize(
    ("name", "notation"),
    [
        ("test-compare", "column-trace"),
        ("test-subtract", "column-trace"),
        ("test-subtract", "column-trace-digits"),
        ("test-remainder", "column-trace-digits"),
    ],
)
def test_an_untrained_model_of_a_column_task_gets_a_counterexample(name, notation):
    certificate = prove(small_model(name, notation))
    assert not certificate.certified
    assert certificate.counterexample is not None
    assert not certificate.counterexample.correct


def test_a_wide_window_shows_more_columns_and_both_states():
    trained_model = small_model("test-parity", "column-trace-digits", steps_window=False)
    _, enumerated = enumerated_contexts(trained_model)
    task = trained_model.task
    generator = torch.Generator().manual_seed(0)
    drawn = task.draw(task.draw_shapes(3_000, generator), generator)
    layout = find_layout(task, trained_model.format, trained_model.model.config)
    contained = contexts_in_lines(trained_model, layout, drawn)
    assert contained == {key: contexts for key, contexts in enumerated.items() if contexts}
    narrow = enumerated_contexts(small_model("test-parity", "column-trace-digits"))[1]
    assert sum(map(len, enumerated.values())) > sum(map(len, narrow.values()))


def test_sums_of_binary_numbers_write_their_states():
    def exclusive_or(state, digits):
        return digits.sum(-1) % 2, state

    notation, reason = choose_notation(ColumnMachine("sum", ColumnRule(adds(2), base=2)))
    assert (notation, reason[:9]) == ("column-trace", "in base 2")
    assert choose_notation(ColumnMachine("sum", ColumnRule(adds(3), base=3)))[0] == "columns"
    # There is no state to learn about.
    xor = ColumnMachine("xor", ColumnRule(exclusive_or, "nothing", 2))
    assert choose_notation(xor)[0] == "columns"


def test_states_of_a_known_column_are_those_that_can_be_entered_there():
    rule = MACHINES["test-fifth"].rule
    # The first of several digits of a binary number is 1: 1; 10 and 11; 100 to 111; and so on.
    for num_columns, states in enumerate(([0], [1], [2, 3], [0, 1, 2, 4], [0, 1, 2, 3, 4])):
        paths = columns_below(rule, 1, num_columns)
        assert list(paths) == states
        assert {len(path) for path in paths.values()} == {num_columns}
        assert all(int("".join(str(d) for (d,) in p) or "0", 2) % 5 == s for s, p in paths.items())


def test_a_problem_made_from_a_context_of_a_known_column_contains_it():
    trained_model = small_model("test-fifth", "column-trace-digits")
    layout, _ = enumerated_contexts(trained_model)
    enumeration = ColumnAdditionEnumeration(trained_model.model, layout, most_cases=1e9)
    num_checked = 0
    for context in (context for part, _ in enumeration.parts() for context in part):
        if not context.pattern.shows_its_start or context.pattern.lowest_column == 1:
            continue
        for case, row in enumerate(context.ids.tolist()):
            problems = Problems.from_texts([context.operands(case)], [OWN])
            contained = contexts_in_lines(trained_model, layout, problems)
            assert (*row, int(context.target[case])) in contained[context.pattern.key]
            num_checked += 1
    assert num_checked > 5


def test_a_task_that_is_no_machine_is_measured_only():
    config = GreatestCommonDivisorConfig()
    format = FORMATS["text"].build(config)
    model = Transformer(ModelConfig(width=8, num_heads=2), len(format.vocabulary))
    certificate = prove(TrainedModel(model, config.build(), format))
    assert certificate.reason.startswith("test-gcd is a task of its own and is only measured")


def test_the_notation_writes_states_where_nothing_else_tells_them():
    described = {name: choose_notation(machine)[0] for name, machine in MACHINES.items()}
    assert described == {
        "test-add": "columns",
        "test-add-hexadecimal": "column-trace",
        "test-add-three": "columns",
        "test-subtract": "columns",
        "test-divide": "columns",
        "test-remainder": "column-trace-digits",
        "test-fifth": "column-trace",
        "test-compare": "column-trace",
        "test-complement": "columns",
        "test-larger-digits": "columns",
        "test-parity": "columns",
    }


def test_every_wrong_context_of_a_task_of_three_operands_becomes_a_problem():
    trained_model = small_model("test-add-three", "columns")
    problems = []
    wrong = count_wrong(trained_model, problems.append)
    assert wrong
    assert wrong == len(problems)
    assert {problem.count("&") for problem in problems} == {2}
