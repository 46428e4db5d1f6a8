r"""Paper as LaTeX: report-body.tex to \input into a document of one's own, and report.tex, which is one already.

A document that takes the body needs the packages booktabs and graphicx, fonts in T1, and where its folder is another
one, \newcommand{\pacelinefigures}{runs/NAME/figures} before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from paceline.reporting.paper.content import Paper, Plot
from paceline.reporting.tables.point_tables import Table
from paceline.reporting.wording.characters import printable
from paceline.reporting.wording.verdict_words import ShownFinding

_WRITTEN = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "`": r"\textasciigrave{}",
    "'": r"\textquotesingle{}",
    # After the end of a row these would be an argument of it.
    "[": "{[}",
    "]": "{]}",
    "*": "{*}",
    "–": "--",
    "—": "---",
    "×": r"$\times$",
    "÷": r"$\div$",
    "±": r"$\pm$",
    "−": "$-$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "→": r"$\rightarrow$",
    "·": r"\textperiodcentered{}",
    "…": r"\ldots{}",
    "†": r"\textdagger{}",
    "µ": r"\textmu{}",
    "μ": r"\textmu{}",
    "°": r"\textdegree{}",
    "²": r"\textsuperscript{2}",
    "³": r"\textsuperscript{3}",
    "’": "'",
    "\u00a0": "~",
    "\0": "{}",  # put in below: no printable text has one
}
_LIGATURE = re.compile("([-,])(?=\\1)")
"""Two of these would be set as one: a dash, a quotation mark."""
_LETTERS = range(0xC0, 0x100)
"""Of Western European languages: these every engine has."""


def escaped(text: str) -> str:
    """The text as LaTeX has it, on one line; a character that few fonts have is named by its number."""
    text = _LIGATURE.sub(r"\1\0", " ".join(printable(text).split()))
    return "".join(map(_written, text))


def _written(character: str) -> str:
    if character in _WRITTEN:
        return _WRITTEN[character]
    if " " <= character <= "~" or ord(character) in _LETTERS:
        return character
    return rf"\texttt{{U+{ord(character):04X}}}"


_MOST_COLUMNS = 7
"""A table with more is made as narrow as the page."""
_DOCUMENT = r"""\documentclass{article}
\usepackage[T1]{fontenc}
\usepackage[utf8]{inputenc}
\usepackage{textcomp}
\usepackage[margin=25mm]{geometry}
\usepackage{booktabs}
\usepackage{graphicx}
\begin{document}
\input{report-body}
\end{document}
"""


def document() -> str:
    """A document of nothing but the body beside it."""
    return _DOCUMENT


def body(paper: Paper, figures: Mapping[str, str]) -> str:
    """The report as LaTeX without a preamble; `figures` has the file name of each plot that was drawn, by its name."""
    return "\n\n".join(_parts(paper, figures)) + "\n"


def _parts(paper: Paper, figures: Mapping[str, str]) -> Iterator[str]:
    report = paper.report
    yield r"\providecommand{\pacelinefigures}{figures}"
    yield rf"\section*{{{escaped(report.title)}}}"
    if report.question:
        yield rf"\emph{{{escaped(report.question)}}}"
    yield rf"\textbf{{{escaped(report.verdict)}}}"
    if report.remarks:
        yield escaped(" ".join(report.remarks))
    for plot in paper.plots:
        if plot.name in figures:
            yield _figure(plot, figures[plot.name])
    yield table_text("scaling", paper.table, paper.table_caption)
    if report.findings:
        yield _findings(report.findings)
    for heading, sentences in paper.sentences:
        yield rf"\subsection*{{{heading}}}"
        yield "\n".join((r"\begin{itemize}", *(rf"\item {escaped(each)}" for each in sentences), r"\end{itemize}"))
    for name, table in paper.others:
        yield table_text(name, table, f"{table.caption}.")


def _figure(plot: Plot, file: str) -> str:
    return "\n".join(
        (
            r"\begin{figure}[htbp]",
            r"\centering",
            rf"\includegraphics{{\pacelinefigures/{file}}}",
            rf"\caption{{{escaped(plot.caption)}}}",
            rf"\label{{fig:{plot.name}}}",
            r"\end{figure}",
        )
    )


def table_text(name: str, table: Table, caption: str) -> str:
    """A table with its caption above it, and its footnotes at the end of that."""
    notes = " ".join(note if note.endswith(".") else f"{note}." for note in table.footnotes)
    alignment = "".join("l" if column in table.words else "r" for column in table.columns)
    wide = len(table.columns) > _MOST_COLUMNS
    rows = [[cell.text for cell in row] for row in table.rows]
    return "\n".join(
        (
            r"\begin{table}[htbp]",
            r"\centering",
            rf"\caption{{{escaped(f'{caption} {notes}')}}}",
            rf"\label{{tab:{name}}}",
            *([r"\resizebox{\linewidth}{!}{%"] if wide else []),
            rf"\begin{{tabular}}{{{alignment}}}",
            r"\toprule",
            _row(table.columns),
            r"\midrule",
            *(_row(row) for row in rows),
            r"\bottomrule",
            r"\end{tabular}" + ("}" if wide else ""),
            r"\end{table}",
        )
    )


def _row(cells: Sequence[str]) -> str:
    return " & ".join(map(escaped, cells)) + r" \\"


def _findings(findings: Sequence[ShownFinding]) -> str:
    items = []
    for finding in findings:
        about = f" ({finding.about})" if finding.about else ""
        more = " ".join(filter(None, (f"{finding.summary}{about}", finding.cause, finding.remedy)))
        items.append(rf"\item \textbf{{{escaped(finding.severity)}:}} {escaped(more)}")
    return "\n".join((r"\begin{itemize}", *items, r"\end{itemize}"))
