"""The opening block of a verb that executes a study: version, machine, study, folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from paceline.cli.console import Console
from paceline.units import bytes_text, counted

if TYPE_CHECKING:
    from paceline.records.study import Study


def print_opening(study: Study, folder: Path, console: Console) -> None:
    """Print the opening block."""
    from paceline import __version__
    from paceline.launch.machine import this_machine
    from paceline.records.study_size import size_text

    here = this_machine()
    gpus = f", {', '.join(here.gpus)}" if here.gpus else ""
    console.say(f"Paceline {__version__}")
    cores = counted(here.cores, "core")
    console.fact("Machine", f"{here.host}: {cores}, {bytes_text(here.memory_bytes)}, {here.cpu}{gpus}")
    console.fact("Study", f"{study.title or study.name}{f': {study.question}' if study.question else ''}")
    if sized := size_text(study):
        console.fact("Size", sized[0].upper() + sized[1:] + ".")
    console.fact("Folder", str(folder))
