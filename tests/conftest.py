"""What holds for the whole suite."""

import pytest
from hypothesis import HealthCheck, settings

import aclnn

# Examples are not timed: the first one of a test imports what the others find there, and machines
# are busy.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


@pytest.fixture
def threads_as_before():
    """A test may set how many threads there are."""
    before = aclnn.get_num_threads()
    yield
    aclnn.set_num_threads(before)
