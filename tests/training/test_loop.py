from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from kryograph.data import Dataset, synthetic_citations, toy
from kryograph.engine.forward import WholeGraph, Workload
from kryograph.errors import UsageError
from kryograph.graph import UNKNOWN, Graph, Split, Task
from kryograph.nn.functional import Masks, NodeFeatures
from kryograph.operators import Operator, operator
from kryograph.systems import system
from kryograph.training.loop import Conditions, Diverged, Epoch, nodes_of, train_network
from kryograph.training.optimizers import Optimizer
from kryograph.training.stopping import RULES, StopRule, Watch, exactly

SPLIT = Split("by hand", train=range(30), validation=range(30, 130), test=range(130, 300))
SHORT = Conditions(rule=StopRule(max_epochs=20))


@pytest.fixture(scope="module")
def data() -> Dataset:
    """A graph so noisy that its validation score falls once the training nodes are learned."""
    drawn = synthetic_citations(n=300, classes=3, words=60, signal=0.4, homophily=0.5, seed=1)
    return replace(drawn, public=SPLIT)


@pytest.fixture
def pair() -> Task:
    """Node 0 trains, node 1 validates, node 2 tests; the class of the first two is 0."""
    split = Split("pair", train=[0], validation=[1], test=[2])
    return Task(toy.path(3), split, np.array([0, 0, UNKNOWN]), ("a", "b"))


