"""TableOptions: how a person's tables are to be read, as far as that is not left to the reader.

They are plain data, stored with a model, so that `predict` reads tables as `fit` did.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from kryograph.errors import UsageError, unknown
from kryograph.merging import REPEAT_RULES
from kryograph.text import quoted

MISSING_WORDS = ("NA", "N/A", "NaN", "null", "None")
"""Words that count as an empty cell unless the caller names others."""
NO_WEIGHT = "none"
"""Value of `weight` that says that no column holds weights."""
KINDS = ("number", "boolean", "category", "date", "text", "vector")
"""What a column that is used can hold."""
DATE_ORDERS = ("day-first", "month-first")

CHOICES: Mapping[str, tuple[str, ...]] = {
    "repeat": REPEAT_RULES,
    "zero_weight": ("drop", "error"),
    "absent_nodes": ("error", "add", "drop"),
    "id_pad": ("exact", "strip"),
}
"""Values of the options that are one of a few words. The first is the default, except that repeated
edges are added up only if they have weights, and are counted otherwise."""


@dataclass(frozen=True)
class TableOptions:
    """Roles and kinds of columns, and rules for faulty ones; None or () leaves it to the reader."""

    source: str | None = None
    target: str | None = None
    """Columns of the two ends of an edge."""
    id: str | None = None
    label: str | None = None
    weight: str | None = None
    """Column of the weights of the edges, or `NO_WEIGHT`."""
    edge_type: str | None = None
    """Column of the types of the edges."""
    number: tuple[str, ...] = ()
    category: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    date: tuple[str, ...] = ()
    """Columns of dates; "joined=day-first" is the column 'joined' with dates such as 31/12/2024."""
    vector: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    """Columns of any table that are not used."""
    missing: tuple[str, ...] | None = None
    """Words that count as an empty cell in every column; None stands for `MISSING_WORDS`."""
    unknown_label: tuple[str, ...] = ()
    """Labels that mean that the label is not known."""
    repeat: str | None = None
    zero_weight: str | None = None
    absent_nodes: str | None = None
    id_pad: str | None = None
    edge_features: bool | None = None
    """Whether columns of the edges become features; None stands for True."""

    def __post_init__(self) -> None:
        for part in fields(self):
            value = getattr(self, part.name)
            if isinstance(value, (list, set)):
                object.__setattr__(self, part.name, tuple(value))
            if part.name in CHOICES and value is not None and value not in CHOICES[part.name]:
                option = "--" + part.name.replace("_", "-")
                raise unknown(f"value of {option}", str(value), CHOICES[part.name])
        uses: dict[str, str] = {}
        for use, names in (
            ("the labels", (self.label,)),
            ("the ids of the nodes", (self.id,)),
            *((f"a column of the kind {kind}", names) for kind, names in self.kinds.items()),
            ("ignored", self.ignore),
        ):
            for name in dict.fromkeys(name for name in names if name is not None):
                if name in uses:
                    raise UsageError(f"The column {quoted(name)} cannot be {uses[name]} and {use}.")
                uses[name] = use
        for role in (self.source, self.target, self.weight):
            if uses.get(role or "") == "ignored":
                raise UsageError(f"The column {quoted(role)} cannot be used and ignored.")

    @property
    def kinds(self) -> dict[str, tuple[str, ...]]:
        """Columns whose kind the caller names, by kind."""
        return {
            "number": self.number,
            "category": self.category,
            "text": self.text,
            "date": tuple(self.date_orders),
            "vector": self.vector,
        }

    @property
    def date_orders(self) -> dict[str, str | None]:
        """Columns of dates with one of `DATE_ORDERS`; None if the dates are ISO 8601."""
        orders: dict[str, str | None] = {}
        for entry in self.date:
            name, _, order = entry.rpartition("=")
            orders[name if name and order in DATE_ORDERS else entry] = (
                order if name and order in DATE_ORDERS else None
            )
        return orders

    @property
    def named(self) -> set[str]:
        """Columns that the caller names, for any use."""
        roles = (self.source, self.target, self.id, self.label, self.edge_type, self.weight)
        kinds = (name for names in self.kinds.values() for name in names)
        names = {name for name in (*roles, *kinds, *self.ignore) if name is not None}
        return names - {NO_WEIGHT} if self.weight == NO_WEIGHT else names

    @property
    def missing_words(self) -> tuple[str, ...]:
        """Words that count as an empty cell."""
        return MISSING_WORDS if self.missing is None else self.missing

    def choice(self, name: str) -> str:
        """Value of one of `CHOICES`, or its default."""
        return str(getattr(self, name) or CHOICES[name][0])

    def over(self, base: TableOptions) -> TableOptions:
        """Return these options, with those of `base` where nothing is said."""
        return TableOptions(**{**vars(base), **self._named_options()})

    def to_json(self) -> dict[str, Any]:
        """Return the options that say something, as text, lists and truth values."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in self._named_options().items()
        }

    def _named_options(self) -> dict[str, Any]:
        """Options that say something; no word at all is something for `missing`."""
        return {
            name: value
            for name, value in vars(self).items()
            if value is not None and (value != () or name == "missing")
        }

    @classmethod
    def from_json(cls, value: object) -> TableOptions:
        """Read what `to_json` returned; anything else raises a TypeError or a ValueError."""
        if not isinstance(value, dict):
            raise TypeError("a mapping of options was expected")
        for name, stored in value.items():
            default = getattr(cls, name, cls)
            is_names = isinstance(stored, list) and all(isinstance(item, str) for item in stored)
            plain = isinstance(stored, bool) if name == "edge_features" else isinstance(stored, str)
            if default is cls or not (plain or is_names):
                raise TypeError(f"the option {name!r} is not known")
        try:
            return cls(**value)
        except UsageError as error:
            raise ValueError(str(error)) from error


@dataclass(frozen=True)
class Reading:
    """How tables were read for a model, so that later tables are read alike."""

    options: TableOptions
    """Options of the fit, with the columns that were recognised as source, target and weight."""
    kinds: Mapping[str, str]
    """Kind of each column of the node table that is used."""
    edge_kinds: Mapping[str, str]
    """Kind of each column of the edge tables that is used."""

    def to_json(self) -> dict[str, Any]:
        """Return the record as text, lists and mappings."""
        kinds = {"kinds": dict(self.kinds), "edge_kinds": dict(self.edge_kinds)}
        return {"options": self.options.to_json(), **kinds}

    @classmethod
    def from_json(cls, value: object) -> Reading:
        """Read what `to_json` returned; anything else is a KeyError, TypeError or ValueError."""
        if not isinstance(value, dict):
            raise TypeError("a mapping was expected")
        for kinds in (value["kinds"], value["edge_kinds"]):
            if not isinstance(kinds, dict) or not set(kinds.values()) <= set(KINDS):
                raise ValueError("a kind of columns is not known")
        options = TableOptions.from_json(value["options"])
        return cls(options, value["kinds"], value["edge_kinds"])
