"""What changed from A to B.

matching.py          which points of two studies belong together
spent.py             what the steps of one run cost
two_samples.py       two independent samples: rank test, interval, what could have been seen at best
changes.py           what changed at one pair of points, and from which kinds of the ledger
side_figures.py      what each side measured by itself
message_changes.py   the same for messages; caveats.py: what a comparison cannot tell
"""
