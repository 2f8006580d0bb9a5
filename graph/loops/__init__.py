"""Loops of steps, and the tiles that they are cut into: what planner and schedule both need."""
