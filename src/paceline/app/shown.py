"""The base of results that are read as text, by `print` and in notebooks."""

from __future__ import annotations

NOTEBOOK_WIDTH = 110
"""Characters per line in a notebook."""


class ShownText:
    """A result that `print` writes as text and a notebook displays as a card."""

    __slots__ = ()

    @property
    def headline(self) -> str:
        """The result in one line."""
        raise NotImplementedError

    def text(self, *, width: int = NOTEBOOK_WIDTH, color: bool = False) -> str:
        """The result as text of at most `width` columns."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.headline}>"

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        from paceline.reporting.html.notebook import text_card

        return text_card(self.text())
