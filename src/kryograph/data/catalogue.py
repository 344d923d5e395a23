"""The data sets by name: one `Source` for each, and the functions that load and fetch them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from kryograph.data.dataset import Dataset
from kryograph.data.from_path import is_path, path_source
from kryograph.data.planetoid import CORA_CLASSES, planetoid_forms
from kryograph.data.public_graphs import (
    FILM_URL,
    PLATONOV_URL,
    SHCHUR_URL,
    WIKI_CS_URL,
    public_forms,
    read_film,
    read_wiki_cs,
)
from kryograph.data.sources import LoadOptions, Notify, RawFiles, Source, find_files, ignore_note
from kryograph.data.synthetic import synthetic_citations
from kryograph.errors import UsageError
from kryograph.registry import Registry


def _check(name: str, value: object) -> None:
    if not (isinstance(value, Source) and value.name == name):
        raise UsageError(f"{name!r} must be a Source of that name, not {value!r:.80}")


DATASETS: Registry[Source] = Registry("data set", "kryograph.datasets", _check)
"""Every data set by name: the built-in ones, then those of plug-ins."""

PAPER_DATASETS = ("cora", "citeseer", "pubmed")
"""The data sets of the paper."""

_SEN = "Sen et al.: Collective classification in network data, 2008"
_NAMATA = "Namata et al.: Query-driven active surveying for collective classification, 2012"
_YANG = (
    "Yang, Cohen, Salakhutdinov: Revisiting semi-supervised learning with graph embeddings, 2016"
)
_SHCHUR = "Shchur et al.: Pitfalls of graph neural network evaluation, 2018"
_PLATONOV = (
    "Platonov et al.: A critical look at the evaluation of GNNs under heterophily: are we really "
    "making progress?, 2023"
)

_PLATONOV_SETS = {
    "Chameleon (filtered)": "890 articles, 8,854 links, 2,325 words, 5 levels of traffic",
    "Squirrel (filtered)": "2,223 articles, 46,998 links, 2,089 words, 5 levels of traffic",
    "Roman-empire": "22,662 words of a text, 32,927 relations, vectors of length 300, 18 roles",
    "Amazon-ratings": "24,492 products, 93,050 pairs bought together, vectors of length 300, "
    "5 ratings",
    "Minesweeper": "10,000 cells of a grid, 39,402 pairs of neighbours, 7 features, 2 classes",
    "Tolokers": "11,758 workers, 519,000 pairs on a common task, 10 features, 2 classes",
    "Questions": "48,921 users, 153,540 answers, 301 features, 2 classes",
}
_SHCHUR_SETS = {
    "Amazon Computers": (
        "amazon_electronics_computers",
        "13,752 products, 245,861 pairs bought together, 767 words, 10 categories",
    ),
    "Amazon Photo": (
        "amazon_electronics_photo",
        "7,650 products, 119,081 pairs bought together, 745 words, 8 categories",
    ),
    "Coauthor CS": (
        "ms_academic_cs",
        "18,333 authors, 81,894 pairs of coauthors, 6,805 words, 15 fields",
    ),
    "Coauthor Physics": (
        "ms_academic_phy",
        "34,493 authors, 247,962 pairs of coauthors, 8,415 words, 5 fields",
    ),
}


def _file_name(title: str) -> str:
    """Name of a file of Platonov et al., such as "roman_empire" for "Roman-empire"."""
    return re.sub("[^a-z]+", "_", title.lower()).strip("_")


for _source in (
    Source(
        name="cora",
        title="Cora",
        summary="Cora: 2,708 papers, 5,278 citations, 1,433 words, 7 subjects",
        citation=f"{_SEN}; split: {_YANG}",
        classes=tuple(label.replace("_", " ") for label in CORA_CLASSES),
        forms=planetoid_forms("cora"),
    ),
    Source(
        name="citeseer",
        title="CiteSeer",
        summary="CiteSeer: 3,327 papers (15 without a subject), 4,552 citations, 3,703 words, "
        "6 subjects",
        citation=f"{_SEN}; split: {_YANG}",
        # Planetoid drops the names, but no two classes of CiteSeer have the same size.
        classes=("AI", "ML", "IR", "DB", "Agents", "HCI"),
        forms=planetoid_forms("citeseer"),
    ),
    Source(
        name="pubmed",
        title="PubMed",
        summary="PubMed: 19,717 papers on diabetes, 44,324 citations, 500 words, 3 kinds",
        citation=f"{_NAMATA}; split: {_YANG}",
        forms=planetoid_forms("pubmed"),
    ),
    Source(
        name="synthetic",
        title="Synthetic",
        summary="Synthetic: a random graph of Cora's size and difficulty; needs no files",
        citation="none: it is drawn by this package",
        compute=lambda options: synthetic_citations(normalise=options.normalise),
    ),
    Source(
        name="wiki-cs",
        title="WikiCS",
        summary="WikiCS: 11,701 articles, about 216,000 links, word vectors of length 300, "
        "10 topics; 20 splits",
        citation="Mernyei, Cangea: Wiki-CS: a Wikipedia-based benchmark for graph neural networks, "
        "2020",
        forms=public_forms(WIKI_CS_URL, "data.json", read=read_wiki_cs, folder="wiki-cs/"),
        counts=False,
    ),
    Source(
        name="actor",
        title="Actor",
        summary="Actor: 7,600 actors, about 26,700 pairs on a common page, 932 words, 5 classes",
        citation="Pei et al.: Geom-GCN: geometric graph convolutional networks, 2020",
        forms=public_forms(
            FILM_URL,
            "out1_graph_edges.txt",
            "out1_node_feature_label.txt",
            read=read_film,
            folder="film/",
        ),
    ),
    *(
        Source(
            name=_file_name(title).replace("_", "-"),
            title=title,
            summary=f"{title}: {summary}; 10 splits",
            citation=_PLATONOV,
            forms=public_forms(PLATONOV_URL, f"{_file_name(title)}.npz"),
            counts="filtered" in title,
        )
        for title, summary in _PLATONOV_SETS.items()
    ),
    *(
        Source(
            name=title.lower().replace(" ", "-"),
            title=title,
            summary=f"{title}: {summary}",
            citation=_SHCHUR,
            forms=public_forms(SHCHUR_URL, f"{file}.npz"),
        )
        for title, (file, summary) in _SHCHUR_SETS.items()
    ),
):
    DATASETS.add(_source.name, _source)


def find_source(name: str | Path | Source) -> Source:
    """Find a data set by its name, or by the path of a file or folder.

    A name of `DATASETS` comes first: a folder of the same name is written "./cora". The `name` of
    the source of a path ends with a digest of the files, so that rows of earlier contents are not
    taken for rows of the present ones.
    """
    if isinstance(name, Source):
        return name
    text = str(name)
    if text not in DATASETS and is_path(text):
        return path_source(text)
    return DATASETS.find(text)


def load(
    name: str | Path | Source,
    *,
    data_dir: str | Path | None = None,
    remove_unlabelled: bool = False,
    normalise: bool = True,
    notify: Notify = ignore_note,
) -> Dataset:
    """Load a data set; its files are fetched if necessary.

    Args:
        name: A name of `DATASETS`, the path of a file that holds a graph with labels, or the path
            of a folder that holds tables of edges and nodes; or a source.
        data_dir: Folder that holds the files of a named data set; nothing is fetched then.
        remove_unlabelled: Remove the nodes without a class (CiteSeer has 15), as the authors of
            the paper do, and number the others anew.
        normalise: Divide the features of each node by their sum, if they are counts. Features of
            a path are always made by its recipe.
        notify: Called with a sentence for each attempt to fetch something, and for each note on
            the files of a path.

    >>> load("synthetic")
    Dataset('synthetic', Graph(2,708 nodes, 5,416 edges, 1,433 sparse features), 7 classes)
    """
    return find_source(name).load(LoadOptions(data_dir, remove_unlabelled, normalise, notify))


def fetch(
    names: Iterable[str | Source] = PAPER_DATASETS,
    *,
    data_dir: str | Path | None = None,
    notify: Notify = ignore_note,
) -> dict[str, RawFiles]:
    """Bring the files of data sets into the cache, so that later runs need no network.

    Data sets without files to fetch are left out of the answer.
    """
    sources = [find_source(name) for name in names]
    return {
        source.name: find_files(source, data_dir=data_dir, notify=notify)
        for source in sources
        if source.forms
    }


def dataset_title(name: str) -> str:
    """Title of a data set in figures: "Cora", or the name of a file; else the name itself."""
    if name in DATASETS:
        return DATASETS[name].title
    return Path(name).name.partition("#")[0]
