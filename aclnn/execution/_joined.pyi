from typing import Any

from aclnn.compiler._compiled_call import CompiledCall
from aclnn.execution._executor import aclOpExecutor
from aclnn.execution._operand import Headers

def join_executor(
    plan: CompiledCall,
    replan: Any,
    origin: str,
    arrays: Any,
    numbers: Any = (),
    nest: Any = None,
    ties: Any = None,
    kind: Any = None,
    given: Any = None,
    description: Any = None,
    takes: Any = None,
    names: Any = None,
) -> aclOpExecutor: ...
def pack_numbers(numbers: Any) -> bytes: ...
def run_on(
    executor: aclOpExecutor,
    inputs: Headers,
    out: Any,
    kind: Any,
    held: Headers | None = None,
    numbers: bytes | None = None,
    workspace: Any = None,
) -> Any: ...
def outputs_that_meet(outs: Any) -> list[tuple[int, int]]: ...
def takes_outputs(executor: aclOpExecutor, outs: Any) -> bool: ...
