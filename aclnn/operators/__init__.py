"""Operator declarations."""
