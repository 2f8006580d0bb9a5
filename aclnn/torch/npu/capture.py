"""Captured graphs: ``torch.npu.NPUGraph``, ``graph``, task groups, and what replays them.

A capture records the calls of operators that are made below it, with their tensors. They run, since others need what
they give; what they wrote to memory of before is put back at the end, so that a capture changes nothing, as on an NPU.
A replay makes the calls again, and copies their results to the memory of the recorded ones.
"""

from __future__ import annotations

import contextlib
import gc
import operator
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from aclnn.torch.npu import graphed
from aclnn.torch.npu.refusals import checked
from aclnn.torch.private import AutoDispatchBelowAutograd, TorchDispatchMode, tree_leaves, tree_map

CAPTURED = 107027  # ACL_ERROR_RT_STREAM_CAPTURED
KEPT = 16  # graphs that the report has
MODES = ("global", "thread_local", "relaxed")
aten = torch.ops.aten
# Memory that a call fills later, or another already has.
_EMPTY = {
    "aten::empty",
    "aten::empty_strided",
    "aten::empty_like",
    "aten::new_empty",
    "aten::new_empty_strided",
}
_recording: list[Recorder] = []
PLANS: list[Plan] = []


def tensors_in(*arguments: Any) -> list[torch.Tensor]:
    return [one for one in tree_leaves(arguments) if isinstance(one, torch.Tensor)]


@dataclass
class Call:
    """A recorded call, and the results whose memory replays write."""

    op: Any
    args: Sequence[Any]
    named: dict[str, Any]
    results: Any
    seen: Any = (
        None  # arguments and results as the program has them, which may change their shape later
    )
    is_view: bool = False

    def run(self) -> None:
        if self.is_view:
            return
        made = self.op(*self.args, **self.named)
        for old, new in zip(tensors_in(self.results), tensors_in(made), strict=True):
            if new is not old and new.data_ptr() != old.data_ptr():
                old.copy_(new)

    def replaced(self, names: dict[str, Any]) -> None:
        """Give arguments other values, by name."""
        schema = [one.name for one in self.op._schema.arguments]
        if unknown := sorted(set(names) - set(schema)):
            raise RuntimeError(
                f"{self.op} has no argument {unknown[0]!r}; those there are: {', '.join(schema)}"
            )
        positions = {name: index for index, name in enumerate(schema)}
        args = list(self.args)
        for name, value in names.items():
            if positions[name] < len(args):
                args[positions[name]] = value
            else:
                self.named[name] = value
        self.args = args


