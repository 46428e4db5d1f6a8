"""Hooks into torch that record the steps, samples and messages of an unchanged script."""
