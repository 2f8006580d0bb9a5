"""What CANN calls acl: its numbers, dtypes, products and statuses, tensors, device memory, streams."""
