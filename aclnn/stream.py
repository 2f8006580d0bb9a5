__all__ = []
def submit(stream, job):
    return 0
