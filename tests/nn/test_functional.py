from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import scipy.sparse as sp
import torch
from torch import Tensor, nn
from torch.autograd import gradcheck, gradgradcheck

from kryograph.data import toy
from kryograph.errors import UsageError
from kryograph.nn.functional import (
    ACTIVATIONS,
    Dense,
    Masks,
    activation,
    dropout,
    glorot_,
    side_by_side,
    uniform_,
)
from kryograph.nn.network import Layered
from kryograph.operators import Operator, operator
from kryograph.sparse import SparseMatrix
from tests.layers import FixedMasks, close, seeded


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


# Activations


TORCHS: dict[str, Callable[[Tensor], Tensor]] = {
    "identity": nn.Identity(),
    "tanh": nn.Tanh(),
    "relu": nn.ReLU(),
    "leaky-relu": nn.LeakyReLU(),
    "elu": nn.ELU(),
    "selu": nn.SELU(),
    "sigmoid": nn.Sigmoid(),
    "hardshrink": nn.Hardshrink(),
    "softshrink": nn.Softshrink(),
    "tanhshrink": nn.Tanhshrink(),
}


def test_every_activation_is_known_to_the_test() -> None:
    assert set(ACTIVATIONS) == set(TORCHS)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_map_as_torchs(name: str) -> None:
    x = torch.linspace(-3, 3, 61, dtype=torch.float64)
    assert torch.equal(activation(name)(x), TORCHS[name](x))


@pytest.mark.parametrize(
    ("name", "at", "value"),
    [
        ("identity", -2.0, -2.0),
        ("tanh", 1.0, math.tanh(1)),
        ("relu", -2.0, 0.0),
        ("leaky-relu", -2.0, -0.02),
        ("elu", -1.0, math.exp(-1) - 1),
        ("selu", 1.0, 1.0507009873554805),
        ("sigmoid", 0.0, 0.5),
        ("hardshrink", 0.4, 0.0),
        ("softshrink", 2.0, 1.5),
        ("tanhshrink", 1.0, 1 - math.tanh(1)),
    ],
)
def test_activations_by_hand(name: str, at: float, value: float) -> None:
    found = activation(name)(torch.tensor(at, dtype=torch.float64)).item()
    assert found == pytest.approx(value, rel=1e-14)


@pytest.mark.parametrize(
    ("name", "near"), [("thanh", "tanh"), ("ReLu", "relu"), ("leaky", "leaky-relu")]
)
def test_an_unknown_activation_is_refused_with_the_nearest(name: str, near: str) -> None:
    with pytest.raises(UsageError, match=f"^Unknown activation '{name}': did you mean.*'{near}'"):
        activation(name)


# Initialisation


@pytest.mark.parametrize(("rows", "columns"), [(400, 4), (4, 400), (50, 50)])
def test_weights_and_biases_are_uniform_within_one_over_root_out(rows: int, columns: int) -> None:
    weight, bias = torch.empty(rows, columns).double(), torch.empty(columns).double()
    uniform_(weight, bias, seeded(0))
    bound = 1 / math.sqrt(columns)
    for drawn in (weight, bias):
        assert drawn.abs().max() <= bound
    assert weight.abs().max() > 0.99 * bound
    # Five standard deviations of a mean, and of a mean square, of that many draws.
    count = rows * columns
    assert abs(weight.mean()) < 5 * bound / math.sqrt(3 * count)
    assert weight.square().mean() == pytest.approx(bound**2 / 3, rel=5 * math.sqrt(0.8 / count))


def test_biases_fill_their_bounds_too() -> None:
    bias = torch.empty(900)
    uniform_(torch.empty(1, 900), bias, seeded(3))
    assert 0.98 / 30 < bias.abs().max() <= 1 / 30
    assert bias.min() < 0 < bias.max()


