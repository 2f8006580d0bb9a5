def from_dlpack(obj):
    raise BufferError("not yet")
def to_dlpack(a):
    raise BufferError("not yet")
