"""Reports of results: one model, rendered as a page, as text and as JSON.

    StudyResults ── report_model ──▶ ReportModel ── html ──▶ report.html
    RunPicture  │  (of median runs)             └── text ──▶ the terminal
                └── export ──▶ --json, CSV, Parquet

wording/    every sentence, made of codes and values       tables/     rows of cells with values
figures/    plots                                          html/       pages and notebooks, by templates/
text/       the terminal                                   export/     JSON, CSV and other tools' formats
paper/      LaTeX, Markdown and figures for publications

Nothing is measured or estimated here: `analyze` computes, this package chooses, words and formats.
"""
