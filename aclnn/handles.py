"""One handle for each operator, shared by all layers, so that they share plans."""

# All plans are made for handles; these read what the environment says of plans.
from aclnn import planning as planning
from aclnn import product as product
from aclnn import threads as threads
from aclnn import verbose
from aclnn._plan import OperatorHandle
from aclnn._plan import cache_info as cache_info
from aclnn._plan import clear_cache as clear_cache
from aclnn.operators import REGISTRY

HANDLES = {
    name: OperatorHandle(operator, number)
    for number, (name, operator) in enumerate(REGISTRY.items())
}

verbose.start()
