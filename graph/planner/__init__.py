"""The workspace planner: lifetimes, strategies, and plans."""
