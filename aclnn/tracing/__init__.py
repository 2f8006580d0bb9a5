"""Tracing: what a function does with arrays is recorded, to become one plan."""
