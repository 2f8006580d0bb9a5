"""The runtime: programs in C arrays, the scheduler that runs them, the thread pool."""
