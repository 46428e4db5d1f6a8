"""Settings of a study that differ from the shipped file of its name, because an option or a file overrides them."""

from __future__ import annotations

from paceline.records.study import Study
from paceline.studies.load.load import load_study
from paceline.studies.load.source import shipped_files
from paceline.studies.load.toml_text import settings_text


def overridden(study: Study) -> dict[str, tuple[str, str]]:
    """Path of a setting -> its value here and in the shipped file of this size, as TOML; empty for other studies."""
    if study.script or study.name not in {path.stem for path in shipped_files()}:
        return {}
    here, there = settings_text(study), settings_text(load_study(study.name, size=study.size or None).study)
    paths = dict.fromkeys((*here, *there))
    return {path: (here.get(path, ""), there.get(path, "")) for path in paths if here.get(path) != there.get(path)}
