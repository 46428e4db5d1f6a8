"""Sentences made of values: records carry codes and figures, and become words here, at the very end."""
