"""A study for a proposal or a paper: figures without a browser, and its tables as Markdown, LaTeX or CSV.

content   what is said: tables, plots, captions          captions   what a figure needs to stand alone
drawing, style   a plot as SVG, PDF or PNG               markdown, tex, csv_tables   the rest as text
"""
