"""Checks that every system must pass, in the manner of scikit-learn's `parametrize_with_checks`.

A plug-in tests its system with pytest::

    import pytest
    from kryograph.testing import check_system

    @pytest.mark.parametrize("check", check_system("appnp"), ids=str)
    def test_appnp(check):
        check()

The checks fit the system to graphs of at most 300 nodes. A fit that several checks need is done
once and kept.
"""

from __future__ import annotations

import dataclasses
import pickle
import re
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.testing import assert_allclose, assert_array_equal

from kryograph.data import synthetic_citations, toy
from kryograph.errors import UsageError
from kryograph.graph import NO_NODES, UNKNOWN, Graph, Indices, Split, Task
from kryograph.model import Model
from kryograph.systems import SYSTEMS, Fit, SearchRange, Settings, System, system
from kryograph.systems.base import log_probabilities
from kryograph.training.loop import Conditions
from kryograph.training.stopping import StopRule

SHORT, LONG = (Conditions(rule=StopRule(max_epochs=epochs)) for epochs in (15, 60))
QUICK = {"hidden": 8, "order": 4, "stages": 2, "lr": 0.05, "optimizer": "adam"}
"""Settings with which a fit takes little time, for systems that have them."""

ALL_NODES = np.arange(300)
TRAIN, VALIDATION, TEST = np.split(ALL_NODES, [45, 145])


def check_system(name: str, settings: Mapping[str, object] | None = None) -> list[Check]:
    """List the checks of a built-in system or of a plug-in.

    The settings are those of the fits. By default they have few units and no dropout; a system that
    learns slowly may need a higher learning rate.

    >>> [str(check) for check in check_system("lp")][:2]
    ['describes_itself', 'describes_its_settings']
    """
    names = [n.removeprefix("_check_") for n in vars(Check) if n.startswith("_check_")]
    checks = [Check(name, check, settings or {}) for check in names]
    return [check for check in checks if check.name != "uses_dropout" or check._has_dropout]


def quick_settings(name: str, **changes: object) -> dict[str, object]:
    """Choose settings with few units and without dropout, so that a fit takes little time.

    Changes that the system lacks are settings of the system inside it, if it has the settings
    `inner` and `inner_settings`.
    """
    defaults = SYSTEMS.find(name).settings_type().as_dict()
    no_dropout = {key: 0.0 for key in defaults if key.endswith("dropout")}
    values = {k: v for k, v in (QUICK | no_dropout | changes).items() if k in defaults}
    if defaults.keys() >= {"inner", "inner_settings"}:
        inner = str((defaults | values)["inner"])
        rest = {key: value for key, value in changes.items() if key not in defaults}
        pairs = quick_settings(inner, **rest)
        values.setdefault("inner_settings", ",".join(f"{k}={v}" for k, v in pairs.items()))
    return values


@lru_cache(maxsize=64)
def _kept_fit(
    method: System, task: Task, seed: int, conditions: Conditions, dtype: torch.dtype
) -> tuple[Fit, bool]:
    """Fit a system with `dtype` as torch's default; tell whether it left global generators alone.

    The result is kept. Tasks are compared by identity.
    """

    def states() -> tuple[object, ...]:
        return torch.get_rng_state().tolist(), repr(np.random.get_state())  # noqa: NPY002

    with torch.random.fork_rng(devices=[]), ExitStack() as stack:
        stack.callback(torch.set_default_dtype, torch.get_default_dtype())
        torch.set_default_dtype(dtype)
        before = states()
        fit = method.fit(task, seed=seed, conditions=conditions)
        return fit, states() == before


@cache
def _citations() -> Task:
    """A citation graph of three classes; all labels are training labels."""
    drawn = synthetic_citations(n=300, classes=3, words=50, signal=0.6, homophily=0.8, seed=3)
    return drawn.task(Split("all", ALL_NODES, NO_NODES, NO_NODES))


@cache
def _task(*, train: tuple[int, ...] = tuple(TRAIN), validate: bool = True) -> Task:
    """The citation graph with few training nodes, and with validation labels or without."""
    return _with_split(_citations(), Split("few", np.array(train), VALIDATION, TEST), validate)


def _with_split(task: Task, split: Split, validate: bool = True) -> Task:
    labels = np.full(task.graph.n, UNKNOWN)
    for part in (split.train, split.validation) if validate else (split.train,):
        labels[part] = task.labels[part]
    return replace(task, split=split, labels=labels)