class Climber(nn.Module):
    """Training pushes w up; the training node is right if w > 0, the validation one if w < 2.6."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.zeros(()))

    def forward(self, x: NodeFeatures, L: Operator, masks: Masks | None = None) -> Tensor:
        margin = torch.stack([self.w, 2.6 - self.w, self.w])
        return torch.stack([margin, torch.zeros_like(margin)], dim=1)


class Descent(Optimizer):
    """Against the gradient, so that weights can be followed by hand."""

    @torch.no_grad()
    def step(self) -> None:
        for parameter in self.state:
            parameter -= self.lr * parameter.grad


def on_task(network: nn.Module, task: Task) -> WholeGraph:
    """The network, which looks at neither features nor graph."""
    path = operator(task.graph)
    load = Workload(network, torch.zeros(3, 1), path, nodes_of(task, "cpu"), Masks())
    return WholeGraph(load)


def climb(task: Task, rule: StopRule, seen: list[float] | None = None) -> tuple[Climber, Watch]:
    network = Climber()
    note = [] if seen is None else seen
    trained = train_network(
        on_task(network, task),
        task,
        Descent(network.parameters(), lr=4.0, weight_decay=0.0),
        Conditions(rule=rule),
        on_epoch=lambda epoch: note.append(network.w.item()),
    )
    return network, trained


# Which weights are kept


def test_the_best_epoch_by_hand(pair: Task) -> None:
    # w moves by 4 / (1 + e^w): to 2.000, 2.477, 2.787, … and passes 2.6 in the third epoch.
    weights: list[float] = []
    network, trained = climb(pair, StopRule(patience=5), weights)
    assert weights[:3] == pytest.approx([2.0, 2.4768, 2.7869], abs=1e-4)
    assert [epoch.validation_accuracy for epoch in trained.history] == [1, 1, 0, 0, 0, 0, 0]
    assert [epoch.training_accuracy for epoch in trained.history] == [1] * 7
    assert [epoch.number for epoch in trained.history] == [1, 2, 3, 4, 5, 6, 7]
    assert (trained.epochs, trained.kept) == (7, 2)
    # A reference instead of a copy would hold the weight of epoch 7.
    assert network.w.item() == weights[1]
    assert weights[6] > 3


def test_losses_are_those_before_the_step(pair: Task) -> None:
    _, trained = climb(pair, StopRule(patience=5))
    assert trained.history[0].loss == pytest.approx(np.log(2))
    assert trained.history[1].loss == pytest.approx(np.log1p(np.exp(-2)))


def test_the_cap_after_the_peak_ends_a_run(pair: Task) -> None:
    _, trained = climb(pair, StopRule(patience=50, after_peak=9))
    assert trained.epochs == 1 + 9


def test_without_validation_labels_the_training_score_is_watched(pair: Task) -> None:
    hidden = replace(pair, labels=np.array([0, UNKNOWN, UNKNOWN]))
    weights: list[float] = []
    network, trained = climb(hidden, StopRule(max_epochs=8, patience=3), weights)
    assert [epoch.validation_accuracy for epoch in trained.history] == [None] * 8
    assert trained.kept == 8  # every epoch ties, and the last one is kept
    assert network.w.item() == weights[-1]


class Forgetful(Climber):
    """In training the node is right from w > 2.2 on only, as if dropout took the rest away."""

    def forward(self, x: NodeFeatures, L: Operator, masks: Masks | None = None) -> Tensor:
        lost = torch.tensor([[2.2 if self.training else 0.0, 0.0]])
        return super().forward(x, L, masks) - lost


def forget(task: Task, rule: StopRule) -> tuple[Forgetful, Watch, list[float], int]:
    """The network, its run, the weights after each epoch, the first step that was right."""
    network = Forgetful()
    weights: list[float] = []
    trained = train_network(
        on_task(network, task),
        task,
        Descent(network.parameters(), lr=1.0, weight_decay=0.0),
        Conditions(rule=rule),
        on_epoch=lambda epoch: weights.append(network.w.item()),
    )
    before = [0.0, *weights]  # the weight that each step started from
    return network, trained, weights, next(t for t, w in enumerate(before, 1) if w > 2.2)


def test_the_rule_of_li_watches_the_training_step_itself(pair: Task) -> None:
    _, trained, _, right = forget(pair, RULES["li"])
    assert trained.kept == right
    assert trained.epochs == 200


def test_the_rule_of_june_counts_from_a_step_that_is_right_with_dropout(pair: Task) -> None:
    hidden = replace(pair, labels=np.array([0, UNKNOWN, UNKNOWN]))
    network, trained, weights, right = forget(hidden, RULES["june"])
    assert right > 1
    assert trained.epochs == trained.kept == right + 200
    assert network.w.item() == weights[-1]
    _, november, _, _ = forget(hidden, RULES["paper"])
    assert november.epochs == 1 + 200  # without dropout the first epoch is right


def test_the_rule_of_june_keeps_the_last_epoch_only_without_validation_labels(pair: Task) -> None:
    falling = replace(RULES["june"], patience=3)
    network, trained, weights, _ = forget(pair, falling)
    scores = [epoch.validation_accuracy for epoch in trained.history]
    assert scores[-4:] == [1, 0, 0, 0]
    assert (trained.kept, trained.epochs) == (len(scores) - 3, len(scores))
    assert network.w.item() == weights[trained.kept - 1]


def test_a_run_of_exactly_so_many_epochs_keeps_the_last(pair: Task) -> None:
    weights: list[float] = []
    network, trained = climb(pair, exactly(5), weights)
    assert [epoch.validation_accuracy for epoch in trained.history] == [1, 1, 0, 0, 0]
    assert trained.kept == 5
    assert network.w.item() == weights[4]


def test_train_scores_only_the_last_epoch_without_callback(pair: Task) -> None:
    class Counted(WholeGraph):
        scorings = 0

        def scored(self) -> Tensor:
            self.scorings += 1
            return super().scored()

    network, (heard, _) = Climber(), climb(pair, exactly(5))
    plain = on_task(network, pair)
    counted = Counted(plain.load)
    descent = Descent(network.parameters(), lr=4.0, weight_decay=0.0)
    trained = train_network(counted, pair, descent, Conditions(rule=exactly(5)))
    assert (trained.epochs, trained.kept, counted.scorings) == (5, 5, 1)
    assert network.w.item() == heard.w.item()


def test_a_penalty_is_part_of_the_loss_and_of_the_step(pair: Task) -> None:
    class Held(WholeGraph):
        def penalty(self) -> Tensor:
            return 0.25 * self.network.w

    network, weights = Climber(), list[float]()
    plain = on_task(network, pair)
    trained = train_network(
        Held(plain.load),
        pair,
        Descent(network.parameters(), lr=4.0, weight_decay=0.0),
        Conditions(rule=StopRule(max_epochs=2)),
        on_epoch=lambda epoch: weights.append(network.w.item()) if epoch.number == 1 else None,
    )
    # The loss pulls w up by 4 / 2 and the penalty holds it back by 4 / 4.
    assert weights == pytest.approx([1.0])
    assert trained.history[0].loss == pytest.approx(np.log(2))
    assert trained.history[1].loss == pytest.approx(np.log1p(np.exp(-1)) + 0.25)


@pytest.mark.parametrize("name", ["linear-snowball", "snowball", "truncated-krylov"])
def test_restored_weights_reproduce_the_recorded_score(data: Dataset, name: str) -> None:
    history: list[Epoch] = []
    conditions = Conditions(rule=StopRule(patience=30))
    fit = system(name, {"hidden": 16}).fit(
        data.task(), seed=3, conditions=conditions, on_epoch=history.append
    )
    scores = [epoch.validation_accuracy or 0 for epoch in history]
    kept = max(range(len(scores)), key=lambda t: (scores[t], t)) + 1
    assert fit.epochs == len(history)
    assert kept < fit.epochs
    assert scores[-1] < scores[kept - 1]  # else restoring would not matter
    nodes = SPLIT.validation
    right = fit.predict_proba()[nodes].argmax(axis=1) == data.labels[nodes]
    assert right.mean() == fit.validation_accuracy == scores[kept - 1]


def test_without_validation_a_fit_reports_no_validation_score(data: Dataset) -> None:
    history: list[Epoch] = []
    fit = system("snowball", {"hidden": 8}).fit(
        data.task(validation=False), conditions=SHORT, on_epoch=history.append
    )
    assert fit.validation_accuracy is None
    assert {epoch.validation_accuracy for epoch in history} == {None}
    right = fit.predict_proba()[SPLIT.train].argmax(axis=1) == data.labels[SPLIT.train]
    assert right.mean() == max(epoch.training_accuracy for epoch in history)


# Whose logits a run asks for


def test_training_nodes_come_first_and_keep_their_order(pair: Task) -> None:
    labels = np.array([1, 0, 1, UNKNOWN, 0])
    split = Split("mixed", train=[4, 1], validation=[2, 0], test=[3])
    nodes = nodes_of(Task(toy.path(5), split, labels, ("a", "b")), "cpu")
    assert nodes.training.tolist() == split.train.tolist()
    assert nodes.validation.tolist() == split.validation.tolist()
    assert nodes.scored.tolist() == [*split.train, *split.validation]


def test_without_validation_labels_only_training_nodes_are_scored(pair: Task) -> None:
    nodes = nodes_of(replace(pair, labels=np.array([0, UNKNOWN, UNKNOWN])), "cpu")
    assert nodes.validation.tolist() == []
    assert nodes.scored.tolist() == [0]
    assert nodes.scored.dtype == torch.int64


# Runs that fail


def test_a_loss_that_is_no_number_ends_the_run(pair: Task) -> None:
    class Rooted(Climber):
        def forward(self, x: NodeFeatures, L: Operator, masks: Masks | None = None) -> Tensor:
            # The root ceases to be a number once w has passed 2.7, in the third epoch.
            return super().forward(x, L) + 0 * (2.7 - self.w).sqrt()

    network = Rooted()
    seen: list[int] = []
    with pytest.raises(Diverged) as caught:
        train_network(
            on_task(network, pair),
            pair,
            Descent(network.parameters(), lr=4.0, weight_decay=0.0),
            Conditions(),
            on_epoch=lambda epoch: seen.append(epoch.number),
        )
    message = str(caught.value)
    assert "the network's output is not finite in epoch 3" in message
    assert "most likely because the learning rate 4 is too high" in message
    assert caught.value.exit_code == 1
    assert seen[:2] == [1, 2]


def overflowing(data: Dataset) -> Task:
    """Features near the largest float32: two layers and a large step are too much."""
    graph = Graph(data.graph.adjacency.copy(), (data.graph.features * 1e36).tocsr())
    return replace(data, graph=graph).task()


def test_a_system_that_diverges_names_the_learning_rate(data: Dataset) -> None:
    method = system("snowball", {"hidden": 8, "layers": 3, "lr": 900.0})
    with pytest.raises(Diverged, match=r"in epoch \d+, .* the learning rate 900 is too high"):
        method.fit(overflowing(data))


@pytest.mark.parametrize("name", ["snowball", "truncated-krylov"])
def test_a_fit_never_holds_what_is_no_number(data: Dataset, name: str) -> None:
    method = system(name, {"hidden": 8, "layers": 3, "lr": 900.0})
    try:
        fit = method.fit(overflowing(data), conditions=Conditions(rule=StopRule(max_epochs=1)))
    except Diverged:
        return
    assert np.isfinite(fit.predict_proba()).all()


# Conditions


def test_an_unknown_precision_is_refused() -> None:
    with pytest.raises(UsageError, match=r"Unknown precision 'bfloat61': .*'bfloat16'"):
        Conditions(precision="bfloat61")


@pytest.mark.parametrize("device", ["nonsense", "cuda:99", ""])
def test_a_device_that_is_not_there_is_refused(device: str) -> None:
    with pytest.raises(UsageError) as caught:
        Conditions(device=device).check()
    message = str(caught.value)
    assert message.startswith(f"The device {device!r} cannot be used here: ")
    assert message.endswith(" Try --device cpu.")
    assert "\n" not in message


def test_a_device_that_holds_no_numbers_is_refused() -> None:
    with pytest.raises(UsageError, match="The device 'meta' cannot be used here"):
        Conditions(device="meta").check()


@pytest.mark.usefixtures("bfloat16")
@pytest.mark.parametrize("name", ["linear-snowball", "snowball", "truncated-krylov"])
def test_bfloat16_differs_and_is_about_as_good(name: str) -> None:
    data = replace(synthetic_citations(n=300, classes=3, words=60, signal=0.8), public=SPLIT)
    method = system(name, {"hidden": 16, "lr": 0.05, "dropout": 0.5, "optimizer": "adam"})
    whole = method.fit(data.task(), conditions=SHORT)
    half = method.fit(data.task(), conditions=replace(SHORT, precision="bfloat16"))
    assert not np.array_equal(whole.predict_proba(), half.predict_proba())
    np.testing.assert_allclose(half.predict_proba().sum(axis=1), 1)
    nodes = SPLIT.test
    scores = [
        np.mean(fit.predict_proba()[nodes].argmax(axis=1) == data.labels[nodes])
        for fit in (whole, half)
    ]
    assert min(scores) > 0.6
    assert abs(scores[0] - scores[1]) < 0.05


# Randomness is an argument


def test_a_fit_does_not_depend_on_the_global_generator(data: Dataset) -> None:
    method = system("snowball", {"hidden": 8})
    with torch.random.fork_rng():
        torch.manual_seed(1)
        first = method.fit(data.task(), seed=5, conditions=SHORT)
        torch.manual_seed(2)
        second = method.fit(data.task(), seed=5, conditions=SHORT)
    np.testing.assert_array_equal(first.predict_proba(), second.predict_proba())


def test_a_run_leaves_nothing_for_the_next(data: Dataset) -> None:
    method = system("snowball", {"hidden": 8})
    rule = Conditions(rule=StopRule(max_epochs=80, patience=15))
    histories: list[list[Epoch]] = [[], []]
    method.fit(data.task(), seed=1, conditions=rule, on_epoch=histories[0].append)
    method.fit(data.task(), seed=2, conditions=rule)
    system("truncated-krylov", {"hidden": 8}).fit(data.task(), seed=1, conditions=rule)
    method.fit(data.task(), seed=1, conditions=rule, on_epoch=histories[1].append)
    assert histories[0] == histories[1]
