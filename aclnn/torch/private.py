"""PyTorch's interfaces that are none of its documented ones: all that the operators and the backend use of them.

Each has what to do once a version of PyTorch is without it. They are imported when they are asked for: those of Dynamo
take longer than everything else here.

>>> from aclnn.torch.private import FakeTensorMode
>>> FakeTensorMode.__name__
'FakeTensorMode'
"""

from __future__ import annotations

import importlib
from typing import Any, NamedTuple

import torch


class Interface(NamedTuple):
    """Places where a name is, the newest first, and what to do when it is in none of them.

    What is optional is None then, which those who ask for it know to do without.
    """

    places: tuple[str, ...]
    remedy: str
    is_optional: bool = False


INTERFACES = {
    # Graphs: Dynamo's, and those that AOTAutograd makes of them.
    "aot_autograd": Interface(
        ("torch._dynamo.backends.common:aot_autograd",),
        "call functorch.compile.aot_module_simplified, which it wraps",
    ),
    "compile_lock": Interface(
        ("torch._dynamo.convert_frame:compile_lock",),
        "take a lock of our own: notes on nodes are global, and threads that trace mix them up",
    ),
    "default_partition": Interface(
        ("functorch.compile:default_partition",), "let aot_autograd choose the partitioner"
    ),
    "min_cut_rematerialization_partition": Interface(
        ("functorch.compile:min_cut_rematerialization_partition",),
        "let aot_autograd choose the partitioner",
    ),
    "make_boxed_func": Interface(
        ("functorch.compile:make_boxed_func",), "set _boxed_call of a function that takes a list"
    ),
    "make_fx": Interface(
        ("torch.fx.experimental.proxy_tensor:make_fx",), "capture by torch.export.export instead"
    ),
    "BoxedCodeGen": Interface(
        ("torch.fx.graph:_BoxedCodeGen",), "use make_boxed_func: it keeps inputs alive", True
    ),
    "LazyGraphModule": Interface(
        ("torch.fx._lazy_graph_module:_LazyGraphModule",),
        "call GraphModule.recompile, which is enough where graphs are not lazy",
    ),
    "sort_nodes": Interface(
        (
            "torch.fx.passes.tools_common:stable_topological_sort",
            "torch.fx.passes.tools_common:legalize_graph",
        ),
        "sort nodes by their operands",
    ),
    "CapabilityBasedPartitioner": Interface(
        ("torch.fx.passes.infra.partitioner:CapabilityBasedPartitioner",),
        "divide graphs as functorch.compile's backends do",
    ),
    "OperatorSupportBase": Interface(
        ("torch.fx.passes.operator_support:OperatorSupportBase",), "see CapabilityBasedPartitioner"
    ),
    "fuse_by_partitions": Interface(
        ("torch.fx.passes.utils.fuser_utils:fuse_by_partitions",),
        "split a graph by torch.fx.passes.split_module",
    ),
    # The cache of graphs, which is optional as a whole.
    "functorch_config": Interface(
        ("torch._functorch:config",), "keep no graphs for other processes", True
    ),
    "SerializableCompiler": Interface(
        (
            "torch._functorch.aot_autograd:SerializableAOTDispatchCompiler",
            "torch._functorch._aot_autograd.schemas:SerializableAOTDispatchCompiler",
        ),
        "see functorch_config",
        True,
    ),
    "OutputCode": Interface(
        ("torch._inductor.output_code:OutputCode",), "see functorch_config", True
    ),
    "BypassCache": Interface(
        ("torch._functorch._aot_autograd.autograd_cache:BypassAOTAutogradCache",),
        "see functorch_config",
        True,
    ),
    "GraphPickler": Interface(
        ("torch.fx._graph_pickler:GraphPickler",), "see functorch_config", True
    ),
    "PickleOptions": Interface(("torch.fx._graph_pickler:Options",), "see functorch_config", True),
    "ShapeEnv": Interface(
        ("torch.fx.experimental.symbolic_shapes:ShapeEnv",), "see functorch_config", True
    ),
    # Values without memory.
    "FakeTensor": Interface(
        ("torch._subclasses.fake_tensor:FakeTensor",), "use tensors of the device meta"
    ),
    "FakeTensorMode": Interface(
        ("torch._subclasses.fake_tensor:FakeTensorMode",), "use tensors of the device meta"
    ),
    "free_unbacked_symbols": Interface(
        ("torch.fx.experimental.symbolic_shapes:free_unbacked_symbols",),
        "leave graphs whose sizes depend on data to PyTorch as a whole",
    ),
    "suggest_memory_format": Interface(
        ("torch._prims_common:suggest_memory_format",), "compare strides with is_contiguous"
    ),
    "tree_leaves": Interface(
        ("torch.utils._pytree:tree_leaves", "torch.utils.pytree:tree_leaves"),
        "walk tuples, lists and dicts",
    ),
    "tree_map_only": Interface(
        ("torch.utils._pytree:tree_map_only",), "walk tuples, lists and dicts"
    ),
    "tree_map": Interface(("torch.utils._pytree:tree_map",), "walk tuples, lists and dicts"),
    "tree_flatten": Interface(
        ("torch.utils._pytree:tree_flatten",), "walk tuples, lists and dicts"
    ),
    "tree_unflatten": Interface(
        ("torch.utils._pytree:tree_unflatten",), "build tuples, lists and dicts"
    ),
    # The dispatcher and its modes.
    "OperatorBase": Interface(("torch._ops:OperatorBase",), "take the type of torch.ops.aten.add"),
    "OpOverload": Interface(
        ("torch._ops:OpOverload",), "take the type of torch.ops.aten.add.Tensor"
    ),
    "disable_current_modes": Interface(
        ("torch.utils._python_dispatch:_disable_current_modes",),
        "compute constants before AOTAutograd traces",
    ),
    "DisableAutocast": Interface(
        ("torch._C:_DisableAutocast",), "use torch.autocast(device, enabled=False)"
    ),
    "AutoDispatchBelowAutograd": Interface(
        ("torch._C:_AutoDispatchBelowAutograd",), "register gradients by torch.library"
    ),
    "after_autograd_keyset": Interface(
        ("torch._C:_after_autograd_keyset",), "register gradients by torch.library"
    ),
    "peek_interpreter_stack": Interface(
        ("torch._C._functorch:peek_interpreter_stack",), "give torch.func.vjp its own kernels"
    ),
    "TransformType": Interface(
        ("torch._C._functorch:TransformType",), "see peek_interpreter_stack"
    ),
    "enable_single_level_autograd_function": Interface(
        ("torch._functorch.utils:enable_single_level_autograd_function",),
        "see peek_interpreter_stack",
    ),
    # A device of its own.
    "DispatchKey": Interface(("torch._C:DispatchKey",), "name keys as torch.library does"),
    "DispatchKeySet": Interface(
        ("torch._C:DispatchKeySet",), "register kernels with_keyset, and take the set that they get"
    ),
    "ExcludeDispatchKeyGuard": Interface(
        ("torch._C:_ExcludeDispatchKeyGuard",), "use torch.autocast(device, enabled=False)"
    ),
    "TorchDispatchMode": Interface(
        ("torch.utils._python_dispatch:TorchDispatchMode",),
        "record calls in the kernels of the device",
    ),
    "len_torch_dispatch_stack": Interface(
        ("torch._C:_len_torch_dispatch_stack",), "take no short ways while a mode may be on"
    ),
    "dispatch_get_all_op_names": Interface(
        ("torch._C:_dispatch_get_all_op_names",), "walk torch.ops.aten"
    ),
    "dispatch_has_kernel": Interface(
        ("torch._C:_dispatch_has_kernel_for_dispatch_key",),
        "ask OpOverload.has_kernel_for_dispatch_key",
    ),
    "get_privateuse1_backend_name": Interface(
        ("torch._C:_get_privateuse1_backend_name",), "look for a module torch.privateuseone"
    ),
    "register_device_module": Interface(
        ("torch:_register_device_module",), "set the attribute of the module torch"
    ),
    "accelerator_getStream": Interface(
        ("torch._C:_accelerator_getStream",), "use torch.accelerator.current_stream"
    ),
    "accelerator_setStream": Interface(
        ("torch._C:_accelerator_setStream",), "use torch.accelerator.set_stream"
    ),
    "get_default_generator": Interface(
        ("torch._C:_get_default_generator",), "make a torch.Generator of the device", True
    ),
    "DeviceType": Interface(
        ("torch._C._autograd:DeviceType",), "PrivateUse1 is 20 among the types of devices", True
    ),
    "LegacyStorage": Interface(
        ("torch.storage:_LegacyStorage",), "give no types such as torch.npu.FloatStorage"
    ),
    "register_backend_for_device": Interface(
        ("torch._inductor.codegen.common:register_backend_for_device",),
        "let inductor say itself that it knows no such device",
    ),
    "DeviceInterface": Interface(
        ("torch._dynamo.device_interface:DeviceInterface",), "register no interface of the device"
    ),
    "register_interface_for_device": Interface(
        ("torch._dynamo.device_interface:register_interface_for_device",), "see DeviceInterface"
    ),
}


def module_of(name: str) -> str:
    """The module where an interface is, or was in the version of PyTorch that is the newest."""
    return INTERFACES[name].places[0].partition(":")[0]


def __getattr__(name: str) -> Any:
    """An interface, looked up once."""
    if name not in INTERFACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    interface = INTERFACES[name]
    for index in interface.places:
        module, _, attribute = index.partition(":")
        try:
            found = getattr(importlib.import_module(module), attribute)
        except (ImportError, AttributeError):
            continue
        globals()[name] = found
        return found
    if interface.is_optional:
        return None
    raise ImportError(
        f"PyTorch {torch.__version__} has no {interface.places[0].replace(':', '.')}, which aclnn.torch needs. "
        f"Another version may; in aclnn/torch/private.py the way around it is: {interface.remedy}",
        name=module,
    )
