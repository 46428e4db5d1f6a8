"""A study for a proposal or a paper: figures without a browser, and its tables as Markdown, LaTeX or CSV.

content   what is said: tables, plots, captions          scaling_table, captions   the parts of it that are new
drawing, style   a plot as SVG, PDF or PNG               markdown, tex, tex_text, csv_tables   the rest as text
"""
