"""Results made readable: one model, rendered as a page, as text and as JSON.

    StudyResults ── report_model ──▶ ReportModel ── html.render ──▶ report.html
    Picture     │  (of median runs)             └── text.render ──▶ the terminal
                └── json_object ──▶ --json

Nothing is measured or estimated here: what is shown was computed by `analyze`, and is chosen,
worded and formatted on the way.
"""
