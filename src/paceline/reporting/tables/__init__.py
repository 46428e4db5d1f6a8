"""Tables of values: cells with figure, interval and unit."""
