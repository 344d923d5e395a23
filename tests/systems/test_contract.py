"""What holds for every registered system, whatever it does inside."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from kryograph import systems
from kryograph.data import Dataset, synthetic_citations, toy
from kryograph.graph import UNKNOWN, Graph, Split, Task
from kryograph.model import Model
from kryograph.systems import SYSTEMS, Fit, System, snowball, system
from kryograph.systems.network import NetworkSystem
from kryograph.systems.settings import SearchRange, Settings
from kryograph.training.loop import Conditions
from kryograph.training.stopping import StopRule

SPLIT = Split("by hand", train=range(45), validation=range(45, 145), test=range(145, 300))
SHORT = Conditions(rule=StopRule(max_epochs=15))
LONG = Conditions(rule=StopRule(max_epochs=60))
CHEAP: dict[str, object] = {"hidden": 8, "order": 4, "lr": 0.05, "optimizer": "adam"}


def has(name: str, *settings: str) -> bool:
    return settings_of(name).keys() >= set(settings)


def settings_of(name: str) -> Mapping[str, object]:
    return SYSTEMS[name].settings_type().as_dict()


def inner_of(name: str) -> str | None:
    """The system inside, if it has a system inside."""
    return str(settings_of(name)["inner"]) if has(name, "inner", "inner_settings") else None


every_system = pytest.mark.parametrize("name", SYSTEMS)
every_system_with_dropout = pytest.mark.parametrize(
    "name", [name for name in SYSTEMS if has(inner_of(name) or name, "dropout")]
)


@pytest.fixture(scope="module")
def data() -> Dataset:
    drawn = synthetic_citations(n=300, classes=3, words=50, signal=0.6, homophily=0.8, seed=3)
    return replace(drawn, public=SPLIT)


def small(name: str, *, operator: str = "sym", **changes: object) -> System:
    """The system with few units, and nothing dropped unless it is asked for; so for one inside."""
    inner = inner_of(name)
    if has(name, "members"):
        krylov = ",".join(f"{k}={v}" for k, v in (cheap("truncated-krylov") | changes).items())
        members = {"members": f"prototypes:rounds=2 + truncated-krylov:{krylov}"}
        return system(name, members, operator=operator)
    if inner is not None:
        own = {k: v for k, v in changes.items() if has(name, k)}
        inside = cheap(inner) | {k: v for k, v in changes.items() if k not in own}
        pairs = ",".join(f"{k}={v}" for k, v in inside.items() if has(inner, k))
        # In so small a graph three rounds would give labels to nearly every node.
        few = {"stages": 2} if has(name, "stages") else {}
        return system(name, {"inner_settings": pairs} | few | own, operator=operator)
    wanted = cheap(name) | changes
    return system(name, {k: v for k, v in wanted.items() if has(name, k)}, operator=operator)


def cheap(name: str) -> dict[str, object]:
    return CHEAP | {setting: 0.0 for setting in settings_of(name) if setting.endswith("dropout")}


def fit(
    name: str, task: Task, seed: int = 0, conditions: Conditions = SHORT, **changes: object
) -> Fit:
    return small(name, **changes).fit(task, seed=seed, conditions=conditions)


def check_probabilities(found: Fit, task: Task) -> None:
    probabilities = found.predict_proba()
    assert probabilities.shape == (task.graph.n, len(task.classes))
    assert np.isfinite(probabilities).all()
    assert (probabilities >= 0).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-12)
    assert found.task is task


# Coverage


def test_every_system_that_there_is_is_registered_and_tested() -> None:
    assert every_system.mark.args[1] is SYSTEMS
    found = set()
    for module in pkgutil.iter_modules(systems.__path__, f"{systems.__name__}."):
        for value in vars(importlib.import_module(module.name)).values():
            concrete = isinstance(value, type) and issubclass(value, System)
            if concrete and not inspect.isabstract(value) and not value.__name__.startswith("_"):
                found.add(value)
    assert found == set(SYSTEMS.values())


def test_every_file_that_registers_a_system_is_imported() -> None:
    here = Path(systems.__file__).parent
    registering = {path.stem for path in here.glob("*.py") if "@register(" in path.read_text()}
    registered = {cls.__module__.rpartition(".")[2] for cls in SYSTEMS.values()}
    assert registering - {"base"} == registered
    assert registered <= set(systems.__all__)


# What a system says of itself


@every_system
def test_a_system_describes_itself(name: str) -> None:
    cls = SYSTEMS[name]
    assert cls.name == name
    assert name == name.lower().strip()
    assert cls.summary.endswith(".")
    assert "\n" not in cls.summary
    assert re.search(r"\b(19|20)\d\d$", cls.paper), "the paper has no year"
    assert cls.equation.strip() == cls.equation != ""
    assert cls.__doc__


@every_system
def test_every_setting_says_what_it_is(name: str) -> None:
    for field in dataclasses.fields(SYSTEMS[name].settings_type):
        assert field.metadata["summary"].strip() == field.metadata["summary"] != ""


@every_system
def test_a_search_has_somewhere_to_look_and_everything_there_is_allowed(name: str) -> None:
    record = SYSTEMS[name].settings_type
    space = record.search_space()
    assert space
    for setting, where in space.items():
        default = settings_of(name)[setting]
        tried = (where.low, where.high) if isinstance(where, SearchRange) else where
        assert len(set(tried)) >= 2
        for value in tried:
            changed = record().replace({setting: type(default)(value)})
            assert getattr(changed, setting) == value


@every_system
def test_the_defaults_are_valid_settings_of_its_own(name: str) -> None:
    record = SYSTEMS[name].settings_type
    assert issubclass(record, Settings)
    assert dataclasses.is_dataclass(record)
    assert record().replace(record().as_dict()) == record()
    assert system(name).settings == record()
    others = [cls.settings_type for other, cls in SYSTEMS.items() if other != name]
    assert record not in others


# What every fit is


@every_system
def test_probabilities_are_finite_and_sum_to_one(name: str, data: Dataset) -> None:
    task = data.task()
    found = fit(name, task, dropout=0.5)
    check_probabilities(found, task)
    assert set(found.predict()) <= set(data.classes)


@pytest.mark.slow
@every_system
def test_it_learns(name: str, data: Dataset) -> None:
    found = fit(name, data.task(), conditions=LONG)
    right = found.predict_proba().argmax(axis=1) == data.labels
    assert right[SPLIT.train].mean() > 0.8
    assert right[SPLIT.test].mean() > 0.6
    assert found.validation_accuracy == right[SPLIT.validation].mean()


@every_system
def test_the_same_seed_gives_the_same_numbers(name: str, data: Dataset) -> None:
    first = fit(name, data.task(), seed=7, dropout=0.5)
    fit(name, data.task(), seed=8, dropout=0.5)
    second = fit(name, data.task(), seed=7, dropout=0.5)
    np.testing.assert_array_equal(first.predict_proba(), second.predict_proba())
    assert (first.epochs, first.validation_accuracy) == (second.epochs, second.validation_accuracy)


@every_system
def test_a_model_that_was_saved_and_read_says_the_same(
    name: str, data: Dataset, tmp_path: Path
) -> None:
    task, made = data.task(), small(name)
    found = made.fit(task, seed=0, conditions=SHORT)
    Model.of(made, found).save(tmp_path / "model")
    read = Model.load(tmp_path / "model")
    assert read.system == made
    np.testing.assert_allclose(read.predict_proba(task.graph), found.predict_proba(), atol=1e-6)
    seen = read.system.embed(read.weights, task.graph, len(task.classes))
    assert seen.shape[0] == task.graph.n
    assert np.isfinite(seen).all()


@every_system
def test_another_seed_gives_other_numbers_if_any_are_drawn(name: str, data: Dataset) -> None:
    first, second = (fit(name, data.task(), seed=seed).predict_proba() for seed in (7, 8))
    if SYSTEMS[name].uses_seed:
        assert np.abs(first - second).max() > 1e-3
    else:
        np.testing.assert_array_equal(first, second)


@every_system_with_dropout
def test_dropout_matters_while_training_only(name: str, data: Dataset) -> None:
    with_it, without = (fit(name, data.task(), dropout=rate) for rate in (0.5, 0.0))
    assert np.abs(with_it.predict_proba() - without.predict_proba()).max() > 1e-3


def test_the_systems_with_dropout_are_found() -> None:
    with_it = set(every_system_with_dropout.mark.args[1])
    assert {name for name in SYSTEMS if issubclass(SYSTEMS[name], NetworkSystem)} <= with_it
    assert {"gcn", "self-training"} <= with_it
    assert not {"lp", "prototypes"} & with_it


@every_system
def test_permuted_nodes_give_permuted_output(name: str, data: Dataset, float64: None) -> None:
    # In float64: sums in another order differ by rounding, which training makes larger.
    n = data.graph.n
    old = np.random.default_rng(0).permutation(n)  # new node i was node old[i]
    new = np.argsort(old)
    graph = Graph(
        sp.csr_array(data.graph.adjacency[old][:, old]), sp.csr_array(data.graph.features[old])
    )
    split = Split(
        "permuted", train=new[SPLIT.train], validation=new[SPLIT.validation], test=new[SPLIT.test]
    )
    moved = replace(data, graph=graph, labels=data.labels[old], public=split)
    plain, permuted = fit(name, data.task()), fit(name, moved.task())
    assert plain.validation_accuracy == permuted.validation_accuracy
    np.testing.assert_allclose(permuted.predict_proba(), plain.predict_proba()[old], atol=1e-6)
    assert not np.allclose(permuted.predict_proba(), plain.predict_proba(), atol=1e-2)


@every_system
def test_dense_and_sparse_features_give_the_same(name: str, data: Dataset) -> None:
    dense = Graph(data.graph.adjacency.copy(), data.graph.features.toarray())
    both = [fit(name, each.task()) for each in (data, replace(data, graph=dense))]
    np.testing.assert_allclose(both[0].predict_proba(), both[1].predict_proba(), atol=1e-4)


@every_system
def test_no_fit_touches_the_global_generators(name: str, data: Dataset) -> None:
    with torch.random.fork_rng():
        before = torch.get_rng_state()
        numpy_before = np.random.get_state()[1].copy()  # noqa: NPY002
        fit(name, data.task(), dropout=0.5)
        assert torch.equal(torch.get_rng_state(), before)
        np.testing.assert_array_equal(np.random.get_state()[1], numpy_before)  # noqa: NPY002


@pytest.fixture
def float64() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.mark.slow
@every_system
def test_float64(name: str, data: Dataset, float64: None) -> None:
    task = data.task()
    found = fit(name, task, conditions=LONG)
    check_probabilities(found, task)
    right = found.predict_proba().argmax(axis=1) == data.labels
    assert right[SPLIT.train].mean() > 0.8
    torch.set_default_dtype(torch.float32)
    plain = fit(name, task, conditions=LONG).predict_proba()
    near = 1.0 if SYSTEMS[name].uses_seed else 1e-5  # other weights are drawn in float64
    np.testing.assert_allclose(found.predict_proba(), plain, atol=near)


# Operators


@every_system
def test_both_operators_are_used_if_there_is_a_choice(name: str, data: Dataset) -> None:
    sym, rw = (fit(name, data.task(), operator=which) for which in ("sym", "rw"))
    check_probabilities(rw, rw.task)
    if SYSTEMS[name].uses_operator:
        assert np.abs(sym.predict_proba() - rw.predict_proba()).max() > 1e-3
    else:
        np.testing.assert_array_equal(sym.predict_proba(), rw.predict_proba())


@every_system
def test_the_operators_agree_on_a_regular_graph(name: str) -> None:
    labels = np.full(12, UNKNOWN)
    labels[:6] = [0, 1, 2, 0, 1, 2]
    split = Split("ring", train=[0, 1, 2], validation=[3, 4, 5], test=[6])
    task = Task(toy.cycle(12), split, labels, ("a", "b", "c"))
    sym, rw = (fit(name, task, operator=which) for which in ("sym", "rw"))
    np.testing.assert_allclose(sym.predict_proba(), rw.predict_proba(), atol=1e-5)


# Graphs at the edge


def in_pieces(seed: int = 0) -> Task:
    """Nodes 0–9 are a cycle, 10–19 a star, 20–23 alone; 22 and 23 have the same features.

    All labelled nodes are on the cycle. The seed draws the features of the star.
    """
    features = np.random.default_rng(1).random((24, 6))
    features[10:20] = np.random.default_rng([2, seed]).random((10, 6))
    features[23] = features[22]
    pieces = toy.disjoint(toy.cycle(10), toy.star(10), toy.isolated(4))
    graph = Graph(pieces.adjacency.copy(), features)
    labels = np.full(24, UNKNOWN)
    labels[:8] = [0, 1, 2, 0, 1, 2, 0, 1]
    split = Split("pieces", train=range(6), validation=[6, 7], test=[15, 22])
    return Task(graph, split, labels, ("a", "b", "c"))


@every_system
@pytest.mark.parametrize("operator", ["sym", "rw"])
def test_isolated_nodes_and_several_components(name: str, operator: str) -> None:
    task = in_pieces()
    found = fit(name, task, operator=operator)
    check_probabilities(found, task)
    probabilities = found.predict_proba()
    np.testing.assert_allclose(probabilities[22], probabilities[23], atol=1e-6)
    apart = np.abs(probabilities[20] - probabilities[21]).max()
    assert apart > 1e-4 if SYSTEMS[name].uses_features else apart == 0


@every_system
def test_components_do_not_see_each_other(name: str) -> None:
    first, second = (fit(name, in_pieces(seed)).predict_proba() for seed in (0, 1))
    elsewhere = np.r_[0:10, 20:24]
    if SYSTEMS[name].component_wise:
        np.testing.assert_allclose(first[elsewhere], second[elsewhere], atol=1e-5)
    if SYSTEMS[name].uses_features:
        assert np.abs(first[10:20] - second[10:20]).max() > 1e-3
    else:
        np.testing.assert_array_equal(first, second)


@every_system
def test_a_graph_without_edges(name: str) -> None:
    features = np.random.default_rng(0).random((12, 4))
    labels = np.full(12, UNKNOWN)
    labels[:6] = [0, 1, 0, 1, 0, 1]
    graph = Graph(toy.isolated(12).adjacency.copy(), features)
    task = Task(graph, Split("alone", range(4), [4, 5], range(6, 12)), labels, ("a", "b"))
    check_probabilities(fit(name, task), task)


@every_system
def test_one_class_is_missing_from_training(name: str, data: Dataset) -> None:
    train = [node for node in SPLIT.train if data.labels[node] != 2]
    assert any(data.labels[node] == 2 for node in SPLIT.train)
    # Without validation: by nodes of the missing class an early epoch would be chosen.
    task = data.task(Split("no 2", train, SPLIT.validation, SPLIT.test), validation=False)
    found = fit(name, task, conditions=LONG)
    check_probabilities(found, task)
    seen = found.predict_proba()[train].argmax(axis=1)
    assert np.mean(seen == data.labels[train]) > 0.8


@pytest.mark.slow
@every_system
def test_a_class_with_one_label(name: str, data: Dataset) -> None:
    [first, *others] = [node for node in SPLIT.train if data.labels[node] == 2]
    train = np.setdiff1d(SPLIT.train, others)
    split = Split("one 2", train, SPLIT.validation, SPLIT.test)
    found = fit(name, data.task(split, validation=False), conditions=LONG)
    check_probabilities(found, found.task)
    probabilities = found.predict_proba()
    assert np.mean(probabilities[train].argmax(axis=1) == data.labels[train]) > 0.8
    # The label counts: its node is likelier to be of the class than nodes of other classes are.
    rest = np.setdiff1d(train, [first])
    assert probabilities[first, 2] > probabilities[rest, 2].mean()


@every_system
def test_one_training_node_is_enough(name: str, data: Dataset) -> None:
    task = data.task(Split("one", [0], [], SPLIT.test))
    found = fit(name, task)
    check_probabilities(found, task)
    assert found.validation_accuracy is None
    assert found.predict_proba()[0].argmax() == data.labels[0]


# Snowball


def test_the_two_snowballs_differ_in_the_activation_only(data: Dataset) -> None:
    assert snowball.SnowballSystem.activation == "tanh"
    assert snowball.LinearSnowballSystem.activation == "identity"
    fits = [fit(name, data.task(), layers=2) for name in ("snowball", "linear-snowball")]
    assert np.abs(fits[0].predict_proba() - fits[1].predict_proba()).max() > 1e-3


# The engine


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("truncated-krylov", {"classifier": False}),
        ("truncated-krylov", {"classifier": True}),
        ("truncated-krylov", {"layers": 2}),
        ("snowball", {"layers": 3}),
        ("linear-snowball", {"layers": 3}),
    ],
)
@pytest.mark.parametrize("validation", [True, False])
def test_training_on_rows_equals_training_on_the_whole_graph(
    data: Dataset, name: str, changes: dict[str, object], validation: bool
) -> None:
    # Training and validation nodes lie between each other and between test nodes.
    scattered = Split("scattered", range(0, 300, 6), range(2, 300, 3), range(1, 300, 3))
    task = data.task(scattered, validation=validation)
    rows = small(name, **changes)
    # The same network, trained the long way: logits of all nodes in every epoch.
    long_way = type("WholeGraph", (SYSTEMS[name],), {"engine": NetworkSystem.engine})
    assert long_way.engine is not SYSTEMS[name].engine
    whole = long_way(rows.settings)
    ours, theirs = (each.fit(task, seed=2, conditions=SHORT) for each in (rows, whole))
    np.testing.assert_allclose(ours.predict_proba(), theirs.predict_proba(), atol=1e-5)
    assert ours.epochs == theirs.epochs == 15
    assert ours.validation_accuracy == theirs.validation_accuracy


# Truncated Krylov


@pytest.mark.parametrize("changes", [{"classifier": True}, {"layers": 2}, {"order": 1}])
def test_krylov_settings_change_the_fit(data: Dataset, changes: dict[str, object]) -> None:
    plain = fit("truncated-krylov", data.task())
    changed = fit("truncated-krylov", data.task(), **changes)
    check_probabilities(changed, changed.task)
    assert np.abs(plain.predict_proba() - changed.predict_proba()).max() > 1e-3
    right = changed.predict_proba().argmax(axis=1) == data.labels
    assert right[SPLIT.train].mean() > 0.8