class Recorder(TorchDispatchMode):
    """Records calls; what they write that was there before is put back when it ends."""

    def __init__(self, native: Any):
        super().__init__()
        self.native = native
        self.calls: list[Call] = []
        self._own: set[int] = set()  # storages of results
        self._before: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def __torch_dispatch__(self, op: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        named = dict(kwargs or {})
        on_npu = any(one.is_npu for one in tensors_in(args, named))
        self._check(op, args, named, on_npu)
        self._keep_written(op, args, named)
        made = op(*args, **named)
        results = tensors_in(made)
        if not on_npu and not any(one.is_npu for one in results):
            return made
        if not _is_view(op):
            values = {id(one) for one in tensors_in(args, named)}
            self._own.update(_key(one) for one in results if id(one) not in values and one.is_npu)
        arguments, names, kept = tree_map(_frozen, (tuple(args), named, made))
        self.calls.append(Call(op, arguments, names, kept, (args, named, made), _is_view(op)))
        return made

    def _check(self, op: Any, args: Any, named: Any, on_npu: bool) -> None:
        to_host = (
            op is aten._to_copy.default and str(named.get("device", "npu")).startswith("cpu")
        ) or (op is aten.copy_.default and args[0].is_cpu)
        depends = {torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape} & set(op.tags)
        if on_npu and (to_host or depends):
            raise checked(
                f"{op} needs results on the host, and a stream that is captured runs nothing: error code is {CAPTURED}"
            )

    def _keep_written(self, op: Any, args: Any, named: Any) -> None:
        """Copies of the memory that a call writes and that was there before."""
        arguments = (
            dict(zip([one.name for one in op._schema.arguments], args, strict=False)) | named
        )
        for argument in op._schema.arguments:
            if argument.alias_info is None or not argument.alias_info.is_write:
                continue
            for one in tensors_in(arguments.get(argument.name)):
                if one.is_npu and _key(one) not in self._own and _key(one) not in self._before:
                    whole = torch.empty(0, dtype=torch.uint8, device=one.device).set_(
                        one.untyped_storage()
                    )
                    self._before[_key(one)] = whole, self.native.alias(whole).clone()

    def finish(self) -> None:
        """Put back what was there before."""
        for whole, before in self._before.values():
            self.native.alias(whole).copy_(before)
        self._before.clear()


def _key(one: torch.Tensor) -> int:
    return int(one.untyped_storage()._cdata)


def _frozen(one: Any) -> Any:
    """The tensor as it is now: others may give it another shape."""
    return one.detach() if isinstance(one, torch.Tensor) else one


def _is_view(op: Any) -> bool:
    """Whether a call computes nothing: its results have memory that is there."""
    if torch.Tag.inplace_view in op.tags:
        return True
    returns = op._schema.returns
    return bool(returns) and all(
        one.alias_info is not None and not one.alias_info.is_write for one in returns
    )


@contextlib.contextmanager
def _states_kept(native: Any, count: int) -> Iterator[None]:
    """Random numbers that a capture draws are drawn again."""
    states = [native.default_generator(k).get_state() for k in range(count)]
    try:
        yield
    finally:
        for k, state in enumerate(states):
            native.default_generator(k).set_state(state)


@dataclass
class Plan:
    """A captured graph's calls, and executors that would do them."""

    calls: int
    module: Any
    names: list[str] = field(default_factory=list)
    _text: str = ""  # made once: compiling takes the module apart

    def __str__(self) -> str:
        self._text = self._text or self._described()
        return self._text

    def _described(self) -> str:
        from aclnn.torch.dynamo import Compiler, Options
        from aclnn.torch.explanation import Explanation

        if self.module is None:
            return f"{self.calls} calls: {', '.join(self.names)}"
        found = Explanation()
        Compiler(Options.of({"take": "all"}), found)._compiled(self.module)
        return f"{self.calls} calls; as executors: {found}"


def _plan_of(native: Any, calls: Sequence[Call]) -> Plan:
    """The recorded calls as a graph. One that writes its arguments is a list of calls only."""
    names = [str(one.op) for one in calls if not one.is_view]
    graph = torch.fx.Graph()
    nodes: dict[int, Any] = {}
    made: list[Any] = []

    def node_of(one: Any) -> Any:
        if not isinstance(one, torch.Tensor):
            return one
        if id(one) not in nodes:
            nodes[id(one)] = graph.placeholder(f"arg{len(nodes)}_1")
            nodes[id(one)].meta["val"] = native.alias(one.detach()) if one.is_npu else one
        return nodes[id(one)]

    writes = [
        a.alias_info is not None and a.alias_info.is_write
        for one in calls
        for a in one.op._schema.arguments
    ]
    if any(writes) or any(one.op.namespace != "aten" for one in calls):
        return Plan(len(names), None, names)
    inner = {id(one) for call in calls for one in tensors_in(call.seen[2])}
    for one in tensors_in([call.seen[:2] for call in calls]):  # inputs come first
        if id(one) not in inner:
            node_of(one)
    for call in calls:
        args, named = tree_map(node_of, (tuple(call.seen[0]), dict(call.seen[1])))
        named.pop("device", None)
        node, results = graph.call_function(call.op, args, named), call.seen[2]
        node.meta["val"] = tree_map(
            lambda one: native.alias(one.detach()) if isinstance(one, torch.Tensor) else one,
            results,
        )
        made = [node]
        if isinstance(results, torch.Tensor):
            nodes[id(results)] = node
            continue
        made = []
        for index, one in enumerate(results):
            nodes[id(one)] = graph.call_function(operator.getitem, (node, index))
            nodes[id(one)].meta["val"] = native.alias(one.detach())
            made.append(nodes[id(one)])
    graph.output(tuple(made))
    return Plan(len(names), torch.fx.GraphModule(torch.nn.Module(), graph), names)


class TaskGroup:
    """A part of a graph, whose calls are replaced later."""

    def __init__(self, recorder: Recorder, begin: int):
        self.recorder, self.begin, self.end = recorder, begin, begin

    def replace(self, calls: Sequence[Call]) -> None:
        own = self.recorder.calls[self.begin : self.end]
        if [one.op for one in own] != [one.op for one in calls]:
            raise RuntimeError(
                f"the group has calls of {', '.join(str(one.op) for one in own)}, and is updated by "
                f"{', '.join(str(one.op) for one in calls) or 'none'}"
            )
        for mine, new in zip(own, calls, strict=True):
            mine.args, mine.named = new.args, new.named


def is_capturing() -> bool:
    """Whether calls are recorded."""
    return bool(_recording)


def parts(native: Any, count: int, streams: dict[str, Any]) -> dict[str, Any]:
    """Names of ``torch.npu`` for captures."""
    open_groups: list[TaskGroup] = []
    updates: list[tuple[TaskGroup, Recorder]] = []

    class NPUGraph:
        """Calls of operators that are recorded once and made again by `replay`."""

        def __new__(cls, keep_graph: bool = False) -> Any:
            return super().__new__(cls)

        def __init__(self, keep_graph: bool = False):
            self._recorder: Recorder | None = None
            self._done = False
            self._states = contextlib.ExitStack()
            self.auto_dispatch_capture = False

        def capture_begin(self, pool: Any = None, capture_error_mode: str = "global") -> None:
            if capture_error_mode not in MODES:
                raise RuntimeError(
                    f"Unknown capture error mode. Expected {', '.join(MODES)}, got {capture_error_mode}"
                )
            if _recording:
                raise RuntimeError("a graph is captured already: captures cannot be nested")
            if self._recorder is not None:
                raise RuntimeError("the graph is captured already; reset() it first")
            self._recorder = Recorder(native)
            self._states.enter_context(_states_kept(native, count))
            _recording.append(self._recorder)
            self._recorder.__enter__()

        def capture_end(self) -> None:
            if self._recorder is None or self._recorder not in _recording:
                raise RuntimeError("capture_end() without capture_begin()")
            self._recorder.__exit__(None, None, None)
            _recording.remove(self._recorder)
            open_groups.clear()
            self._recorder.finish()
            self._states.close()
            self._done = True
            if len(PLANS) < KEPT:
                PLANS.append(_plan_of(native, self._calls()))

        def _calls(self) -> list[Call]:
            if self._recorder is None or not self._done:
                raise RuntimeError("the graph has no captured calls: capture it first")
            return [one for one in self._recorder.calls if one.op._schema.name not in _EMPTY]

        def replay(self) -> None:
            if _recording:
                raise RuntimeError("a graph cannot be replayed while another is captured")
            with AutoDispatchBelowAutograd():
                for call in self._calls():
                    call.run()

        def reset(self) -> None:
            self._recorder, self._done = None, False

        def pool(self) -> tuple[int, int]:
            return id(self), 0

        def update(self, cpu_update_input: Sequence[dict[str, Any]]) -> None:
            """Give recorded calls of attention other lengths: one dict for all, or one for each."""
            if not self.auto_dispatch_capture:
                raise RuntimeError(
                    "update() needs a graph that was captured with auto_dispatch_capture=True"
                )
            taken = [one for one in self._calls() if one.op._schema.name.startswith(
                ("npu::npu_fused_infer_attention_score", "npu::npu_fusion_attention", "npu::npu_incre_flash"))]  # fmt: skip
            arguments = list(cpu_update_input)
            if len(arguments) == 1:
                arguments *= len(taken)
            if len(arguments) != len(taken):
                raise RuntimeError(
                    f"cpu_update_input has {len(arguments)} entries, and {len(taken)} calls can be updated"
                )
            for call, names in zip(taken, arguments, strict=True):
                call.replaced(names)

        def debug_dump(self, debug_path: str) -> None:
            text = "\n".join(str(one.op) for one in self._calls())
            Path(os.fspath(debug_path)).write_text(text + "\n")

        def enable_debug_mode(self) -> None:
            """Nothing: what was recorded is always there."""

        def plan(self) -> str:
            """Text of the recorded calls, and of executors that would do them."""
            return str(_plan_of(native, self._calls()))

    class graph:  # noqa: N801  # its name in programs
        """Context that captures into a graph, on a stream of its own."""

        def __init__(self, npu_graph: Any, pool: Any = None, stream: Any = None, auto_dispatch_capture: bool = False,
                     capture_error_mode: str = "global", report_shape: bool = False):  # fmt: skip
            self.npu_graph, self.pool, self.mode = npu_graph, pool, capture_error_mode
            self.stream = stream if stream is not None else streams["Stream"]()
            npu_graph.auto_dispatch_capture = auto_dispatch_capture
            self._context: Any = None

        def __enter__(self) -> Any:
            gc.collect()
            self._context = streams["StreamContext"](self.stream)
            self._context.__enter__()
            try:
                self.npu_graph.capture_begin(self.pool, self.mode)
            except BaseException:
                self._context.__exit__(None, None, None)
                raise
            return self

        def __exit__(self, *details: object) -> None:
            self.npu_graph.capture_end()
            self._context.__exit__(*details)

    def group_begin(stream: Any) -> None:
        if not _recording:
            raise RuntimeError("graph_task_group_begin: no stream is captured")
        if open_groups:
            raise RuntimeError("graph_task_group_begin: a task group is open already")
        open_groups.append(TaskGroup(_recording[-1], len(_recording[-1].calls)))

    def group_end(stream: Any) -> TaskGroup:
        if not open_groups:
            raise RuntimeError("graph_task_group_end: no task group is open")
        group = open_groups.pop()
        group.end = len(group.recorder.calls)
        return group

    def update_begin(stream: Any, handle: Any) -> None:
        if not isinstance(handle, TaskGroup):
            raise RuntimeError(f"graph_task_update_begin: {handle!r} is no handle of a task group")
        if _recording or updates:
            raise RuntimeError(
                "graph_task_update_begin: a graph is captured, or a group updated, already"
            )
        recorder = Recorder(native)
        updates.append((handle, recorder))
        recorder.__enter__()

    def update_end(stream: Any) -> None:
        if not updates:
            raise RuntimeError("graph_task_update_end: no task group is updated")
        handle, recorder = updates.pop()
        recorder.__exit__(None, None, None)
        recorder.finish()
        handle.replace(recorder.calls)

    pool = object()
    handle: Callable[[], tuple[int, int]] = lambda: (id(pool), 0)  # noqa: E731
    return {
        "NPUGraph": NPUGraph, "graph": graph, "graph_pool_handle": handle, "make_graphed_callables": graphed.maker(lambda: torch.npu),
        "is_current_stream_capturing": is_capturing, "graph_task_group_begin": group_begin,
        "graph_task_group_end": group_end, "graph_task_update_begin": update_begin,
        "graph_task_update_end": update_end,
    }  # fmt: skip
