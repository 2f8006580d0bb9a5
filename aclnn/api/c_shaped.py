"""Arguments of C-shaped functions, made from arrays and numbers.

For the demo, the command line and tests; programs create tensors themselves.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from aclnn.acl._tensor import aclCreateScalar
from aclnn.acl.constants import ACL_FLOAT, ACLNN_SUCCESS
from aclnn.acl.errors import AclnnError, aclGetRecentErrMsg
from aclnn.api.tensors import tensor
from aclnn.operators import Entry, Parameter

NOT_GIVEN = -1.0  # how CANN says that a number is not given


def arguments(entry: Entry, values: Iterable[Any]) -> list[Any]:
    """The arguments of phase one: arrays become tensors, numbers scalars where these are wanted.

    >>> from aclnn.operators import ENTRIES
    >>> x = [1.0, 2.0]
    >>> made = arguments(ENTRIES["aclnnLeakyRelu"][1], (x, 0.5, x))
    >>> [type(argument).__name__ for argument in made]
    ['aclTensor', 'aclScalar', 'aclTensor']
    """
    return [_argument(p, value) for p, value in zip(entry.parameters, values, strict=True)]


def _argument(parameter: Parameter, value: Any) -> Any:
    if parameter.is_tensor:
        return tensor(value)
    if parameter.kind == "scalar":
        return aclCreateScalar(value, ACL_FLOAT)
    return NOT_GIVEN if value is None else value


def check(status: int) -> None:
    """Raise an AclnnError, unless it is success; what explains a program's call is left out.

    >>> import aclnn
    >>> check(aclnn.aclnnGeluGetWorkspaceSize(None, None)[2])
    Traceback (most recent call last):
    ...
    aclnn.AclnnError: aclnnGeluGetWorkspaceSize: self is null
    """
    if status != ACLNN_SUCCESS:
        message = aclGetRecentErrMsg() or ""
        raise AclnnError(status, message.partition("\n")[0])
