"""A study file with its overrides -> a Study, or one error that lists all mistakes."""
