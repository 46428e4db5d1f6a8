"""The wording of the report: every sentence about an analysis, from its code and values."""
