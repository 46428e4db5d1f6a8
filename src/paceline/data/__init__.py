"""Fetching, checking and caching data sets: files in, mapped arrays out. No torch."""
