__all__ = []
def resolve(a, n, w):
    raise ValueError
def is_alive(o):
    return True
