"""Every built-in system passes the public checks of `kryograph.testing`."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

from kryograph import systems
from kryograph.systems import SYSTEMS, System
from kryograph.systems.network import NetworkSystem
from kryograph.testing import Check, check_system

KRYLOV = "hidden=8,order=4,lr=0.05,optimizer=adam,dropout=0,input_dropout=0"
SETTINGS = {"blend": {"members": f"prototypes:rounds=2 + truncated-krylov:{KRYLOV}"}}
"""Settings of the systems that have none of the quick settings of the checks."""

EXCEPTIONS = {
    ("pool", "permuted_nodes_give_permuted_output"): "the folds depend on the order of the nodes",
    ("trees", "permuted_nodes_give_permuted_output"): "in a graph with several components the "
    "eigenvectors with eigenvalue 1 are any basis of their space",
}
"""Checks that a system does not pass, and why."""


def marks(name: str, check: Check) -> list[pytest.MarkDecorator]:
    reason = EXCEPTIONS.get((name, str(check)))
    return [pytest.mark.slow] * check.slow + [pytest.mark.xfail(reason=reason)] * bool(reason)


CHECKS = [
    pytest.param(name, check, id=f"{name}-{check}", marks=marks(name, check))
    for name in SYSTEMS
    for check in check_system(name, SETTINGS.get(name))
]


@pytest.mark.parametrize(("name", "check"), CHECKS)
def test_system_passes_the_check(name: str, check: Check) -> None:
    assert check.system == name
    check()


def test_every_system_class_that_is_no_base_class_is_registered() -> None:
    classes, bases = set[type](), set[type]()
    for module in pkgutil.iter_modules(systems.__path__, f"{systems.__name__}."):
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, type) and issubclass(value, System):
                classes.add(value)
                bases.update(value.__mro__[1:])
    assert {"GATSystem", "M3SSystem"} <= {cls.__name__ for cls in classes - bases}
    assert classes - bases <= set(SYSTEMS.values())


def test_dropout_is_checked_for_the_systems_that_have_it() -> None:
    checked = {name for name in SYSTEMS if "uses_dropout" in map(str, check_system(name))}
    assert {name for name in SYSTEMS if issubclass(SYSTEMS[name], NetworkSystem)} <= checked
    assert {"gcn", "self-training"} <= checked
    assert not {"lp", "prototypes"} & checked
