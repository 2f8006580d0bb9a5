"""From a planned graph to a schedule: loop nests, tiles, steps."""
