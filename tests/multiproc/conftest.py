from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from ranks import Ranks, SpawnedRanks


class Groups:
    def __init__(self) -> None:
        self._groups: dict[int, Ranks] = {}

    def __getitem__(self, size: int) -> Ranks:
        if size not in self._groups:
            self._groups[size] = SpawnedRanks(size)
        return self._groups[size]

    def close(self) -> None:
        for group in self._groups.values():
            group.close()


@pytest.fixture(scope="session")
def groups() -> Iterator[Groups]:
    """Live ranks by world size: `groups[3].run("case", ...)`."""
    made = Groups()
    yield made
    made.close()


@pytest.fixture(scope="session")
def digits_folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    from paceline.data.store import prepare
    from paceline.records.settings import DataSettings

    cache = tmp_path_factory.mktemp("cache")
    return str(prepare(DataSettings(dataset="digits"), base=cache, cache=cache).folder)
