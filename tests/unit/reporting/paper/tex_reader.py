"""A strict reader of the LaTeX that Paceline writes: it knows what that may be made of, and refuses all else."""

from __future__ import annotations

import re

_TOKEN = re.compile(r"\\[A-Za-z]+\*?|\\.|[{}$&%#^_~]|[^\\{}$&%#^_~]+", re.DOTALL)
_NAMES = """
    providecommand pacelinefigures section* subsection* emph textbf texttt begin end centering caption label
    includegraphics resizebox linewidth toprule midrule bottomrule item ldots textbackslash textasciicircum
    textasciitilde textless textgreater textbar textquotedbl textasciigrave textquotesingle textperiodcentered
    textdagger textmu textdegree textsuperscript { } $ & # % _
"""
_COMMANDS = {f"\\{name}" for name in _NAMES.split()}
_MATHS = {r"\times", r"\div", r"\pm", "-", r"\leq", r"\geq", r"\rightarrow"}
_PLACES = ("figure", "table", "tabular", "itemize")


def read(text: str) -> list[list[str]]:
    """The rows of all tables as LaTeX source, a list of cells each; AssertionError where anything else is in it."""
    assert all(ord(character) < 0x100 for character in text), "a character that few fonts have"
    tokens = _TOKEN.findall(text)
    assert "".join(tokens) == text
    depth, places, rows, index = 0, [], [], 0
    cells = [""]
    while index < len(tokens):
        token = tokens[index]
        if token == "$":
            assert tokens[index + 1] in _MATHS and tokens[index + 2] == "$", tokens[index : index + 3]
            index += 3
            continue
        if token in (r"\begin", r"\end"):
            name = tokens[index + 2]
            assert tokens[index + 1] == "{" and tokens[index + 3] == "}" and name in _PLACES
            if token == r"\begin":
                places.append(name)
                # The columns of a table, and where a figure may float, are no text.
                index += 3 if name == "tabular" else 0
            else:
                assert places.pop() == name
            index += 4
            continue
        if token == "%":  # ends a line whose end would be a space
            assert tokens[index - 1] == "{" and tokens[index + 1].startswith("\n")
        elif token == "&" or token == r"\\":
            assert places[-1:] == ["tabular"]
            if token == "&":
                cells.append("")
            else:
                rows.append([cell.strip() for cell in cells])
                cells = [""]
        elif token.startswith("\\"):
            assert token in _COMMANDS, token
        else:
            assert token not in "#^_~", f"a bare {token}"
        depth += (token == "{") - (token == "}")
        assert depth >= 0
        if places[-1:] == ["tabular"] and token not in ("&", r"\\"):
            cells[-1] += "" if token in (r"\toprule", r"\midrule", r"\bottomrule") else token
        index += 1
    assert depth == 0 and places == []
    return rows
