"""Analysis: records in, records out. Reads no file, draws nothing, prints nothing.

stats.py        figures over repeats: medians, ratios and their intervals
timing.py       figures of one run: which epochs are timed, samples per second
ledger.py       spans of all ranks -> seconds by kind, for each rank
losses.py       what each part of the loop lost against the baseline
traffic.py      what the ranks said to each other
median_run.py   the three above, of a point's median run
series.py       which points make a line over ranks, and what they are measured against
compare.py      series side by side at equal ranks
results.py      runs -> one row per point
findings.py     rows -> what their reader has to know
"""
