"""`kryograph reproduce figure…`, `theory` and `depth`: draw figures and write them to files."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from kryograph.cli import options
from kryograph.cli.console import note, print_json, print_table, stages
from kryograph.lazy import lazy_imports
from kryograph.text import OnProgress

with lazy_imports():
    from kryograph import data
    from kryograph.figures import depth, embedding, figure, ranks, spectrum, theory


def rank_figure(
    name: str, summary: str, default_activations: str | None = None, transposed: bool = False
) -> Callable[..., None]:
    """Build the command that draws ranks against layers.

    The default is all activations. With `transposed`, a second picture has a panel for each.
    """

    def draw(
        out: options.FigureFolder = options.FIGURE_FOLDER,
        layers: options.Layers = None,
        repetitions: options.Repetitions = None,
        activations: options.Activations = None,
        seed: options.Seed = 0,
        quick: options.Quick = False,
        overwrite: options.Overwrite = False,
        as_json: options.Json = False,
    ) -> None:
        def compute(progress: OnProgress) -> figure.FigureResult:
            size = ranks.QUICK_RANKS if quick else ranks.RankExperiment()
            experiment = dataclasses.replace(
                size,
                seed=seed,
                layers=layers or size.layers,
                repetitions=repetitions or size.repetitions,
            )
            selected = options.split_commas(activations or default_activations)
            names = selected or list(ranks.SCALED)
            return ranks.compute_ranks(experiment, names, transposed=transposed, progress=progress)

        suffixes = ("", "-transposed") if transposed else ("",)
        _make_figure(name, out, compute, overwrite, as_json, suffixes)

    draw.__doc__ = summary
    return draw


def spectrum_figure(
    out: options.FigureFolder = options.FIGURE_FOLDER,
    datasets: options.DatasetNames = options.CITATION_GRAPHS,
    quick: options.Quick = False,
    data_dir: options.DataDir = None,
    overwrite: options.Overwrite = False,
    as_json: options.Json = False,
) -> None:
    """Appendix IV: eigenvalues and singular values of graphs."""

    def compute(progress: OnProgress) -> figure.FigureResult:
        return spectrum.compute_spectra(_load(datasets, quick, data_dir), progress)

    _make_figure("figure-spectrum", out, compute, overwrite, as_json)


def tsne_figure(
    out: options.FigureFolder = options.FIGURE_FOLDER,
    dataset: options.DatasetName = "cora",
    label_rate: options.LabelRate = None,
    per_class: options.PerClass = None,
    seed: options.Seed = 0,
    quick: options.Quick = False,
    data_dir: options.DataDir = None,
    overwrite: options.Overwrite = False,
    as_json: options.Json = False,
) -> None:
    """Figure 3: learned features, placed in the plane by t-SNE."""

    def compute(progress: OnProgress) -> figure.FigureResult:
        [loaded] = _load(dataset, quick, data_dir).values()
        split = data.one_split(None, label_rate, per_class)
        return embedding.compute_embedding(
            loaded, seed=seed, split=split, stop=_stop(quick), progress=progress
        )

    _make_figure("figure-tsne", out, compute, overwrite, as_json)


def depth_figure(
    out: options.FigureFolder = options.FIGURE_FOLDER,
    dataset: options.DatasetName = "cora",
    label_rate: options.LabelRate = None,
    per_class: options.PerClass = None,
    depths: Annotated[str | None, options.numbers("--depths", "Default: 1,2,4,8,16,32,64.")] = None,
    seeds: options.PointSeeds = 10,
    jobs: options.Jobs = None,
    quick: options.Quick = False,
    data_dir: options.DataDir = None,
    overwrite: options.Overwrite = False,
    as_json: options.Json = False,
) -> None:
    """Draw accuracy against depth.

    The networks are GCN with ReLU and with tanh, both Snowballs, and truncated Krylov.
    """

    def compute(progress: OnProgress) -> figure.FigureResult:
        default = depth.DEPTHS[:3] if quick else depth.DEPTHS
        layers = depth.check_depths(
            options.read_numbers("--depths", depths) if depths is not None else default
        )
        [loaded] = _load(dataset, quick, data_dir).values()
        runs = _runs(seeds, jobs, quick)
        split = data.one_split(None, label_rate, per_class)
        return depth.compute_depth(loaded, layers, split=split, **runs, progress=progress)

    _make_figure("depth", out, compute, overwrite, as_json)


def theory_figure(
    out: options.FigureFolder = options.FIGURE_FOLDER,
    datasets: options.DatasetNames = options.CITATION_GRAPHS,
    label_rate: options.LabelRate = None,
    per_class: options.PerClass = None,
    blocks: Annotated[int, options.count("--blocks", "Largest number of Krylov blocks.")] = 60,
    seeds: options.PointSeeds = 10,
    jobs: options.Jobs = None,
    seed: options.Seed = 0,
    quick: options.Quick = False,
    data_dir: options.DataDir = None,
    overwrite: options.Overwrite = False,
    as_json: options.Json = False,
) -> None:
    """Check the paper's theorems by experiment.

    Also measures how many Krylov blocks are enough.
    """

    def compute(progress: OnProgress) -> figure.FigureResult:
        size = theory.QUICK_THEORY if quick else theory.TheoryOptions(blocks=blocks)
        split = data.one_split(None, label_rate, per_class)
        size = dataclasses.replace(size, seed=seed, split=split, **_runs(seeds, jobs, quick))
        return theory.compute_theory(_load(datasets, quick, data_dir), size, progress)

    _make_figure("theory", out, compute, overwrite, as_json)


FIGURES: dict[str, Callable[..., None]] = {
    "figure1": rank_figure(
        "figure1", "Figure 1: ranks of hidden layers with three activations.", "relu,tanh,identity"
    ),
    "figure-ranks": rank_figure(
        "figure-ranks", "Appendix III: figure 1 with ten activations.", transposed=True
    ),
    "figure-tsne": tsne_figure,
    "figure-spectrum": spectrum_figure,
}
"""Commands of `kryograph reproduce` that draw a figure."""


def _make_figure(
    name: str,
    folder: Path,
    compute: Callable[[OnProgress], figure.FigureResult],
    overwrite: bool,
    as_json: bool,
    suffixes: tuple[str, ...] = ("",),
) -> None:
    """Check the paths of a figure, compute it, print its tables or JSON, and write its files."""
    start = time.perf_counter()
    files = figure.FigureFiles(folder, name, suffixes, overwrite)
    with stages() as stage:
        result = compute(stage)
    if not as_json:
        for headings, rows in result.tables:
            print_table(headings, rows)
    about = files.write(result)
    seconds = time.perf_counter() - start
    if as_json:
        paths = [str(path) for path in files.paths]
        print_json({**about, "seconds": round(seconds, 1), "files": paths})
    names = ", ".join(path.name for path in files.paths)
    note(f"Written to {folder} in {seconds:.0f} s: {names}.")


def _load(names: str, quick: bool, data_dir: Path | None) -> dict[str, data.Dataset]:
    """Load data sets by their names; with `quick` a small synthetic one instead."""
    if quick:
        return {"synthetic": figure.quick_dataset()}
    known = [data.find_source(name).name for name in options.split_commas(names)]
    return {name: data.load(name, data_dir=data_dir, notify=note) for name in known}


def _stop(quick: bool) -> str:
    """Name of the stop rule; a first look takes 20 epochs."""
    return "20" if quick else "paper"


def _runs(seeds: int, jobs: int | None, quick: bool) -> dict[str, Any]:
    """Arguments for the training runs of each point; a first look takes at most two, in turn."""
    if quick:
        return {"seeds": min(seeds, 2), "jobs": jobs or 1, "stop": _stop(quick)}
    return {"seeds": seeds, "jobs": jobs, "stop": _stop(quick)}
