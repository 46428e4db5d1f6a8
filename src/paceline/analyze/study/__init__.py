"""A study, from its finished runs.

stats.py        figures over repeats: medians, ratios and their intervals
timing.py       figures of one run: which epochs are timed, samples per second
losses.py       what each part of the loop lost against the baseline
traffic.py      what the ranks said to each other
median_run.py   which run speaks for its point, and what its traces show
series.py       which points make a line over ranks, and what they are measured against
compare.py      series side by side at equal ranks
results.py      runs -> one row per point
watched.py      looks at a study that runs -> what is shown of it
findings.py     rows -> what their reader has to know; findings_given.py: from what the ranks were given
"""