@cache
def _small(kind: str, seed: int = 0) -> Task:
    """A graph of 12 or 24 nodes, of which the first six train and the next three validate.

    In "pieces", nodes 0–9 are a ring, 10–19 a star, whose features have the seed, 20–23 isolated,
    and 22 and 23 have the same features.
    """
    pieces = toy.cycle(10), toy.star(10), toy.isolated(4)
    parts = {"ring": [toy.cycle(12)], "no edges": [toy.isolated(12)], "pieces": pieces}
    graph = toy.disjoint(*parts[kind])
    features = np.random.default_rng(1).random((24, 6))
    features[10:20] = np.random.default_rng([2, seed]).random((10, 6))
    features[23] = features[22]
    labels = np.full(graph.n, UNKNOWN)
    labels[:9] = np.arange(9) % 3
    split = Split(kind, np.arange(6), np.arange(6, 9), np.array([9]))
    graph = Graph(graph.adjacency.copy(), features[: graph.n])
    return Task(graph, split, labels, ("a", "b", "c"))


def _largest_difference(first: Fit, second: Fit) -> float:
    return float(np.abs(first.predict_proba() - second.predict_proba()).max())


def _share_right(fit: Fit, nodes: Indices) -> float:
    p, labels = fit.predict_proba()[nodes], _citations().labels[nodes]
    return float(np.mean(p.argmax(axis=1) == labels))


def _expect_right(fit: Fit, nodes: Indices, least: float = 0.8) -> None:
    share = _share_right(fit, nodes)
    assert share > least, f"{share:.0%} of the nodes are right, not more than {least:.0%}"


