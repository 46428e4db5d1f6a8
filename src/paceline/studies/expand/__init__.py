"""Expands a Study into points, each with the choices of its recipe. Pure."""
