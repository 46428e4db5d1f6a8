"""A study file with its overrides becomes a Study, or one error that lists every mistake."""
