"""Which of our points and figures belong to a cell of a published table, and which cells disagree."""
