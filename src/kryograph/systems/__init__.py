"""Published methods by name.

Importing this package imports every module in it, and each module registers its systems: a new
system is one new file. The public names are what a plug-in may import.
"""

from importlib import import_module
from pkgutil import iter_modules

from kryograph.systems.base import SYSTEMS, Fit, Probabilities, System, Weights, register, system
from kryograph.systems.network import NetworkSettings, NetworkSystem
from kryograph.systems.settings import SearchRange, Settings, inherited, read_pairs, setting
from kryograph.training.loop import DEFAULT_CONDITIONS, Conditions, OnEpoch, ignore_epoch

__all__ = [
    "DEFAULT_CONDITIONS",
    "SYSTEMS",
    "Conditions",
    "Fit",
    "NetworkSettings",
    "NetworkSystem",
    "OnEpoch",
    "Probabilities",
    "SearchRange",
    "Settings",
    "System",
    "Weights",
    "ignore_epoch",
    "inherited",
    "read_pairs",
    "register",
    "setting",
    "system",
]

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
