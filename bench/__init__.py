"""Claims of speed and memory, each as a ratio against a named peer in one interleaved run."""
