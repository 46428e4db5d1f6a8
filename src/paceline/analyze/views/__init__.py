"""One run as others draw or read it.

picture.py   what the report's timeline shows, small enough for a page; bundles.py, message_rows.py: how it gets there
tracks.py    spans as viewers draw them
graph.py     computation and messages as nodes of a graph
"""
