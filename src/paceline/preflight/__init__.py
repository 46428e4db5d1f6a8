"""Checks before the first step: what every process has, against what the study requests."""
