"""Do runs and keep their rows: jobs, worker processes, the results store."""

from kryograph.runs import sweep
from kryograph.runs.job import Job, Scenario, over_seeds
from kryograph.runs.perform import Datasets
from kryograph.runs.store import Row, Store, read_csv, stored_rows
from kryograph.runs.workers import execute
from kryograph.threads import cores

__all__ = [
    "Datasets",
    "Job",
    "Row",
    "Scenario",
    "Store",
    "cores",
    "execute",
    "over_seeds",
    "read_csv",
    "stored_rows",
    "sweep",
]
