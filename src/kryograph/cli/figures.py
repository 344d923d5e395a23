"""`kryograph reproduce figure…`, `theory` and `depth`: what a person types, and what is written.

What draws and what learns is imported when a command is called: everything else starts at once.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from kryograph.cli.console import note, show_table, stages
from kryograph.errors import UsageError
from kryograph.figures.figure import Output

if TYPE_CHECKING:
    from kryograph.data import Dataset
    from kryograph.figures.ranks import RankExperiment, Ranks
    from kryograph.training.loop import Conditions

Out = Annotated[Path, typer.Option("--out", help="The folder to write into.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Quick = Annotated[bool, typer.Option("--quick", help="A small size, for a first look.")]
Seed = Annotated[int, typer.Option("--seed", help="Fixes every random draw.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace files of the same names.")]
Layers = Annotated[int | None, typer.Option("--layers", help="How deep. Default: 100.")]
Repetitions = Annotated[
    int | None, typer.Option("--repetitions", help="How many draws. Default: 20.")
]
Activations = Annotated[str | None, typer.Option("--activations", help="Some, by commas.")]

Datasets = Annotated[str, typer.Option("--datasets", help="Some, by commas.")]
DataDir = Annotated[
    Path | None,
    typer.Option("--data-dir", help="A folder with ind.* files (or set KRYOGRAPH_DATA)."),
]
Seeds = Annotated[int, typer.Option("--seeds", help="Runs for each point; seeds 0, 1, …")]
Jobs = Annotated[int | None, typer.Option("--jobs", help="Runs at once. Default: one per core.")]

FOLDER = Path("figures")
ALL = "cora,citeseer,pubmed"

FIGURE1 = "relu,tanh,identity"
SHOWN_LAYERS = (1, 10, 20, 30, 40, 50, 65, 80, 100)


def rank_figure(
    name: str, summary: str, shown: str | None = None, transposed: bool = False
) -> Callable[..., None]:
    """The command that draws ranks against layers.

    Args:
        name: Of the figure.
        summary: What it shows.
        shown: The activations, unless the person names some; all if None.
        transposed: Whether to draw a panel for each activation, too.
    """

    def draw(
        out: Out = FOLDER,
        layers: Layers = None,
        repetitions: Repetitions = None,
        activations: Activations = None,
        seed: Seed = 0,
        quick: Quick = False,
        overwrite: Overwrite = False,
        as_json: Json = False,
    ) -> None:
        views = ("", "-transposed") if transposed else ("",)
        output = Output(out, name, views, overwrite, as_json)
        experiment = _experiment(layers, repetitions, seed, quick)
        found = _ranks(experiment, activations or shown, as_json)

        from kryograph.figures.ranks import by_activation, by_architecture, rank_rows

        figures = [by_architecture(found), *([by_activation(found)] if transposed else [])]
        output.write(figures, rank_rows(found), _about(experiment, found))

    draw.__doc__ = summary
    return draw


def figure_spectrum(
    out: Out = FOLDER,
    datasets: Datasets = ALL,
    quick: Quick = False,
    data_dir: DataDir = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Appendix IV: all eigenvalues and singular values of three citation graphs."""
    output = Output(out, "figure-spectrum", overwrite=overwrite, as_json=as_json)
    loaded = _load(datasets, quick, data_dir)

    from kryograph.figures.spectrum import spectrum, spectrum_rows, spectrum_summary

    with stages() as stage:
        found = {}
        for place, (name, data) in enumerate(loaded.items()):
            stage(f"{name}, {data.graph.n:,} nodes", place / len(loaded))
            found[name] = spectrum(data.graph)
    if not as_json:
        show_table(
            ("graph", "nodes", "λ smallest", "1 − |λ₂|", "largest singular value, sym", "rw"),
            [
                (
                    name,
                    f"{len(each.eigenvalues):,}",
                    f"{each.eigenvalues[-1]:.4f}",
                    f"{each.gap:.2e}",
                    f"{each.singular_sym[0]:.4f}",
                    f"{each.singular_rw[0]:.4f}",
                )
                for name, each in found.items()
            ],
        )

    from kryograph.figures.spectrum import draw_spectra

    output.write([draw_spectra(found)], spectrum_rows(found), {"graphs": spectrum_summary(found)})


