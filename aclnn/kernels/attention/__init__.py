"""Attention: tiles in C, and the records of its kernels."""
