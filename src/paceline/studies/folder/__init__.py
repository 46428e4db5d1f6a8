"""What is read from a study folder: results, locks, progress."""
