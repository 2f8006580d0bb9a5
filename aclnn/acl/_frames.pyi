from collections.abc import Callable
from typing import Any, TypeVar, overload

F = TypeVar("F", bound=Callable[..., Any])

def leave_out(error: BaseException) -> None: ...
@overload
def boundary(function: F) -> F: ...
@overload
def boundary(*, kind: type[BaseException]) -> Callable[[F], F]: ...
