"""What one rank does. `worker.py` is the entry of every rank, under every launcher."""
