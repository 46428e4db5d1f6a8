"""Analysis: records in, records out. Reads no file, draws nothing, prints nothing.

stats.py      figures over repeats: medians, ratios and their intervals
ledger.py     spans of all ranks -> seconds by kind, for each rank
results.py    runs -> one row per point
findings.py   rows -> what their reader has to know
"""
