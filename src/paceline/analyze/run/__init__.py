"""One run, from the spans of its ranks.

    RunTrace ─▶ messages ─▶ run_timeline ─▶ ledger, message_table, arrivals, critical_path, ... ─▶ run_summary

messages         every message, matched over its ranks: issued, gathered, completed
run_timeline     the window of a rank, divided into segments of one ledger kind each
ledger           the timeline summed by kind; so_far: of a run in progress
efficiencies     the efficiency tree, from a replay with instant messages
arrivals         stragglers: the last rank of each collective, how often, in which activity
critical_path    the chain of work and messages that determines the duration of the steps
message_table    messages by operation and size; message_matrix: by sender and receiver
run_summary      all of these in one pass
slow_causes      causes of longer steps, by cost
cpu_time         real, user and sys time from the counters; cpu_sentence: why they differ
"""
