from __future__ import annotations

import sys
from pathlib import Path

import pytest

# The benchmarks' ranks, into which faults are put, are put to the test here.
sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parent)]


@pytest.fixture(scope="session")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The digits, decoded."""
    from paceline.data.store import prepare
    from paceline.records.settings import DataSettings

    cache = tmp_path_factory.mktemp("cache")
    return prepare(DataSettings(dataset="digits"), base=cache, cache=cache).folder
