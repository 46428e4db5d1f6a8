"""Analysis: records in, records out. Reads no file, draws nothing, prints nothing.

    stats ◀─ run ◀─ points ◀─ learning ◀─ study ◀─ compare          each imports only those to its left

stats/      intervals, tests of two samples, equivalence
run/        one run from its traces: messages, ledger, matrix, stragglers, critical path, causes
points/     the points of a study: timing, series, speed-ups, median runs, scaling laws
learning/   accuracies and curves: stable epoch, target, overfitting, gradient noise
study/      one row per point, effects, phases and findings
compare/    two studies or runs: matched points, significant changes, their causes
views/      one run as others draw or read it: the report's timeline, tracks of a viewer, a graph of tasks
"""
