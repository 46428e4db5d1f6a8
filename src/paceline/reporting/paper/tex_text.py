"""Text for LaTeX: every character stands for itself, under pdflatex with T1 fonts as under the newer engines."""

from __future__ import annotations

import re

from paceline.reporting.wording.characters import printable

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
