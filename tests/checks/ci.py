"""Whether the suite runs in continuous integration, where a test that cannot run is a failure."""

import os


def in_ci() -> bool:
    """Whether `CI` is set to a true value."""
    return os.environ.get("CI", "").lower() in {"1", "true", "yes"}
