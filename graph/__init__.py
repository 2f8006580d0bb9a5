"""Op-graphs of opaque compute nodes: build, plan, schedule, draw."""
