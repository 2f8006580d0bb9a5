"""The three ways to call an operator: C-shaped functions, functional forms, executors."""
