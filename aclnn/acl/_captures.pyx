"""The number of captures under way, for compiled code that looks at it before every launch."""

active = 0


def set_active(int count):
    """Note how many captures are under way."""
    global active
    active = count
