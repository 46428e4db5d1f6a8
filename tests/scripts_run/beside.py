"""Lies beside the script, which imports it."""

WIDTH = 8
