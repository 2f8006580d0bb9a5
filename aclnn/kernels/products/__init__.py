"""Matrix products: bodies, and the record of the kernel."""
