"""One handle for each operator, shared by all layers, so that they share plans."""

from aclnn.calls import verbose
from aclnn.operators import REGISTRY

# All plans are made for handles; this reads what the environment says of plans.
from aclnn.planning import settings as settings
from aclnn.planning._plan import OperatorHandle
from aclnn.planning._plan import cache_info as cache_info
from aclnn.planning._plan import clear_cache as clear_cache

HANDLES = {
    name: OperatorHandle(operator, number)
    for number, (name, operator) in enumerate(REGISTRY.items())
}

verbose.start()
