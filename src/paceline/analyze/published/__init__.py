"""Published tables beside our results: pure.

matching         which point belongs to a row, or why none does
measures         which of our figures belongs to a column, or why there is none
updates          one of them that takes the spans of every run
contradictions   printed cells that do not agree with one another
answers          open questions, by name, and the verdict that our results give
beside           all of it for one study
"""
