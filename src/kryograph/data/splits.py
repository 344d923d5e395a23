"""Random splits: some labelled nodes of each class train, 500 others validate and 1,000 test.

A split depends on the labels, the counts and the seed, and on nothing else. Nodes without a label
are in no part. The training counts are either the same for every class or a share of it, rounded
up, so that no class is left without a training node.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from decimal import ROUND_CEILING, Context, Decimal, InvalidOperation
from fractions import Fraction

import numpy as np

from kryograph.errors import UsageError
from kryograph.graph import UNKNOWN, Indices, Split

VALIDATION = 500
TEST = 1_000
PUBLIC = "public"
PER_CLASS = " per class"
LEAKY = " leaky"


def parse_rate(text: str) -> Fraction:
    """The label rate that a text such as "1%" or "0.01" means, exactly.

    Floating point would not do: 0.07 * 100 is a little more than 7, and rounds up to 8.

    >>> parse_rate("0.5 %"), parse_rate("0.07") * 100
    (Fraction(1, 200), Fraction(7, 1))
    """
    number, percent, rest = text.strip().partition("%")
    try:
        value = Decimal(number.strip())
    except InvalidOperation:
        value = Decimal("nan")
    # An exponent in the thousands is a slip, and would be expanded digit by digit below.
    if rest or not value.is_finite() or abs(value.adjusted()) > 30:
        raise UsageError(f"The label rate {text!r} is not a number; write it like '1%' or '0.01'.")
    if value <= 0:
        raise UsageError(f"The label rate must be above 0; got {text!r}.")
    rate = Fraction(value) / (100 if percent else 1)
    if rate > 1:
        hint = "" if percent else f"; {number.strip()} percent is written '{number.strip()}%'"
        raise UsageError(f"The label rate {text!r} is more than 100%{hint}.")
    return rate


def split_name(how: str | int) -> str:
    """The one way in which a split is written: "public", "20 per class", or a rate in per cent.

    A rate may be "leaky": see `leaky_split`.

    >>> split_name("0.01"), split_name("1.0 %"), split_name(20), split_name("public")
    ('1%', '1%', '20 per class', 'public')
    """
    if str(how).endswith(LEAKY):
        return _percent(parse_rate(str(how).removesuffix(LEAKY))) + LEAKY
    if per_class := re.fullmatch(rf"(-?\d+){PER_CLASS}", str(how)):
        how = int(per_class[1])
    if isinstance(how, int):
        if how < 1:
            raise UsageError(f"Each class needs at least 1 training node; got {how}.")
        return f"{how}{PER_CLASS}"
    return how if how == PUBLIC else _percent(parse_rate(how))


def one_split(split: str | None, label_rate: str | None, per_class: int | None) -> str:
    """The split that a person asked for in one of three ways; the public one if in none."""
    if label_rate is not None:
        parse_rate(label_rate)  # "public" or "20 per class" is a split, but not a rate
    given = [split_name(how) for how in (label_rate, per_class) if how is not None]
    given += [split] if split is not None else []
    if len(given) > 1:
        raise UsageError("Give one of --split, --label-rate and --per-class, not several.")
    if split not in (None, PUBLIC):
        raise UsageError(
            f"Unknown split {split!r}: there is 'public'; for random ones use --label-rate."
        )
    return given[0] if given else PUBLIC


def random_split(labels: Indices, how: str | int, *, seed: int) -> Split:
    """A split by rate ("1%") or with k training nodes of each class (20, or "20 per class")."""
    name = split_name(how)
    if name.endswith(PER_CLASS):
        return per_class_split(labels, int(name.removesuffix(PER_CLASS)), seed=seed)
    if name.endswith(LEAKY):
        return leaky_split(labels, name.removesuffix(LEAKY), seed=seed)
    return rate_split(labels, name, seed=seed)


def rate_split(
    labels: Indices, rate: str, *, seed: int, validation: int = VALIDATION, test: int = TEST
) -> Split:
    """A split that trains on ⌈n_c · p⌉ nodes of each class c, where n_c have a label.

    >>> rate_split(np.arange(3000) % 7, "1%", seed=0)
    Split('1% seed 0', 35 / 500 / 1,000)
    """
    share = parse_rate(rate)
    sizes = _class_sizes(labels)
    total = sum(sizes.values())
    percent = _percent(share)
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
    labels: Indices, k: int, *, seed: int, validation: int = VALIDATION, test: int = TEST
) -> Split:
    """A split that trains on k nodes of each class.

    >>> per_class_split(np.arange(3000) % 7, 20, seed=0)
    Split('20 per class seed 0', 140 / 500 / 1,000)
    """
    if k < 1:
        raise UsageError(f"Each class needs at least 1 training node; got {k}.")
    sizes = _class_sizes(labels)
    smallest = min(sizes, key=lambda label: sizes[label])
    if sizes[smallest] < k:
        raise UsageError(
            f"Class {smallest} has {sizes[smallest]:,} labelled nodes, fewer than the {k:,} asked "
            f"for; ask for at most {sizes[smallest]:,} per class."
        )
    counts = dict.fromkeys(sizes, k)
    return _draw(f"{k}{PER_CLASS} seed {seed}", labels, counts, seed, validation, test)


def leaky_split(
    labels: Indices, rate: str, *, seed: int, validation: int = VALIDATION, test: int = TEST
) -> Split:
    """A split with the fault of the authors' released code: its parts overlap.

    The training nodes are drawn as in `rate_split`. Then, for validation, nodes of each class are
    drawn among the others, but their *positions* among the others are taken for node numbers; and
    the same again for testing. So some test nodes have been trained on, or have chosen the epoch.
    It exists to measure what that is worth.
    """
    share = parse_rate(rate)
    sizes = _class_sizes(labels)
    rng = np.random.default_rng([seed])
    labelled = np.flatnonzero(labels != UNKNOWN)
    others = labelled

    def drawn(counts: Mapping[int, int], numbered: Indices | None = None) -> Indices:
        nonlocal others
        found = []
        for label, count in counts.items():
            there = np.flatnonzero(labels[others] == label)
            found.append(rng.choice(there, min(count, there.size), replace=False))
        positions = np.concatenate(found)
        nodes: Indices = (others if numbered is None else numbered)[positions]
        others = np.delete(others, positions)
        return nodes

    train = drawn({label: math.ceil(size * share) for label, size in sizes.items()})
    each = {label: math.ceil(validation / len(sizes)) for label in sizes}
    validating = drawn(each, labelled)
    testing = drawn({label: math.ceil(test / len(sizes)) for label in sizes}, labelled)
    name = f"{_percent(share)}{LEAKY} seed {seed}"
    return Split(name, train, validating, testing, leaky=True)


def _percent(share: Fraction) -> str:
    exact = Context(prec=100).divide(Decimal(100 * share.numerator), Decimal(share.denominator))
    return f"{exact.normalize():f}%"


def _class_sizes(labels: Indices) -> dict[int, int]:
    present, sizes = np.unique(labels[labels != UNKNOWN], return_counts=True)
    if present.size == 0:
        raise UsageError("No node has a label, so there is nothing to draw a split from.")
    return dict(zip(present.tolist(), sizes.tolist(), strict=True))


def _draw(
    name: str,
    labels: Indices,
    counts: Mapping[int, int],
    seed: int,
    validation: int,
    test: int,
) -> Split:
    if seed < 0:
        raise UsageError(f"A seed must be 0 or more; got {seed}.")
    if validation < 0 or test < 0:
        raise UsageError(f"Part sizes must be 0 or more; got {validation} and {test}.")
    rng = np.random.default_rng([seed])
    train = np.concatenate(
        [
            rng.choice(np.flatnonzero(labels == label), count, replace=False)
            for label, count in counts.items()
        ]
    )
    rest = np.setdiff1d(np.flatnonzero(labels != UNKNOWN), train)
    if rest.size < validation + test:
        raise UsageError(
            f"With {train.size:,} nodes for training, {rest.size:,} labelled nodes are left, too "
            f"few for {validation:,} validation and {test:,} test nodes; train on fewer."
        )
    rest = rng.permutation(rest)
    return Split(
        name,
        train=train,
        validation=rest[:validation],
        test=rest[validation : validation + test],
    )
