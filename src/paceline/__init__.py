"""Paceline: how training on more than one process scales, where the time goes, and what it costs."""

__version__ = "0.1.0"
