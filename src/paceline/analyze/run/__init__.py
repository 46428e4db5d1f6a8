"""One run, from the spans of its ranks.

    RunTrace ─▶ messages ─▶ run_timeline ─▶ ledger, message_table, arrivals, critical_path, ... ─▶ run_summary

messages         every message as its ranks together show it: issued, gathered, completed
run_timeline     the window of a rank, divided into segments of one ledger kind each
ledger           the timeline summed by kind; so_far: of a run in progress, piece by piece
replay           the run simulated with messages that take no time
efficiencies     the efficiency tree, from that replay
arrivals         stragglers: the last rank of each collective, how often, in which activity
critical_path    the chain of work and messages that determines the duration of the steps
message_table    messages by operation and size; message_matrix, host_matrix: by sender and receiver
run_summary      all of these in one pass
slow_causes      causes of longer steps, the costliest first
moves            steps per second of a rank, from its pulse
cpu_time         real, user and sys time from the counters; cpu_sentence: why they differ
"""
