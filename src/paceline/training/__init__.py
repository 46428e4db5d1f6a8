"""Code of one rank. `worker.py` is the entry point of every rank, under every launcher."""
