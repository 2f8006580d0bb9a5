"""What holds for the whole suite."""

from hypothesis import settings

# Examples are not timed: the first one of a test imports what the others find there, and machines
# are busy.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
