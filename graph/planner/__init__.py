"""Workspace planning: lifetimes, planners, and the plans they make."""
