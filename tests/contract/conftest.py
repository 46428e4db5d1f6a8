"""Which cases of the contract are run on which launcher."""

from __future__ import annotations

import pytest

from contract.launchers import LAUNCHERS


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "variation: a further form of a case; left out where a launch takes seconds")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = [item for item in items if item.get_closest_marker("variation") and _launcher(item) in _SLOW]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


_SLOW = {name for name, kind in LAUNCHERS.items() if kind.slow}


def _launcher(item: pytest.Item) -> str:
    """Name of the launcher that a case is run on; empty for a test of something else."""
    return getattr(item, "callspec").params.get("kind", "") if hasattr(item, "callspec") else ""  # noqa: B009