def test_initialisation_draws_from_its_generator_alone() -> None:
    drawn = []
    for seed in (5, 5, 6):
        torch.manual_seed(len(drawn))
        before = torch.get_rng_state()
        weight, bias = torch.empty(3, 2), torch.empty(2)
        uniform_(weight, bias, seeded(seed))
        assert torch.equal(torch.get_rng_state(), before)
        drawn.append(torch.cat([weight.ravel(), bias]))
    assert torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[0], drawn[2])


def test_a_layer_may_have_no_bias() -> None:
    weight, bias = torch.empty(3, 2), torch.empty(2)
    uniform_(weight, None, seeded(1))
    again = torch.empty(3, 2)
    uniform_(again, bias, seeded(1))
    assert torch.equal(weight, again)


# Dropout


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_dropout_zeroes_its_share_and_scales_the_rest(rate: float) -> None:
    x = torch.full((200, 500), 3.0, dtype=torch.float64)
    dropped = dropout(x, rate, Masks(seeded(0)))
    kept = dropped != 0
    # Five standard deviations of a share of 100,000 draws.
    near = 5 * math.sqrt(rate * (1 - rate) / x.numel())
    assert (~kept).double().mean() == pytest.approx(rate, abs=near)
    assert dropped[kept].unique().tolist() == pytest.approx([3 / (1 - rate)], rel=1e-15)
    assert dropped.mean() == pytest.approx(3.0, abs=3 * near / (1 - rate))


def test_dropout_draws_from_its_generator_alone() -> None:
    x = random(20, 5)
    first = dropout(x, 0.5, Masks(seeded(1)))
    torch.manual_seed(9)
    before = torch.get_rng_state()
    assert torch.equal(dropout(x, 0.5, Masks(seeded(1))), first)
    assert torch.equal(torch.get_rng_state(), before)
    assert not torch.equal(dropout(x, 0.5, Masks(seeded(2))), first)


def test_a_generator_goes_on_from_call_to_call() -> None:
    x, masks = torch.ones(50), Masks(seeded(1))
    first, second = (dropout(x, 0.5, masks) for _ in range(2))
    assert not torch.equal(first, second)


def test_one_number_of_the_generator_decides_all_masks() -> None:
    x, generator, reference = torch.ones(50), seeded(1), seeded(1)
    masks = Masks(generator)
    first = dropout(x, 0.5, masks)
    torch.randint(2**62, (), generator=reference)
    assert torch.equal(generator.get_state(), reference.get_state())
    dropout(x, 0.5, masks)
    assert torch.equal(generator.get_state(), reference.get_state())
    assert not torch.equal(dropout(x, 0.5, Masks(generator)), first)


@pytest.mark.parametrize("shape", [(7, 3), (1, 1), (0, 4), (5,), (2, 3, 4)])
def test_masks_have_any_shape(shape: tuple[int, ...]) -> None:
    keep = Masks(seeded(0)).keep(torch.ones(shape), 0.5, 0, None)
    assert (keep.shape, keep.dtype) == (torch.Size(shape), torch.bool)


def test_neighbours_are_dropped_independently() -> None:
    # Two entries come of every 64 bits: neither may say anything of the other.
    keep = Masks(seeded(0)).keep(torch.ones(100_000, 2), 0.5, 0, None).double()
    for one, other in ((keep[:, 0], keep[:, 1]), (keep[1:, 0], keep[:-1, 1])):
        assert (one * other).mean() == pytest.approx(0.25, abs=5 * math.sqrt(0.1875 / 1e5))


@pytest.mark.parametrize("rate", [1e-12, 1e-10, 1e-9])
def test_a_tiny_rate_drops_next_to_nothing(rate: float) -> None:
    x = torch.ones(100, 10)
    assert dropout(x, rate, Masks(seeded(0))).count_nonzero() == x.numel()


@pytest.mark.parametrize("rate", [1 - 1e-12, 1 - 1e-9])
def test_a_rate_next_to_one_drops_next_to_everything(rate: float) -> None:
    assert dropout(torch.ones(100, 10), rate, Masks(seeded(0))).count_nonzero() == 0


