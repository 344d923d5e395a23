"""Columns: the recipe by which a node table becomes features, learned once and then repeated.

Four blocks stand side by side. Counts (many columns, never negative, mostly zero: bags of words)
are divided by their row's sum, as the citation graphs' are. Other numbers are standardised.
Categories are one-hot. Text is TF-IDF. All blocks but the first are multiplied by a factor, so that
the mean length of their rows is 0.2, about what bags of words have: no block drowns another.
A table without any of these has one feature for each node (the identity).

The recipe is plain data: it is stored as JSON, and reading it runs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from kryograph.data.tables import feature_blocks as blocks
from kryograph.data.tables.sheet import Sheet
from kryograph.errors import UsageError
from kryograph.graph import Features
from kryograph.text import plural, quoted, quoted_list

ReadProgress: TypeAlias = Callable[[str, float], None]
Block: TypeAlias = Features

LENGTH = 0.2
"""The mean length of a block's rows."""
COUNT_COLUMNS = 20
"""So many columns at least make a bag of words."""
ZEROS = 0.1
"""A column of counts has at least this share of zeros; the whole block over half."""
RECIPE_FORMAT = 1


@dataclass(frozen=True)
class Recipe:
    """How features are made.

    Args:
        id: The column of ids, if the table had one.
        label: The column of labels, if there is one.
        counts: Names of the columns of counts.
        count_means: What stands in for an empty cell of each.
        numbers: Names of the columns of other numbers.
        means: Of each of these.
        deviations: Of each; 0 for a column that is constant.
        categories: The values of each column of categories.
        text: Names of the columns of text, taken together.
        words: What is counted in them.
        idf: The weight of each word.
        nodes: The nodes' ids, if these are all there is.
        factors: What numbers, categories and text are multiplied by.
        ignored: Columns that are not used.
    """

    id: str | None = None
    label: str | None = None
    counts: tuple[str, ...] = ()
    count_means: tuple[float, ...] = ()
    numbers: tuple[str, ...] = ()
    means: tuple[float, ...] = ()
    deviations: tuple[float, ...] = ()
    categories: dict[str, tuple[str, ...]] = field(default_factory=dict)
    text: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    idf: tuple[float, ...] = ()
    nodes: tuple[str, ...] = ()
    factors: tuple[float, float, float] = (1.0, 1.0, 1.0)
    ignored: tuple[str, ...] = ()

    @property
    def used(self) -> tuple[str, ...]:
        """Names of the columns that a table must have."""
        return (*self.counts, *self.numbers, *self.categories, *self.text)

    @property
    def features(self) -> tuple[str, ...]:
        """The name of each feature, as "colour = red"."""
        one_hot = [f"{name} = {value}" for name, some in self.categories.items() for value in some]
        words = [f"word {word}" for word in self.words]
        nodes = [f"node {node}" for node in self.nodes]
        return (*self.counts, *self.numbers, *one_hot, *words, *nodes)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON: names, numbers, lists."""
        plain = {part.name: getattr(self, part.name) for part in fields(self)}
        lists = {k: list(v) if isinstance(v, tuple) else v for k, v in plain.items()}
        lists["categories"] = [[name, list(some)] for name, some in self.categories.items()]
        return {"format": RECIPE_FORMAT, **lists}

    @classmethod
    def from_json(cls, found: object) -> Recipe:
        """Read what `to_json` wrote; anything else is an error."""
        if not isinstance(found, dict) or found.get("format") != RECIPE_FORMAT:
            raise UsageError("The recipe for the features is not one that this version knows.")
        try:
            columns = cls(
                id=_name_or_none(found["id"]),
                label=_name_or_none(found["label"]),
                counts=_names(found["counts"]),
                count_means=_floats(found["count_means"]),
                numbers=_names(found["numbers"]),
                means=_floats(found["means"]),
                deviations=_floats(found["deviations"]),
                categories={str(name): _names(some) for name, some in found["categories"]},
                text=_names(found["text"]),
                words=_names(found["words"]),
                idf=_floats(found["idf"]),
                nodes=_names(found["nodes"]),
                factors=_three(_floats(found["factors"])),
                ignored=_names(found["ignored"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise UsageError(f"The recipe for the features is damaged ({error!r}).") from error
        if (
            len(columns.counts) != len(columns.count_means)
            or not len(columns.numbers) == len(columns.means) == len(columns.deviations)
            or len(columns.words) != len(columns.idf)
            or len(set(columns.used)) != len(columns.used)
        ):
            raise UsageError("The recipe for the features is damaged: its lists do not match.")
        return columns

    def apply(
        self, sheet: Sheet, ids: Sequence[str], progress: ReadProgress
    ) -> tuple[Features, list[str]]:
        """The features of another table, made by this recipe, and notes on what was done."""
        missing = [name for name in self.used if name not in sheet.names]
        if missing:
            more = f" and {len(missing) - 5:,} more" if len(missing) > 5 else ""
            raise UsageError(
                f"{sheet.path} lacks the column{'s' * (len(missing) > 1)} "
                f"{quoted_list(missing[:5])}"
                f"{more}, which the model was trained on."
            )
        notes: list[str] = []
        known = {*self.used, *self.ignored, self.id, self.label}
        extra = [name for name in sheet.names if name not in known]
        if extra:
            more = ", …" if len(extra) > 5 else ""
            notes.append(
                f"{plural(len(extra), 'column')} of {sheet.path} that the model does not know, "
                f"ignored: {quoted_list(extra[:5])}{more}."
            )
        made = self._blocks(sheet, ids, progress, notes)
        scaled = [block * factor for block, factor in zip(made, (1.0, *self.factors), strict=True)]
        return blocks.stack_columns(scaled), notes

    def _blocks(
        self, sheet: Sheet, ids: Sequence[str], progress: ReadProgress, notes: list[str]
    ) -> list[Block]:
        """Counts (or the identity), numbers, categories and text, before they are scaled."""
        if not self.used:
            first: Block = blocks.identity(ids, self.nodes, notes)
        else:
            counts = blocks.read_numbers(sheet, self.counts, progress)
            first = blocks.counts(sheet, counts, np.array(self.count_means), notes)
        numbers = blocks.read_numbers(sheet, self.numbers, progress)
        return [
            first,
            blocks.standardised(numbers, np.array(self.means), np.array(self.deviations), notes),
            blocks.one_hot(sheet, self.categories, notes),
            blocks.tf_idf(sheet, self.text, self.words, np.array(self.idf)),
        ]


def learn(
    sheet: Sheet,
    ids: Sequence[str],
    *,
    id: str | None,
    label: str | None,
    text: Collection[str],
    ignore: Collection[str],
    progress: ReadProgress,
) -> tuple[Recipe, Features, list[str]]:
    """The recipe for a table, the features it gives, and notes on what was done."""
    notes: list[str] = []
    numeric: list[str] = []
    categories: dict[str, tuple[str, ...]] = {}
    ignored = [name for name in sheet.names if name in ignore]
    taken = {id, label, *text, *ignored}
    others = [name for name in sheet.names if name not in taken]
    for at, name in enumerate(others):
        if at % 50 == 0:
            progress("features", at / len(others))
        cells = sheet.numbers(name)
        if cells is None:
            categories[name] = blocks.categories(sheet, name)
        elif cells.missing.size == sheet.rows:
            notes.append(f"The column {quoted(name)} of {sheet.path} is empty and was ignored.")
            ignored.append(name)
        else:
            numeric.append(name)
    numbers = blocks.read_numbers(sheet, numeric, progress)
    bag = _bag_of_words(numbers)
    some, rest = numbers.take(bag), numbers.take(~bag)
    words, idf = blocks.vocabulary(sheet, tuple(text))
    columns = Recipe(
        id=id,
        label=label,
        counts=some.names,
        count_means=_floats(some.means()),
        numbers=rest.names,
        means=_floats(rest.means()),
        deviations=_floats(rest.deviations()),
        categories=categories,
        text=tuple(text),
        words=words,
        idf=_floats(idf),
        ignored=tuple(ignored),
    )
    if not columns.used:
        columns = replace(columns, nodes=tuple(ids))
    made = columns._blocks(sheet, ids, progress, notes)
    factors = _three(tuple(_factor(block) for block in made[1:]))
    columns = replace(columns, factors=factors)
    scaled = [block * factor for block, factor in zip(made, (1.0, *factors), strict=True)]
    return columns, blocks.stack_columns(scaled), notes


def _bag_of_words(numbers: blocks.NumberBlock) -> blocks.Mask:
    """Which columns are counts: all that can be, if they are many and mostly zero; else none."""
    zeros = numbers.zeros()
    can = (numbers.smallest() >= 0) & (zeros >= ZEROS)
    if can.sum() >= COUNT_COLUMNS and zeros[can].mean() > 0.5:
        return can
    return np.zeros_like(can)


def _factor(block: Block) -> float:
    if block.shape[1] == 0:
        return 1.0
    squares = block.multiply(block) if isinstance(block, sp.csr_array) else block * block
    mean = float(np.sqrt(np.asarray(squares.sum(axis=1))).mean())
    return LENGTH / mean if mean > 0 else 1.0


def _names(found: Any) -> tuple[str, ...]:
    if not isinstance(found, list) or not all(isinstance(name, str) for name in found):
        raise TypeError("a list of names was expected")
    return tuple(found)


def _name_or_none(found: Any) -> str | None:
    if found is not None and not isinstance(found, str):
        raise TypeError("a name was expected")
    return found


def _floats(found: Any) -> tuple[float, ...]:
    values = tuple(float(value) for value in found)
    if not np.all(np.isfinite(values)):
        raise ValueError("a number is not finite")
    return values


def _three(found: tuple[float, ...]) -> tuple[float, float, float]:
    numbers, categories, text = found
    return numbers, categories, text
