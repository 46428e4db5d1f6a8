"""Analysis: records in, records out. Reads no file, draws nothing, prints nothing.

run/       one run from its traces: messages, ledger, message table, matrix, stragglers, critical path, causes
study/     many runs: one row per point, with intervals, speed-up, efficiency and findings
changes/   two studies or runs: what changed, what of it is real, where it came from
views/     one run as others draw or read it: the report's timeline, tracks of a viewer, a graph of tasks
"""
