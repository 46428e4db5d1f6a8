"""Traces in the formats of other programs: Trace Event JSON, Parquet, CSV, Chakra."""
