from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer
import typer.main

from kryograph.cli import app
from kryograph.cli.options import TESTED_TYPER, PlainValue, split_commas
from kryograph.errors import UsageError
from kryograph.experiments.resolve import SETTINGS_CHOICES
from kryograph.runs.job import PROTOCOLS
from kryograph.training.loop import PRECISIONS
from kryograph.training.stopping import RULES
from kryograph.tuning.study import SAMPLERS

Run = Callable[..., tuple[int, str, str]]


ARGUMENTS = {
    "fit": "--edges /dev/null --out run",
    "suggest": "run",
    "tune": "lp",
    "bench graphs": "--data cora",
    "bench suggest": "--data cora",
}
"""Required arguments of the commands that have whole numbers among their options."""


def counts(group: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Each option whose value is a whole number, after the command that has it."""
    for name, command in group.commands.items():
        words = f"{path} {name}".strip()
        if hasattr(command, "commands"):
            yield from counts(command, words)
        for option in command.params:
            if option.metavar == "N":
                yield words, option.opts[0]


COUNTS = list(counts(typer.main.get_command(app)))


def test_every_command_with_counts_is_known() -> None:
    options = {option for _, option in COUNTS}
    assert options >= {"--seeds", "--jobs", "--runs", "--trials", "--per-class", "--seed"}
    assert len(COUNTS) >= 30


@pytest.mark.parametrize(("command", "option"), COUNTS, ids=lambda value: value)
def test_count_is_refused_below_its_least_value(run: Run, command: str, option: str) -> None:
    least = 0 if option in ("--seed", "--port", "--first") else 1
    words = [*command.split(), *ARGUMENTS.get(command, "").split()]
    for value in (least - 1, -7):
        message = f"kryograph: {option} must be at least {least}; it is {value}.\n"
        assert run(*words, option, value) == (2, "", message)


@pytest.mark.parametrize(
    ("command", "option", "values"),
    [
        ("train", "--protocol", PROTOCOLS),
        ("train", "--precision", PRECISIONS),
        ("train", "--stop", RULES),
        ("train", "--settings", SETTINGS_CHOICES),
        ("reproduce table2", "--settings", SETTINGS_CHOICES),
        ("results", "--settings", SETTINGS_CHOICES),
        ("compare gcn lp", "--settings", SETTINGS_CHOICES),
        ("tune lp", "--protocol", PROTOCOLS),
        ("tune lp", "--sampler", SAMPLERS),
    ],
)
def test_choice_names_all_values_if_it_is_misspelt(
    run: Run, command: str, option: str, values: Iterable[str]
) -> None:
    code, out, err = run(*command.split(), option, "nonsense")
    assert (code, out) == (2, "")
    assert err.endswith(f"'nonsense'. There are: {', '.join(values)}.\n")


def test_split_commas_joins_values_with_commas_and_repeated_options() -> None:
    assert split_commas(None) == []
    assert split_commas("title, abstract,") == ["title", "abstract"]
    assert split_commas(["Cora 1%, PubMed 0.1%", "Cora 3%"]) == [
        "Cora 1%",
        "PubMed 0.1%",
        "Cora 3%",
    ]


ONE = SimpleNamespace(opts=["--one"], multiple=False, nargs=1)
SEVERAL = SimpleNamespace(opts=["--several"], multiple=True, nargs=1)


def test_tested_version_of_typer_is_installed() -> None:
    assert typer.__version__.startswith(TESTED_TYPER)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [(int, "-3", -3), (float, "1e-3", 0.001), (str, "3", "3"), (Path, "a/b", Path("a/b"))],
)
def test_plain_value_has_the_type_of_the_option(kind: type, text: str, value: object) -> None:
    assert PlainValue(kind).coerce(text, ONE, None) == value
    assert PlainValue(kind).coerce(value, ONE, None) == value
    assert PlainValue(kind).coerce((text, text), SEVERAL, None) == [value, value]


def test_plain_value_is_none_or_empty_without_the_option() -> None:
    assert PlainValue(int).coerce(None, ONE, None) is None
    assert PlainValue(int).coerce(None, SEVERAL, None) == []


@pytest.mark.parametrize(("kind", "words"), [(int, "a whole number"), (float, "a number")])
def test_plain_value_names_the_option_if_it_is_no_number(kind: type, words: str) -> None:
    with pytest.raises(UsageError, match=f"--one takes {words}, not 'many'"):
        PlainValue(kind).coerce("many", ONE, None)
