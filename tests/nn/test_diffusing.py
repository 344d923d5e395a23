"""Gradients for edge weights, explainers' masks and exported programs equal the literal form."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.autograd import gradcheck
from torch_geometric.explain import Explainer, GNNExplainer, GraphMaskExplainer, PGExplainer
from torch_geometric.explain.algorithm.captum import CaptumModel, MaskLevelType
from torch_geometric.explain.algorithm.utils import clear_masks, set_masks
from torch_geometric.nn import GCNConv
from torch_geometric.utils import get_num_hops

from kryograph.data import toy
from kryograph.errors import UsageError
from kryograph.nn.diffusing import as_diffusion, as_operator
from kryograph.nn.hop import Hop
from kryograph.nn.multi_scale import KrylovConv, Snowball, SnowballConv, TruncatedKrylov
from kryograph.nn.network import GCN
from kryograph.operators import OPERATORS, EdgeOperator, Operator, from_edge_index, operator
from kryograph.sparse import SparseMatrix
from tests.layers import close, directed, random, seeded

pytestmark = pytest.mark.usefixtures("double")

N, EDGES = 9, 25
MULTICLASS = {
    "mode": "multiclass_classification",
    "task_level": "node",
    "return_type": "raw",
}
every_operator = pytest.mark.parametrize("name", OPERATORS)


def modules(name: str = "sym") -> list[nn.Module]:
    """Layers and networks from 3 features to 2 outputs, without dropout."""
    return [
        KrylovConv(3, 2, order=4, operator=name),
        SnowballConv(3, 2, operator=name),
        TruncatedKrylov(3, 4, 2, 3, layers=2, p=1, operator=name),
        Snowball(3, 4, 2, 2, operator=name),
    ]


every_module = pytest.mark.parametrize("number", range(4))


def constant(module: nn.Module, x: Tensor, edge_index: Tensor, weight: Tensor | None) -> Tensor:
    """The output by the constant operator, which other tests compare with dense powers of L."""
    out: Tensor = module(x, from_edge_index(edge_index, weight, x.shape[0], module.operator))
    return out


# The operator that an argument stands for


def test_an_operator_is_taken_as_it_is() -> None:
    walk = operator(toy.path(3), "rw")
    assert as_operator(walk, None, 3, "sym") is walk
    some = walk.tensor(torch.float32).rows(torch.tensor([2]))
    assert as_operator(some, None, 3, "sym") is some


def test_an_edge_index_becomes_the_operator_of_that_name() -> None:
    found = as_operator(torch.tensor([[0], [1]]), torch.tensor([3.0]), 2, "rw")
    assert isinstance(found, Operator)
    assert found.matrix.toarray().tolist() == [[1, 0], [0.75, 0.25]]


def test_no_graph_is_refused() -> None:
    with pytest.raises(ValueError, match="needs an edge_index or an Operator"):
        as_operator(None, None, 3, "sym")


def test_an_operator_takes_no_edge_weight() -> None:
    with pytest.raises(ValueError, match="an Operator has its own weights"):
        as_operator(operator(toy.path(3)), torch.ones(2), 3, "sym")


def test_gradients_need_an_operator_of_edges_and_nothing_else_does() -> None:
    edges, weight = torch.tensor([[0], [1]]), torch.ones(1, requires_grad=True)

    def kind(weight: Tensor | None, *, explained: bool = False) -> type:
        return type(as_diffusion(edges, weight, 2, "sym", explained=explained))

    assert kind(weight) is EdgeOperator
    assert kind(None, explained=True) is EdgeOperator
    assert kind(None) is kind(weight.detach()) is Operator
    with torch.no_grad():
        assert kind(weight) is Operator


def test_an_edge_mask_without_edges_is_refused() -> None:
    conv, edges = KrylovConv(1, 1, order=2), torch.tensor([[0, 1], [1, 0]])
    set_masks(conv, nn.Parameter(torch.zeros(2)), edges)
    with pytest.raises(UsageError, match="pass an edge_index, not an Operator"):
        conv(torch.ones(2, 1), operator(toy.path(2)))


def test_networks_without_such_gradients_refuse_them() -> None:
    weight = torch.ones(1, requires_grad=True)
    with pytest.raises(UsageError, match="no gradients with respect to edge weights: detach"):
        GCN(1, 1, 1)(torch.ones(2, 1), torch.tensor([[0], [1]]), weight)


# Gradients with respect to edge weights


@every_operator
@every_module
def test_gradients_for_edge_weights_are_numerical_derivatives(name: str, number: int) -> None:
    module, (edges, weight) = modules(name)[number], directed(N, EDGES, seed=0)
    x = random(N, 3).requires_grad_()
    assert gradcheck(lambda x, w: module(x, edges, w), (x, weight.requires_grad_()))


@every_operator
@every_module
def test_the_output_is_the_same_with_and_without_gradients(name: str, number: int) -> None:
    module, (edges, weight) = modules(name)[number], directed(N, EDGES, seed=1)
    edges = torch.cat([edges, torch.tensor([[2], [2]])], dim=1)  # a loop gives way
    weight, x = torch.cat([weight, torch.ones(1)]), random(N, 3)
    expected = constant(module, x, edges, weight)
    assert close(module(x, edges, weight.clone().requires_grad_()), expected)


def test_the_gradient_of_one_weight_by_hand() -> None:
    # Node 1 has itself and node 0 with weight w: (w x_0 + x_1) / (w + 1) = 3 w / (w + 1).
    conv = SnowballConv(1, 1, bias=False, operator="rw")
    nn.init.ones_(conv.weight)
    weight = torch.tensor([2.0], requires_grad=True)
    out = conv(torch.tensor([[3.0], [0.0]]), torch.tensor([[0], [1]]), weight)
    assert out.tolist() == [[3.0], [2.0]]
    out.sum().backward()
    assert weight.grad is not None
    assert weight.grad.item() == pytest.approx(3 / (2 + 1) ** 2)


@every_operator
def test_a_node_without_edges_has_finite_gradients(name: str) -> None:
    conv, weight = KrylovConv(2, 2, order=3, operator=name), torch.ones(2, requires_grad=True)
    conv(random(4, 2), torch.tensor([[0, 1], [1, 0]]), weight).sum().backward()
    assert weight.grad is not None
    assert torch.isfinite(weight.grad).all()


def test_sparse_features_have_the_same_gradients() -> None:
    conv, (edges, weight) = KrylovConv(3, 2, order=3), directed(N, EDGES, seed=2)
    x = torch.relu(random(N, 3))
    sparse = SparseMatrix(x.to_sparse_csr())
    gradients = []
    for features in (x, sparse):
        w = weight.clone().requires_grad_()
        conv(features, edges, w).square().sum().backward()
        gradients.append(w.grad)
    assert close(gradients[0], gradients[1])


# PyTorch Geometric's explainers


class Net(nn.Module):
    """A hidden layer and logits, with the arguments that explainers pass."""

    def __init__(self, conv: nn.Module) -> None:
        super().__init__()
        self.conv, self.output = conv, nn.Linear(4, 2)

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        out: Tensor = self.output(torch.tanh(self.conv(x, edge_index, edge_weight)))
        return out


def explained(net: nn.Module, algorithm: Any, index: int, **arguments: Any) -> Any:
    torch.manual_seed(0)
    explainer = Explainer(
        net,
        algorithm,
        explanation_type="model",
        node_mask_type="attributes",
        edge_mask_type="object",
        model_config=MULTICLASS,
    )
    edges, weight = directed(N, EDGES, seed=0)
    return explainer(random(N, 3), edges, index=index, edge_weight=weight, **arguments)


def test_gnn_explainer_explains_a_krylov_layer_as_the_equal_gcn_layer() -> None:
    gcn, krylov, snowball = GCNConv(3, 4), KrylovConv(3, 4, order=2), SnowballConv(3, 4)
    with torch.no_grad():
        krylov.weight.copy_(torch.cat([torch.zeros(3, 4), gcn.lin.weight.T]))
        snowball.weight.copy_(gcn.lin.weight.T)
        for conv in (krylov, snowball):
            conv.bias.copy_(gcn.bias)
    nets = [Net(conv) for conv in (gcn, krylov, snowball)]
    for net in nets[1:]:
        net.output.load_state_dict(nets[0].output.state_dict())
    expected, *others = [explained(net, GNNExplainer(epochs=30), 4) for net in nets]
    for explanation in others:
        assert close(explanation.edge_mask, expected.edge_mask, 1e-9)
        assert close(explanation.node_mask, expected.node_mask, 1e-9)


@every_module
def test_an_edge_that_reaches_the_node_is_explained_and_no_other(number: int) -> None:
    module = modules()[number]
    hops = [3, 1, 2 * 2 + 1, 3][number]
    # A chain 0 → 1 → … → 8, in which node 8 sees as many edges as there are hops.
    chain = torch.stack([torch.arange(8), torch.arange(1, 9)])
    explainer = Explainer(
        module,
        GNNExplainer(epochs=3),
        explanation_type="model",
        edge_mask_type="object",
        model_config=MULTICLASS,
    )
    explanation = explainer(random(N, 3), chain, index=8)
    assert explanation.edge_mask.nonzero().ravel().tolist() == list(range(8 - hops, 8))
    assert get_num_hops(module) == hops


@every_module
def test_a_mask_multiplies_the_entries_of_its_edges(number: int) -> None:
    module, (edges, weight) = modules()[number], directed(N, EDGES, seed=3)
    x, mask = random(N, 3), torch.rand(EDGES, generator=seeded(5))
    masked = as_diffusion(edges, weight, N, "sym", explained=True)
    assert isinstance(masked, EdgeOperator)
    expected = module(x, EdgeOperator(edges, masked.values * mask, masked.diagonal))
    plain = module(x, edges, weight)
    set_masks(module, mask, edges, apply_sigmoid=False)
    assert close(module(x, edges, weight), expected)
    assert not close(plain, expected, 1e-3)
    clear_masks(module)
    assert torch.equal(module(x, edges, weight), plain)


@every_module
def test_gradients_of_captum_reach_nodes_and_edges(number: int) -> None:
    module, (edges, weight) = modules()[number], directed(N, EDGES, seed=4)
    # What `CaptumExplainer` hands to Captum; the attribution is its "Saliency".
    model, mask = CaptumModel(module, MaskLevelType.node_and_edge, 4), torch.ones(1, EDGES)
    inputs = random(1, N, 3).requires_grad_(), mask.requires_grad_()
    out = model(*inputs, edges, weight)
    assert close(out[0], module(inputs[0][0], edges, weight)[4])
    slopes = torch.autograd.grad(out[0, 0], inputs)
    assert all(torch.isfinite(slope).all() and slope.abs().sum() > 0 for slope in slopes)
    edge = int(slopes[1].abs().argmax())
    step = 1e-6 * nn.functional.one_hot(torch.tensor(edge), EDGES)
    moved = model(inputs[0], mask + step, edges, weight)
    difference = (moved - out)[0, 0].item() / 1e-6
    assert difference == pytest.approx(slopes[1][0, edge].item(), rel=1e-4)


@pytest.mark.filterwarnings("ignore:Converting a tensor with requires_grad")  # PGExplainer's own
def test_explainers_that_listen_to_messages_work() -> None:
    net, (edges, weight) = Net(KrylovConv(3, 4, order=3)), directed(N, EDGES, seed=0)
    masks = explained(copy.deepcopy(net), GraphMaskExplainer(2, epochs=2, log=False), 4)
    assert masks.edge_mask.shape == (EDGES,)
    learner = PGExplainer(epochs=1)
    explainer = Explainer(
        net,
        learner,
        explanation_type="phenomenon",
        edge_mask_type="object",
        model_config=MULTICLASS,
    )
    x, classes = random(N, 3), torch.arange(N) % 2
    learner.train(0, net, x, edges, target=classes, index=4, edge_weight=weight)
    explanation = explainer(x, edges, target=classes, index=4, edge_weight=weight)
    assert explanation.edge_mask.shape == (EDGES,)


@every_module
def test_a_module_with_hops_can_be_copied_and_pickled(number: int) -> None:
    module, x, (edges, weight) = modules()[number], random(N, 3), directed(N, EDGES, seed=0)
    expected = module(x, edges, weight)
    assert any(isinstance(part, Hop) for part in module.modules())
    for twin in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        assert torch.equal(twin(x, edges, weight), expected)


def test_hops_change_neither_weights_nor_print() -> None:
    conv, fresh = KrylovConv(3, 2, order=3), KrylovConv(3, 2, order=3)
    assert sum(isinstance(module, Hop) for module in conv.modules()) == 2
    assert conv.state_dict().keys() == fresh.state_dict().keys() == {"weight", "bias"}
    assert repr(conv) == "KrylovConv(3, 2, order=3)"


@pytest.mark.slow
def test_message_passing_is_imported_by_explainers_only() -> None:
    program = (
        "import sys; from kryograph.nn import KrylovConv; "
        "list(KrylovConv(3, 2, order=3).modules()); print('torch_geometric' in sys.modules)"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "False"


# Exported programs


@pytest.mark.parametrize("name", ["sym", "walk-laplacian"])
@every_module
@pytest.mark.parametrize("weighted", [False, True])
def test_an_exported_program_computes_other_graphs(name: str, number: int, weighted: bool) -> None:
    module = modules(name)[number].eval()
    edges, weight = directed(N, EDGES, seed=0)
    nodes, count = torch.export.Dim("nodes", min=2), torch.export.Dim("edges", min=2)
    arguments = {"x": random(N, 3), "edge_index": edges, "edge_weight": weight}
    shapes = {"x": {0: nodes}, "edge_index": {1: count}, "edge_weight": {0: count}}
    if not weighted:
        del arguments["edge_weight"], shapes["edge_weight"]
    program = torch.export.export(module, (), arguments, dynamic_shapes=shapes).module()
    others, values = directed(14, 40, seed=7)
    x, values = random(14, 3, seed=1), values if weighted else None
    other = {"x": x, "edge_index": others} | ({"edge_weight": values} if weighted else {})
    assert close(program(**other), constant(module, x, others, values))
