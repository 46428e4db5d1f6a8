"""Strategies: one file each, one contract (`base.py`)."""
