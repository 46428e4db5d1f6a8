"""How ranks come to exist, are watched, and end: one file per launcher, what they share beside it."""
