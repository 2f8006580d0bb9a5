"""CANN's acl layer: constants, dtypes, SoCs, statuses, tensors, device memory, streams."""
