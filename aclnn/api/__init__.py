"""The three layers: C-shaped functions, functional forms, executors."""
