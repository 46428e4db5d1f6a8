"""`paceline studies`: the studies included in Paceline."""

from __future__ import annotations

from paceline.cli.console import Console
from paceline.cli.options import Json


def studies(*, as_json: Json = False) -> None:
    """List the studies included in Paceline: name, title and question.

    Each is a study file; copy it from the path shown and change it.

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
    console.result("\n\n".join([*texts, "Run the shortest: paceline study digits"]))
