"""Published studies: their tables, our results next to them, and their open questions.

tables/         the published figures as CSV, and what they mean as TOML
records         published tables, our cells beside them, contradictions, answers
table_files     tables/ -> records
folder_copy     the records in a study folder, so that a report depends on its folder alone
matching/       which point and which figure belong to a cell, or why none does
answers/        open questions by name, and the verdict that our results give
beside          all of this for one study
section/        the section of the report: tables, sentences, HTML, CSV and JSON

The other packages know `write_copy` (when a study starts), `published_names` (when it is checked), and what `rebuild`
calls. The report takes the section as an `AddedSection`.
"""