class OneActivation(Layered):
    """A network without weights: its only layer is a hidden one."""

    output_layer = None

    def logits(self, x: Tensor, L: Operator, masks: Masks) -> Tensor:
        return self.hidden(x, 0, masks)


def test_nothing_is_dropped_or_drawn_in_evaluation_or_at_rate_zero() -> None:
    x, generator = random(4, 3), seeded(0)
    before = generator.get_state()
    network, L = OneActivation("identity", 0.9).eval(), operator(toy.path(4))
    assert torch.equal(network(x, L, masks=Masks(generator)), x)
    assert torch.equal(OneActivation("identity", 0.0)(x, L, masks=Masks(generator)), x)
    assert torch.equal(dropout(x, 0.0, Masks(generator)), x)
    assert torch.equal(generator.get_state(), before)
    assert not torch.equal(network.train()(x, L, masks=Masks(generator)), x)
    assert not torch.equal(generator.get_state(), before)


def test_gradients_pass_through_what_was_kept() -> None:
    x = random(6, 3).requires_grad_()
    dropped = dropout(x, 0.5, Masks(seeded(0)))
    dropped.sum().backward()
    assert x.grad is not None
    assert torch.allclose(x.grad * x.detach(), dropped.detach(), rtol=1e-15)
    assert set(x.grad.unique().tolist()) == {0.0, 2.0}
    assert not torch.equal(x.detach(), dropped.detach())


def test_derivatives_of_dropout() -> None:
    x, keep = random(6, 3).requires_grad_(), FixedMasks(6)
    assert gradcheck(lambda x: dropout(x, 0.3, keep), (x,))
    assert gradgradcheck(lambda x: dropout(torch.tanh(x), 0.3, keep), (x,))


# Side by side


@pytest.mark.parametrize("widths", [(3,), (2, 3), (1, 4, 2, 1)])
def test_blocks_side_by_side_are_their_concatenation(widths: tuple[int, ...]) -> None:
    blocks = [random(5, width, seed=width) for width in widths]
    weight = random(sum(widths), 3, seed=9)
    expected = torch.cat(blocks, dim=1) @ weight
    for given_blocks in (blocks, tuple(blocks), iter(blocks)):
        assert torch.allclose(side_by_side(given_blocks, weight), expected, rtol=1e-13, atol=1e-14)


def test_sparse_blocks_may_stand_beside_dense_ones() -> None:
    words = sp.csr_array([[0.0, 1.0, 0.0], [2.0, 0.0, 0.0]])
    sparse = SparseMatrix.from_scipy(words, dtype=torch.float64)
    dense, weight = random(2, 2), random(5, 4, seed=1)
    expected = torch.cat([torch.from_numpy(words.toarray()), dense], dim=1) @ weight
    assert torch.allclose(side_by_side([sparse, dense], weight), expected, rtol=1e-14, atol=1e-15)


def test_blocks_that_are_too_narrow_are_refused() -> None:
    with pytest.raises(ValueError, match="the blocks are 2 columns wide, the weight has 3 rows"):
        side_by_side([torch.ones(4, 1), torch.ones(4, 1)], torch.ones(3, 2))
    with pytest.raises(ValueError, match="the blocks are 0 columns wide, the weight has 3 rows"):
        side_by_side([], torch.ones(3, 2))


@pytest.mark.parametrize("widths", [(2, 2), (4,), (3, 1), (5, 5)])
def test_blocks_that_are_too_wide_are_refused(widths: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="columns wide, the weight has 3 rows"):
        side_by_side([torch.ones(4, width) for width in widths], torch.ones(3, 2))


# Arguments


