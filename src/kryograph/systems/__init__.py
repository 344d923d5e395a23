"""Published methods by name. Importing this package registers them all."""

from kryograph.systems import snowball, truncated_krylov
from kryograph.systems.base import SYSTEMS, Fit, System, system

__all__ = ["SYSTEMS", "Fit", "System", "snowball", "system", "truncated_krylov"]
