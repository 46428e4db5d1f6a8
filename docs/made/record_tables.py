"""The files of a study and of a run, and the records in them, from `records/`."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

from docstrings import cell, fields, summary

from paceline.records import allocation, finding, results, run, study
from paceline.storage.folder import RunFolder, StudyFolder
from paceline.studies.folder.bookkeeping import Failure

# Which file holds which records, the outermost first.
_HELD: tuple[tuple[str, tuple[type, ...]], ...] = (
    ("manifest.json", (run.Manifest, study.Point)),
    ("machine.json", (run.Machine, allocation.ProcessFacts, allocation.Complaint, allocation.Link)),
    ("ranks/rank-0000.json", (run.RankReport, run.TrainingReport, run.ScriptFigures)),
    ("curves.csv", (run.Epoch,)),
    ("noise.csv", (run.NoiseEpoch,)),
    ("result.json", (run.RunResult, run.PhaseEnd)),
    ("failure.json", (Failure,)),
)


def page() -> str:
    """The files by folder, then a table of fields for every record that is kept."""
    parts = ["## Files of a study", _files(StudyFolder), "## Files of a run", _files(RunFolder)]
    for name, records in _HELD:
        parts += [f"## {name}", *(_record(record) for record in records)]
    parts += ["## Results, as analysed", summary(results), *(_record(record) for record in _of(results))]
    parts += ["## Findings", *(_record(record) for record in _of(finding))]
    return "\n\n".join(parts)


def _of(module: ModuleType) -> list[type]:
    """The dataclasses that a module defines, in its order."""
    return [
        found
        for found in vars(module).values()
        if isinstance(found, type) and found.__module__ == module.__name__ and hasattr(found, "__dataclass_fields__")
    ]


def _files(folder: type) -> str:
    """Every file that a folder names, with what the code says about it."""
    here, explained = folder(Path("X")), _explained()
    rows = ["| file | in the code | what it is |", "|------|-------------|------------|"]
    for name, member in vars(folder).items():
        if isinstance(member, property):
            path, told = getattr(here, name), member.fget
        elif name.startswith("rank_"):
            path, told = getattr(here, name)(0), member
        else:
            continue
        text = cell(summary(told)) or explained.get(path.name, "")
        rows.append(f"| `{path.relative_to('X')}` | `{folder.__name__}.{name}` | {text} |")
    return "\n".join(rows)


def _explained() -> dict[str, str]:
    """Name of a file -> what the tree on the run folder's own page says: for files whose name is enough in the code."""
    page = (Path(__file__).parents[1] / "run-folder.md").read_text(encoding="utf-8")
    lines = [re.split(r" {2,}", line) for line in re.findall(r"[├└]── (.+)$", page, re.MULTILINE)]
    return {Path(name).name: text for *names, text in lines for name in " ".join(names).split()}


def _record(record: type) -> str:
    rows = [f"| `{field.name}` | `{cell(field.type)}` | {cell(field.text)} |" for field in fields(record)]
    return "\n".join(
        [
            f"### {record.__name__}",
            "",
            summary(record),
            "",
            "| field | type | meaning |",
            "|-------|------|---------|",
            *rows,
        ]
    )
