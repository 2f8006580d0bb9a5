"""Executors: a compiled call bound to memory, and its launch."""
