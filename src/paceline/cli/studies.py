"""`paceline studies`: the studies that come with Paceline."""

from __future__ import annotations

from paceline.cli.console import Console
from paceline.cli.options import Json


def studies(*, as_json: Json = False) -> None:
    """List the studies that come with Paceline: name, title and question.

    Each is a file like your own: the path is shown, so that it can be copied and changed.

    For example:

        paceline studies
        paceline studies --json
    """
    from paceline.storage.codec import plain
    from paceline.studies.load.load import shipped_studies

    console = Console.standard()
    shipped = shipped_studies()
    if as_json:
        console.json({"studies": [plain(study) for study in shipped]})
        return
    texts = [f"{study.name}: {study.title}\n    {study.question}\n    {study.path}" for study in shipped]
    console.result("\n\n".join([*texts, "Run the quickest: paceline study digits"]))
