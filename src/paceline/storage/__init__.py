"""The files of study and run folders: their names, JSON records, Arrow streams and pulses."""
