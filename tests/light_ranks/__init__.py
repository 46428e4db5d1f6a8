"""Ranks without torch, for tests of launchers."""
