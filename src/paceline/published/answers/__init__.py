"""Open questions of published studies, and the verdict that our results give to each."""
