"""The operators' handles, which share compiled calls between all layers."""

from aclnn.api import verbose

# All plans are made for handles; this reads what the environment says of plans.
from aclnn.compiler import settings as settings
from aclnn.compiler._plan_cache import OperatorHandle
from aclnn.compiler._plan_cache import cache_info as cache_info
from aclnn.compiler._plan_cache import clear_cache as clear_cache
from aclnn.operators import REGISTRY

HANDLES = {
    name: OperatorHandle(operator, number)
    for number, (name, operator) in enumerate(REGISTRY.items())
}

verbose.start()
