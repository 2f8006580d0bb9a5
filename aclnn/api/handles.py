"""The operators' handles, which share compiled calls between all layers."""

import threading

from aclnn.api import verbose

# All plans are made for handles; this reads what the environment says of plans.
from aclnn.compiler import settings as settings
from aclnn.compiler._plan_cache import OperatorHandle
from aclnn.compiler._plan_cache import cache_info as cache_info
from aclnn.compiler._plan_cache import clear_cache as clear_cache
from aclnn.operators import REGISTRY


class Handles(dict[str, OperatorHandle]):
    """Handles by operators' names, each made when it is first asked for; its number is its operator's
    place in the registry."""

    def __init__(self) -> None:
        super().__init__()
        self._places = {name: index for index, name in enumerate(REGISTRY)}
        self._making = threading.Lock()

    def __missing__(self, name: str) -> OperatorHandle:
        operator = REGISTRY[name]
        with self._making:  # an operator has one handle: it keeps the plans
            if name not in self:
                self[name] = OperatorHandle(operator, self._places[name])
        return self[name]


HANDLES = Handles()

verbose.start()
