"""Settings of the whole suite."""

from __future__ import annotations

import os

from hypothesis import settings

# No deadline: a shared machine's pauses are not failures. The same examples every time in CI.
settings.register_profile("suite", deadline=None, max_examples=60, derandomize="CI" in os.environ)
settings.load_profile("suite")
