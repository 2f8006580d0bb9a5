"""From a planned graph to a schedule of steps."""
