"""Splits of the nodes: the kinds that there are, how they are written, and how they are drawn.

A random split depends on the labels, the counts and the seed only. Nodes without a label are in no
part. The number of training nodes is the same for every class or a share of it, rounded up, so that
every class has a training node. 500 other nodes validate and 1,000 test; a graph with fewer than
2,000 labelled nodes has a quarter of them for validation and a half for testing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from functools import partial

import numpy as np
import numpy.typing as npt

from kryograph.errors import UsageError
from kryograph.graph import UNKNOWN, Indices, Split
from kryograph.text import parse_rate

VALIDATION = 500
TEST = 1_000
PUBLIC = "public"
PER_CLASS = " per class"
LEAKY = " leaky"


def _rate_name(share: Fraction) -> str:
    """Format a rate in per cent, exactly."""
    exact = Context(prec=100).divide(Decimal(100 * share.numerator), Decimal(share.denominator))
    return f"{exact.normalize():f}%"


@dataclass(frozen=True)
class _NamedSplit:
    """One split, or one way to draw it."""

    name: str
    """The one name of the split, such as "1%" for "0.01"."""
    option: str
    """Option of the command line that asks for it."""
    draw: Callable[..., Split] | None
    """Draws the split for given labels and a seed; None if it is published."""


def _parse_split(how: str | int) -> _NamedSplit:
    """Recognise the kind of a split; a number is a number of training nodes of each class."""
    text = f"{how}{PER_CLASS}" if isinstance(how, int) else how
    if text == PUBLIC:
        return _NamedSplit(PUBLIC, f"--split {PUBLIC}", None)
    match = re.fullmatch(rf"(-?\d+){PER_CLASS}", text)
    if match:
        k = int(match[1])
        if k < 1:
            raise UsageError(f"Each class needs at least 1 training node; got {k}.")
        return _NamedSplit(f"{k}{PER_CLASS}", f"--per-class {k}", partial(per_class_split, k=k))
    rate = _rate_name(parse_rate(text.removesuffix(LEAKY)))
    if text.endswith(LEAKY):  # no option asks for it
        return _NamedSplit(rate + LEAKY, "", partial(leaky_split, rate=rate))
    return _NamedSplit(rate, f"--label-rate {rate}", partial(rate_split, rate=rate))


def split_name(how: str | int) -> str:
    """Return the one name of a split: "public", "20 per class", "1%" or "1% leaky".

    >>> split_name("0.01"), split_name("1.0 %"), split_name(20), split_name("public")
    ('1%', '1%', '20 per class', 'public')
    """
    return _parse_split(how).name


def split_option(how: str | int) -> str:
    """Return the option of the command line that asks for a split, such as "--label-rate 1%"."""
    return _parse_split(how).option


def one_split(split: str | None, label_rate: str | None, per_class: int | None) -> str:
    """Return the name of the split that one of three options asks for; none means "public"."""
    if label_rate is not None:
        parse_rate(label_rate)  # "public" or "20 per class" is a split, but not a rate
    names = [split_name(how) for how in (label_rate, per_class) if how is not None]
    if len(names) + (split is not None) > 1:
        raise UsageError("Give one of --split, --label-rate and --per-class, not several.")
    if split not in (None, PUBLIC):
        raise UsageError(
            f"Unknown split {split!r}: there is 'public'; for random ones use --label-rate."
        )
    return names[0] if names else PUBLIC


def random_split(labels: Indices, how: str | int, *, seed: int) -> Split:
    """Draw a split of any kind but the public one."""
    split = _parse_split(how)
    if split.draw is None:
        raise UsageError(f"The split {split.name!r} is published with a data set, not drawn.")
    return split.draw(labels, seed=seed)


def mask_splits(masks: Sequence[npt.NDArray[np.bool_]], labels: Indices) -> tuple[Split, ...]:
    """Build published splits from the masks of their training, validation and test nodes.

    Args:
        masks: Three arrays, K × N, for K splits of N nodes.
        labels: N class numbers. A node without a label is in no part of a split.
    """
    count = len(masks[0])
    names = [PUBLIC] if count == 1 else [f"{PUBLIC} {number}" for number in range(count)]
    parts = zip(names, *(mask & (labels != UNKNOWN) for mask in masks), strict=True)
    return tuple(Split(name, train, validation, test) for name, train, validation, test in parts)


def rate_split(
    labels: Indices,
    rate: str,
    *,
    seed: int,
    validation: int | None = None,
    test: int | None = None,
) -> Split:
    """Draw a split that trains on ⌈n_c · p⌉ nodes of each class c with n_c labelled nodes.

    `validation` and `test` are numbers of nodes; None stands for the usual ones.

    >>> rate_split(np.arange(3000) % 7, "1%", seed=0)
    Split('1% seed 0', 35 / 500 / 1,000)
    """
    share = parse_rate(rate)
    sizes = _class_sizes(labels)
    total = sum(sizes.values())
    percent = _rate_name(share)
    if total * share < len(sizes):
        smallest = Context(prec=2, rounding=ROUND_CEILING).divide(
            Decimal(100 * len(sizes)), Decimal(total)
        )
        raise UsageError(
            f"{percent} of {total:,} labelled nodes is {float(total * share):.2g} labels, fewer "
            f"than the {len(sizes)} classes; the smallest rate is {smallest:f}%."
        )
    counts = {label: math.ceil(size * share) for label, size in sizes.items()}
    return _draw(f"{percent} seed {seed}", labels, counts, seed, validation, test)


def per_class_split(
    labels: Indices, k: int, *, seed: int, validation: int | None = None, test: int | None = None
) -> Split:
    """Draw a split that trains on k nodes of each class.

    >>> per_class_split(np.arange(3000) % 7, 20, seed=0)
    Split('20 per class seed 0', 140 / 500 / 1,000)
    """
    name = split_name(int(k))
    sizes = _class_sizes(labels)
    smallest = min(sizes, key=lambda label: sizes[label])
    if sizes[smallest] < k:
        raise UsageError(
            f"Class {smallest} has {sizes[smallest]:,} labelled nodes, fewer than the {k:,} asked "
            f"for; ask for at most {sizes[smallest]:,} per class."
        )
    return _draw(f"{name} seed {seed}", labels, dict.fromkeys(sizes, k), seed, validation, test)


def rest_split(labels: Indices, k: int, *, name: str, seed: int) -> Split:
    """Draw a split that trains on up to k nodes of each class and tests on all others.

    Of a class with n nodes ⌊n/2⌋ are drawn if that is less than k. The draw depends on the name of
    the graph, on k and on the seed.

    >>> rest_split(np.array([0, 0, 0, 0, 1, 1, 1, 2]), 2, name="mine", seed=0)
    Split('2 per class of mine seed 0', 3 / 0 / 5)
    """
    rng = np.random.default_rng([seed, k, *name.encode()])
    drawn = [
        rng.permutation(np.flatnonzero(labels == label))[: min(k, size // 2)]
        for label, size in _class_sizes(labels).items()
    ]
    train = np.concatenate(drawn)
    if train.size == 0:
        raise UsageError(f"Every class of {name!r} has a single node: none is left to train on.")
    rest = np.setdiff1d(np.flatnonzero(labels != UNKNOWN), train)
    return Split(f"{k}{PER_CLASS} of {name} seed {seed}", train, np.array([], int), rest)


def leaky_split(labels: Indices, rate: str, *, seed: int) -> Split:
    """Draw a split with the fault of the authors' released code: its parts overlap.

    The training nodes are drawn as in `rate_split`. For validation, nodes of each class are drawn
    among the remaining ones, but their *positions* among these are used as node numbers; and the
    same again for testing. So some test nodes were trained on, or had a say in the choice of the
    epoch. This split exists to measure the effect of the fault.
    """
    share = parse_rate(rate)
    sizes = _class_sizes(labels)
    rng = np.random.default_rng([seed])
    labelled = np.flatnonzero(labels != UNKNOWN)
    remaining = labelled

    def take(counts: Mapping[int, int], numbering: Indices | None = None) -> Indices:
        """Remove nodes from `remaining`; returns the nodes at the same positions of `numbering`."""
        nonlocal remaining
        drawn = []
        for label, count in counts.items():
            candidates = np.flatnonzero(labels[remaining] == label)
            drawn.append(rng.choice(candidates, min(count, candidates.size), replace=False))
        positions = np.concatenate(drawn)
        nodes: Indices = (remaining if numbering is None else numbering)[positions]
        remaining = np.delete(remaining, positions)
        return nodes

    train = take({label: math.ceil(size * share) for label, size in sizes.items()})
    validating = take(dict.fromkeys(sizes, math.ceil(VALIDATION / len(sizes))), labelled)
    testing = take(dict.fromkeys(sizes, math.ceil(TEST / len(sizes))), labelled)
    name = f"{_rate_name(share)}{LEAKY} seed {seed}"
    return Split(name, train, validating, testing, leaky=True)


def _class_sizes(labels: Indices) -> dict[int, int]:
    """Number of labelled nodes of each class that has any."""
    present, sizes = np.unique(labels[labels != UNKNOWN], return_counts=True)
    if present.size == 0:
        raise UsageError("No node has a label, so there is nothing to draw a split from.")
    return dict(zip(present.tolist(), sizes.tolist(), strict=True))


def _draw(
    name: str,
    labels: Indices,
    counts: Mapping[int, int],
    seed: int,
    validation: int | None,
    test: int | None,
) -> Split:
    """Draw a split with that many training nodes of each class."""
    labelled = np.flatnonzero(labels != UNKNOWN)
    validation = min(VALIDATION, labelled.size // 4) if validation is None else validation
    test = min(TEST, labelled.size // 2) if test is None else test
    if seed < 0:
        raise UsageError(f"A seed must be 0 or more; got {seed}.")
    if validation < 0 or test < 0:
        raise UsageError(f"Part sizes must be 0 or more; got {validation} and {test}.")
    rng = np.random.default_rng([seed])
    drawn = [
        rng.choice(np.flatnonzero(labels == label), count, replace=False)
        for label, count in counts.items()
    ]
    train = np.concatenate(drawn)
    rest = np.setdiff1d(labelled, train)
    if rest.size < validation + test:
        raise UsageError(
            f"With {train.size:,} nodes for training, {rest.size:,} labelled nodes are left, too "
            f"few for {validation:,} validation and {test:,} test nodes; train on fewer."
        )
    rest = rng.permutation(rest)
    return Split(name, train, rest[:validation], rest[validation : validation + test])
