"""Passes over graphs, and the pipelines they form."""
