"""Text that shows itself: printed by a terminal, set as a card by a notebook."""

from __future__ import annotations

NOTEBOOK_WIDTH = 110
"""Characters of a line in a notebook's card."""


class ShownText:
    """A result that is read as text. Subclasses say what the text is."""

    __slots__ = ()

    def text(self, *, width: int = NOTEBOOK_WIDTH, color: bool = False) -> str:
        """The result as text of this width."""
        raise NotImplementedError

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        from paceline.report.notebook import text_card

        return text_card(self.text())