@pytest.mark.parametrize("rate", [1.0, -0.1, float("nan")])
def test_a_rate_that_is_none_is_refused(rate: float) -> None:
    with pytest.raises(ValueError, match="a dropout rate lies between 0 and 1"):
        dropout(torch.ones(3), rate, Masks())
    with pytest.raises(ValueError, match="a dropout rate lies between 0 and 1"):
        OneActivation("tanh", rate)


# Dropout of sparse features


def words() -> SparseMatrix:
    values = sp.random_array((200, 60), density=0.1, rng=0, format="csr")
    return SparseMatrix.from_scipy(values, dtype=torch.float64)


def test_of_sparse_features_the_stored_entries_are_dropped() -> None:
    x = words()
    dropped = dropout(x, 0.25, Masks(seeded(0)))
    assert isinstance(dropped, SparseMatrix)
    assert (dropped.shape, dropped.nnz) == (x.shape, x.nnz)
    kept = dropped.values != 0
    near = 5 * math.sqrt(0.25 * 0.75 / x.nnz)
    assert kept.double().mean() == pytest.approx(0.75, abs=near)
    assert torch.allclose(dropped.values[kept], x.values[kept] / 0.75, rtol=1e-15)


def test_products_and_gradients_see_the_dropped_entries() -> None:
    x = words()
    dropped = dropout(x, 0.5, Masks(seeded(1)))
    weight = random(60, 3).requires_grad_()
    (dropped @ weight).square().sum().backward()
    same = weight.detach().clone().requires_grad_()
    (dropped.to_dense() @ same).square().sum().backward()
    assert weight.grad is not None
    assert same.grad is not None
    assert torch.allclose(weight.grad, same.grad, rtol=1e-12, atol=1e-14)
    assert not torch.equal(dropped.to_dense(), x.to_dense())


def test_at_rate_zero_sparse_features_are_left_alone() -> None:
    x, generator = words(), seeded(0)
    before = generator.get_state()
    assert dropout(x, 0.0, Masks(generator)) is x
    assert torch.equal(generator.get_state(), before)


# Glorot


@pytest.mark.parametrize(("rows", "columns"), [(400, 4), (4, 400), (50, 50)])
def test_glorots_weights_are_uniform_and_biases_zero(rows: int, columns: int) -> None:
    weight, bias = torch.empty(rows, columns).double(), torch.ones(columns).double()
    glorot_(weight, bias, seeded(0))
    bound = math.sqrt(6 / (rows + columns))
    assert 0.99 * bound < weight.abs().max() <= bound
    count = rows * columns
    assert abs(weight.mean()) < 5 * bound / math.sqrt(3 * count)
    assert weight.square().mean() == pytest.approx(bound**2 / 3, rel=5 * math.sqrt(0.8 / count))
    assert not bias.any()


def test_glorot_draws_from_its_generator_alone() -> None:
    first, second, other = (torch.empty(5, 3) for _ in range(3))
    before = torch.get_rng_state()
    for weight, seed in ((first, 1), (second, 1), (other, 2)):
        glorot_(weight, None, seeded(seed))
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(first, second)
    assert not torch.equal(first, other)


@pytest.mark.usefixtures("double")
def test_a_dense_layer_that_learns_slowly_is_the_same_function() -> None:
    x = random(5, 3)
    sparse = SparseMatrix.from_scipy(sp.csr_array(x.numpy()), dtype=torch.float64)
    slow, fast = Dense(3, 2, rate=0.1), Dense(3, 2)
    for layer in (slow, fast):
        layer.reset_parameters(seeded(1))
    assert close(slow(x), fast(x))
    assert close(slow(sparse), x @ fast.weight)
    # Whatever moves what is stored by so much moves the function by a tenth of it.
    with torch.no_grad():
        slow.weight += 1.0
        slow.bias += 1.0
        fast.weight += 0.1
        fast.bias += 0.1
    assert close(slow(x), fast(x))
    slow.reset_to(torch.ones(3, 2))
    assert close(slow.weight, torch.full((3, 2), 10.0))