@dataclass(frozen=True)
class Check:
    """One check of one system. Call it without arguments; `str` gives its name.

    An `AssertionError` says why the statement `name` is false. The settings replace the quick ones.
    Each method whose name starts with `_check_` is a check.
    """

    system: str
    name: str
    settings: Mapping[str, object]

    @property
    def slow(self) -> bool:
        """Whether the check needs a fit of 60 epochs that no other check needs."""
        return self.name in ("learns", "learns_in_float64", "learns_a_class_with_one_label")

    def __call__(self) -> None:
        getattr(self, f"_check_{self.name}")()

    def __str__(self) -> str:
        return self.name

    @property
    def _class(self) -> type[System]:
        return SYSTEMS.find(self.system)

    @property
    def _has_dropout(self) -> bool:
        """Whether the system or the system inside it has the setting `dropout`."""
        settings = self._build().settings
        inner = getattr(settings, "inner", None)
        inside = SYSTEMS.find(inner).settings_type() if inner else settings
        return hasattr(settings, "dropout") or hasattr(inside, "dropout")

    def _build(self, operator: str = "sym", **changes: object) -> System:
        values = quick_settings(self.system, **{**self.settings, **changes})
        return system(self.system, values, operator=operator)

    def _fit(
        self,
        task: Task,
        *,
        seed: int = 0,
        conditions: Conditions = SHORT,
        dtype: torch.dtype = torch.float32,
        **changes: Any,
    ) -> Fit:
        """Fit the system, or return the fit that was kept; check the probabilities."""
        method = self._build(**changes)
        fit, _ = _kept_fit(method, task, seed, conditions, dtype)
        p, shape = fit.predict_proba(), (task.graph.n, len(task.classes))
        assert fit.task is task, "the fit has another task"
        assert p.shape == shape, f"the probabilities are {p.shape}, not {shape}"
        assert np.isfinite(p).all(), "a probability is not finite"
        assert (p >= 0).all(), "a probability is negative"
        assert_allclose(p.sum(axis=1), 1, atol=1e-12, err_msg="a sum of probabilities is not one")
        return fit

    def _check_describes_itself(self) -> None:
        cls = self._class
        assert cls.name == cls.name.lower().strip(), "the name is not in lower case"
        assert re.fullmatch(r"[^\n]+\.", cls.summary), "the summary is not one line with full stop"
        assert re.search(r"\b(19|20)\d\d$", cls.paper), "the paper does not end with its year"
        assert cls.equation.strip() == cls.equation != "", "the equation is empty or has margins"
        assert cls.__doc__, "the class has no docstring"

    def _check_describes_its_settings(self) -> None:
        record = self._class.settings_type
        assert issubclass(record, Settings), "the settings are no subclass of Settings"
        for entry in dataclasses.fields(record):
            assert entry.metadata.get("summary"), f"the setting {entry.name!r} has no summary"
        assert record().replace(record().as_dict()) == record(), "the defaults are not valid"
        assert system(self.system).settings == record(), "the system has other default settings"

    def _check_can_be_searched(self) -> None:
        record = self._class.settings_type
        assert record.search_space(), "no setting has values for a search"
        for name, allowed in record.search_space().items():
            values = (allowed.low, allowed.high) if isinstance(allowed, SearchRange) else allowed
            assert len(set(values)) >= 2, f"a search has only one value of {name!r}"
            kind = type(getattr(record(), name))
            for value in values:
                assert getattr(record().replace({name: kind(value)}), name) == value

    def _check_can_be_sent_to_worker_processes(self) -> None:
        method = self._build()
        assert pickle.loads(pickle.dumps(method)) == method, "the pickled system differs"

    def _check_gives_probabilities(self) -> None:
        fit = self._fit(_task(), dropout=0.5)
        assert set(fit.predict()) <= set(_task().classes), "a prediction is no class"

    def _check_learns(self) -> None:
        fit = self._fit(_task(), conditions=LONG)
        _expect_right(fit, TRAIN)
        _expect_right(fit, TEST, 0.6)
        assert fit.validation_accuracy == _share_right(fit, VALIDATION)

    def _check_learns_in_float64(self) -> None:
        fit = self._fit(_task(), conditions=LONG, dtype=torch.float64)
        _expect_right(fit, TRAIN)
        if not self._class.uses_seed:  # otherwise other weights are drawn
            plain = self._fit(_task(), conditions=LONG).predict_proba()
            assert_allclose(fit.predict_proba(), plain, atol=1e-5)

    def _check_same_seed_gives_same_numbers(self) -> None:
        first = self._fit(_task(), dropout=0.5)
        self._fit(_task(), seed=1)  # leaves nothing behind that the next fit notices
        second = self._build(dropout=0.5).fit(_task(), seed=0, conditions=SHORT)
        assert_array_equal(first.predict_proba(), second.predict_proba())
        assert first.epochs == second.epochs, "the two fits have different numbers of epochs"

    def _check_other_seed_gives_other_numbers(self) -> None:
        difference = _largest_difference(*(self._fit(_task(), seed=seed) for seed in (0, 1)))
        self._expect_influence(difference, "seed")

    def _check_leaves_global_generators_alone(self) -> None:
        method = self._build(dropout=0.5)
        _, untouched = _kept_fit(method, _task(), 0, SHORT, torch.float32)
        assert untouched, "a global generator of random numbers was used: use the seed of `fit`"

    def _check_uses_dropout(self) -> None:
        fits = [self._fit(_task(), dropout=rate) for rate in (0.5, 0.0)]
        assert _largest_difference(*fits) > 1e-3, "the setting 'dropout' has no influence"

    def _check_uses_the_operator(self) -> None:
        fits = [self._fit(_task(), operator=operator) for operator in ("sym", "rw")]
        self._expect_influence(_largest_difference(*fits), "operator")

    def _check_saved_model_predicts_the_same(self) -> None:
        method, task = self._build(), _task()
        fit = self._fit(task)
        with TemporaryDirectory() as folder:
            Model.of(method, fit).save(Path(folder, "model"))
            model = Model.load(Path(folder, "model"))
        assert model.system == method, "the loaded system differs from the saved one"
        assert_allclose(model.predict_proba(task.graph), fit.predict_proba(), atol=1e-6)

    def _check_embeds_the_hidden_layer(self) -> None:
        method, task = self._build(), _task()
        fit, classes = self._fit(task), len(task.classes)
        embedding = method.embed(fit.weights, task.graph, classes)
        assert np.isfinite(embedding).all(), "the embedding is not finite"
        assert len(embedding) == task.graph.n, "the embedding has another number of nodes"
        if method.has_hidden_layer:  # of several heads, which stand side by side
            hidden, width = getattr(method.settings, "hidden", 1), embedding.shape[1]
            assert width % hidden == 0, f"the width is {width}, no multiple of {hidden=}"
        else:
            expected = log_probabilities(method.apply(fit.weights, task.graph, classes))
            assert_allclose(embedding, expected, atol=1e-6)

    def _check_explains_exactly_or_refuses(self) -> None:
        task = _task()
        fit, classes = self._fit(task), len(task.classes)
        try:
            form = self._build().additive(fit.weights, task.graph, classes)
        except UsageError:
            return
        for node in (0, 100, 299):
            logs = form.log_probabilities(node)
            assert_allclose(np.exp(logs), fit.predict_proba()[node], atol=1e-4)
            parts = form.contributions(node, 0, 1)
            features = parts.features.sum() + parts.structure
            rest = parts.intercept + sum(parts.others.values())
            for part in (parts.hops.sum(), parts.nodes.sum(), parts.neighbours.sum(), features):
                assert_allclose(rest + part, logs[0] - logs[1], atol=1e-8)

    def _check_permuted_nodes_give_permuted_output(self) -> None:
        whole = _citations()
        old = np.random.default_rng(0).permutation(ALL_NODES)  # new node i was node old[i]
        new = np.argsort(old)
        adjacency, features = whole.graph.adjacency[old][:, old], whole.graph.features[old]
        graph = Graph(sp.csr_array(adjacency), sp.csr_array(features))
        split = Split("permuted", new[TRAIN], new[VALIDATION], new[TEST])
        moved = _with_split(replace(whole, graph=graph, labels=whole.labels[old]), split)
        # In float64: sums in another order differ by rounding, which training makes larger.
        plain, permuted = (self._fit(task, dtype=torch.float64) for task in (_task(), moved))
        assert_allclose(permuted.predict_proba(), plain.predict_proba()[old], atol=1e-6)
        assert plain.validation_accuracy == permuted.validation_accuracy
        assert _largest_difference(plain, permuted) > 1e-2, "all nodes have equal probabilities"

    def _check_dense_and_sparse_features_give_the_same(self) -> None:
        graph = _task().graph
        dense = Graph(graph.adjacency.copy(), sp.csr_array(graph.features).toarray())
        fits = [self._fit(task) for task in (_task(), replace(_task(), graph=dense))]
        assert_allclose(fits[0].predict_proba(), fits[1].predict_proba(), atol=1e-4)

    def _check_operators_agree_on_a_regular_graph(self) -> None:
        sym, rw = (self._fit(_small("ring"), operator=name) for name in ("sym", "rw"))
        assert_allclose(sym.predict_proba(), rw.predict_proba(), atol=1e-5)

    def _check_accepts_isolated_nodes(self) -> None:
        for operator in ("sym", "rw"):
            p = self._fit(_small("pieces"), operator=operator).predict_proba()
            assert_allclose(p[22], p[23], atol=1e-6, err_msg="equal isolated nodes differ")
            self._expect_influence(np.abs(p[20] - p[21]).max(), "features", 1e-4)

    def _check_keeps_components_apart(self) -> None:
        first, second = (self._fit(_small("pieces", seed)).predict_proba() for seed in (0, 1))
        star = np.isin(np.arange(24), np.arange(10, 20))
        if self._class.component_wise:
            assert_allclose(first[~star], second[~star], atol=1e-5)
        self._expect_influence(np.abs(first[star] - second[star]).max(), "features")

    def _expect_influence(self, difference: float, what: str, least: float = 1e-3) -> None:
        """Expect that seed, operator or features matter if and only if the system says so."""
        if getattr(self._class, f"uses_{what}"):
            assert difference > least, f"no influence of the {what}, but `uses_{what}` is true"
        else:
            assert difference == 0, f"influence of the {what}, but `uses_{what}` is false"

    def _check_accepts_a_graph_without_edges(self) -> None:
        self._fit(_small("no edges"))

    def _check_accepts_one_training_node(self) -> None:
        task = _task(train=(0,), validate=False)
        fit = self._fit(task)
        assert fit.validation_accuracy is None, "there is an accuracy without validation labels"
        assert fit.predict_proba()[0].argmax() == task.labels[0], "the only label is not learned"

    def _check_accepts_a_class_without_labels(self) -> None:
        self._fit_without_validation(TRAIN[_citations().labels[TRAIN] != 2])

    def _check_learns_a_class_with_one_label(self) -> None:
        third = _citations().labels[TRAIN] == 2
        first, others = TRAIN[third][0], TRAIN[~third]
        p = self._fit_without_validation(np.union1d(others, [first])).predict_proba()[:, 2]
        assert p[first] > p[others].mean(), "the only label of a class has no influence"

    def _fit_without_validation(self, train: Indices) -> Fit:
        """Fit on these nodes; with validation labels a rare class would end the run early."""
        task = _task(train=tuple(train.tolist()), validate=False)
        fit = self._fit(task, conditions=LONG)
        _expect_right(fit, train)
        return fit
