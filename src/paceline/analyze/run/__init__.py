"""One run, from the spans of its ranks.

    RunTrace ─▶ messages ─▶ timeline ─▶ ledger, message_table, matrix, arrivals, critical_path, efficiencies ─▶ anatomy

messages.py        every message as its ranks together show it: issued, gathered, completed
timeline.py        a rank's window cut into segments, each of one kind of the ledger
ledger.py          the same summed by kind; so_far.py: of a run that is still on, piece by piece
replay.py          the run once more with instant messages
efficiencies.py    the efficiency tree, from that replay
arrivals.py        who comes last, how often, doing what
critical_path.py   what the length of the steps hangs on
message_table.py   messages by operation and size; matrix.py, host_matrix.py: from whom to whom
anatomy.py         all of these from one pass
suspects.py        what made it slow, the costliest first
moves.py           how fast a rank moves, from its pulse
cpu_time.py        real, user and sys from the counters; cpu_sentence.py: why they differ
"""
