"""Plots as Plotly figures, and the colours they share."""
