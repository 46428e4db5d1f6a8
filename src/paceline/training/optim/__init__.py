"""Optimizers from settings; recipes for scale have their place here."""