def figure_tsne(
    out: Out = FOLDER,
    dataset: Annotated[str, typer.Option("--dataset", help="With a public split.")] = "cora",
    seed: Seed = 0,
    quick: Quick = False,
    data_dir: DataDir = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Figure 3: the features that the three proposals learn on Cora, by t-SNE."""
    output = Output(out, "figure-tsne", overwrite=overwrite, as_json=as_json)
    _at_least("--seed", seed, 0)
    [data] = _load(dataset, quick, data_dir).values()

    from kryograph.figures.embedding import EMBEDDED_SYSTEMS, embedding_rows, placed

    with stages() as stage:
        found = []
        for place, name in enumerate(EMBEDDED_SYSTEMS):
            stage(f"training and placing {name}", place / len(EMBEDDED_SYSTEMS))
            found.append(placed(data, name, seed, _conditions(quick)))
    about = {each.system: {"test_accuracy": each.test_accuracy} for each in found}
    if not as_json:
        show_table(
            ("system", "features", "test %"),
            [(p.system, str(p.features), f"{100 * p.test_accuracy:.1f}") for p in found],
        )

    from kryograph.figures.embedding import draw_scatter

    said = {"dataset": data.name, "split": "public", "settings": "default", "seed": seed}
    output.write(
        [draw_scatter(data, found)], embedding_rows(data, found), {**said, "systems": about}
    )


def depth(
    out: Out = FOLDER,
    dataset: Annotated[str, typer.Option("--dataset", help="With a public split.")] = "cora",
    depths: Annotated[
        str | None, typer.Option("--depths", help="By commas. Default: 1,2,4,8,16,32,64.")
    ] = None,
    seeds: Seeds = 10,
    jobs: Jobs = None,
    quick: Quick = False,
    data_dir: DataDir = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Accuracy against depth: GCN with ReLU and tanh, both Snowballs, truncated Krylov."""
    output = Output(out, "depth", overwrite=overwrite, as_json=as_json)

    from kryograph.figures.depth import (
        DEPTHS,
        VARIANTS,
        accuracy_over_seeds,
        at_depth,
        checked_depths,
    )

    wanted = checked_depths(
        _numbers("--depths", depths) if depths else DEPTHS[:3] if quick else DEPTHS
    )
    at_once, many = _workers(jobs, seeds, quick)
    [data] = _load(dataset, quick, data_dir).values()
    rows: list[dict[str, Any]] = []
    with stages() as stage:
        for place, (layers, variant) in enumerate((d, v) for d in wanted for v in VARIANTS):
            stage(f"{layers} layers: {variant}", place / len(wanted) / len(VARIANTS))
            method = at_depth(variant, layers)
            score = accuracy_over_seeds(
                method, data, many, jobs=at_once, conditions=_conditions(quick)
            )
            rows.append({"variant": variant, "depth": layers, **score})
    if not as_json:
        by_place = {(row["variant"], row["depth"]): _interval(row) for row in rows}
        show_table(
            ("test % after layers", *map(str, wanted)),
            [(variant, *(by_place[variant, d] for d in wanted)) for variant in VARIANTS],
        )

    from kryograph.figures.depth import draw_depths as draw

    title = f"{data.name.capitalize()}, public split, {many} seed{'s' * (many > 1)}"
    settings = {v: at_depth(v, 1).settings.as_dict() | {"layers": "depth"} for v in VARIANTS}
    said = {"dataset": data.name, "split": "public", "protocol": "validation", "seeds": many}
    output.write([draw(rows, title)], rows, {**said, "settings": settings, "points": rows})


def theory(
    out: Out = FOLDER,
    datasets: Datasets = ALL,
    blocks: Annotated[
        int, typer.Option("--blocks", help="How far to look for the end of the span's growth.")
    ] = 60,
    seeds: Seeds = 10,
    jobs: Jobs = None,
    seed: Seed = 0,
    quick: Quick = False,
    data_dir: DataDir = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """The paper's theorems by experiment, and how many Krylov blocks are enough."""
    output = Output(out, "theory", overwrite=overwrite, as_json=as_json)
    _at_least("--seed", seed, 0)
    _at_least("--blocks", blocks, 1)
    at_once, many = _workers(jobs, seeds, quick)
    loaded = _load(datasets, quick, data_dir)

    from kryograph.figures.theory import (
        QUICK_THEORY,
        Size,
        investigate,
        theory_rows,
        theory_sentences,
        theory_tables,
    )

    size = QUICK_THEORY if quick else Size(blocks=blocks)
    with stages() as stage:
        found = investigate(loaded, size, many, at_once, seed, _conditions(quick), stage)
    if not as_json:
        for headings, lines in theory_tables(found):
            show_table(headings, lines)

    from kryograph.figures.theory_plots import draw_theory as draw

    output.write(
        [draw(found)], theory_rows(found), {"seed": seed, "seeds": many, **theory_sentences(found)}
    )


FIGURES: dict[str, Callable[..., None]] = {
    "figure1": rank_figure(
        "figure1",
        "Figure 1: how many columns stay independent over 100 layers of three architectures.",
        FIGURE1,
    ),
    "figure-ranks": rank_figure(
        "figure-ranks",
        "Appendix III: figure 1 with ten activations, by architecture and by activation.",
        transposed=True,
    ),
    "figure-tsne": figure_tsne,
    "figure-spectrum": figure_spectrum,
}
"""What `kryograph reproduce` draws."""


def _experiment(
    layers: int | None, repetitions: int | None, seed: int, quick: bool
) -> RankExperiment:
    from kryograph.figures.ranks import QUICK_RANKS, RankExperiment

    asked = {"layers": layers, "repetitions": repetitions, "seed": seed}
    given = {name: value for name, value in asked.items() if value is not None}
    return dataclasses.replace(QUICK_RANKS if quick else RankExperiment(), **given)


def _ranks(
    experiment: RankExperiment, activations: str | None, as_json: bool
) -> dict[tuple[str, str], Ranks]:
    from kryograph.figures.ranks import ARCHITECTURES, SCALED, ranks

    chosen = [name.strip() for name in activations.split(",")] if activations else list(SCALED)
    with stages() as stage:
        found = ranks(experiment, tuple(ARCHITECTURES), chosen, stage)
    layers = [layer for layer in SHOWN_LAYERS if layer <= experiment.layers]
    if not as_json:
        show_table(
            ("mean rank after layer", *map(str, layers)),
            [
                (f"{name} {f}", *(f"{table[:, layer - 1].mean():.1f}" for layer in layers))
                for (name, f), table in found.items()
            ],
        )
    return found


def _about(experiment: RankExperiment, found: dict[tuple[str, str], Ranks]) -> dict[str, Any]:
    return {
        "experiment": dataclasses.asdict(experiment),
        "precision": "float64",
        "rank": "singular values above max(rows, columns) · eps · largest",
        "mean_rank": {
            f"{name} {f}": {
                str(layer): float(table[:, layer - 1].mean())
                for layer in SHOWN_LAYERS
                if layer <= experiment.layers
            }
            for (name, f), table in found.items()
        },
    }


def _load(names: str, quick: bool, data_dir: Path | None) -> dict[str, Dataset]:
    """Data sets by name; the quick look is at a small synthetic one."""
    from kryograph.data import load
    from kryograph.data.catalogue import entry

    if quick:
        data = small()
        return {data.name: data}
    wanted = [entry(name.strip()).name for name in names.split(",")]
    return {name: load(name, data_dir=data_dir, notify=note) for name in wanted}


def small() -> Dataset:
    """A graph that trains in a moment, with a split in the place of the public one."""
    from kryograph.data import synthetic_citations
    from kryograph.graph import Split

    data = synthetic_citations(n=300, classes=3, words=60, words_per_node=8, seed=0)
    # Classes are spread at random over the nodes already.
    train, validation, test = np.split(np.arange(300), [60, 160])
    public = Split("public", train=train, validation=validation, test=test)
    return dataclasses.replace(data, public=public)


def _conditions(quick: bool) -> Conditions:
    from kryograph.training.loop import Conditions
    from kryograph.training.stopping import StopRule

    return Conditions(rule=StopRule(max_epochs=20)) if quick else Conditions()


def _workers(jobs: int | None, seeds: int, quick: bool) -> tuple[int, int]:
    """How many runs at once, and in all."""
    from kryograph.runs.workers import cores

    _at_least("--seeds", seeds, 1)
    if jobs is not None:
        _at_least("--jobs", jobs, 1)
    many = min(seeds, 2) if quick else seeds
    return min(many, jobs or (1 if quick else cores())), many


def _at_least(option: str, value: int, least: int) -> None:
    if value < least:
        raise UsageError(f"{option} must be at least {least}; it is {value}.")


def _numbers(option: str, text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise UsageError(f"{option} takes whole numbers by commas, not {text!r}.") from None


def _interval(row: Mapping[str, Any]) -> str:
    if row["mean"] is None:
        return "diverged"
    half = "" if row["low"] is None else f" ± {100 * (row['high'] - row['low']) / 2:.1f}"
    return f"{100 * row['mean']:.1f}{half}"
