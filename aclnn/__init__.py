"""aclnn on the CPU."""
