"""Verifiers: what makes graphs, plans and schedules well formed."""
