"""Verifiers: whether what others made is right, by code of their own."""
