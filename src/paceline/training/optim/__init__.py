"""Optimizers, learning-rate schedules and averages."""
