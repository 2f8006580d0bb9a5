"""ONNX, which is optional: models read as compiled functions."""
