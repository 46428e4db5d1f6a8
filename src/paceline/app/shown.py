"""Results that show themselves: `print` writes their text, a notebook shows it as a card."""

from __future__ import annotations

NOTEBOOK_WIDTH = 110
"""Characters of a line in a notebook's card."""


class ShownText:
    """A result that is read as text."""

    __slots__ = ()

    @property
    def headline(self) -> str:
        """The result in one line."""
        raise NotImplementedError

    def text(self, *, width: int = NOTEBOOK_WIDTH, color: bool = False) -> str:
        """The result as text of this width."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.headline}>"

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        from paceline.reporting.html.notebook import text_card

        return text_card(self.text())
