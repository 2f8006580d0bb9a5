"""One handle for each operator, shared by all layers, so that they share plans."""

from aclnn import verbose
from aclnn._plan import OperatorHandle
from aclnn.operators import REGISTRY

HANDLES = {
    name: OperatorHandle(operator, number)
    for number, (name, operator) in enumerate(REGISTRY.items())
}

verbose.start()
