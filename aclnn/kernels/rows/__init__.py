"""Row-wise kernels: passes over rows, and records of the kernels."""
