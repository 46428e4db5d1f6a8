"""The contract: frozen dataclasses and the versioned files in which the stages meet.

Measuring, analysing and rendering share nothing but what is defined here.
"""
