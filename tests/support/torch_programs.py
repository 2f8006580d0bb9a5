"""Random programs of views, writes, reads, clones and copies: through the backend of torch.compile beside eager calls.

    python tests/support/torch_programs.py --count 10000 --seed 0

A program is a graph of PyTorch's functions and methods on two matrices and values made of them. It is made of a seed,
which the failures name. Results, the inputs afterwards, which tensors share memory, which have gradients, these, and
whether versions changed have to be those of the same graph run by itself.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import operator
import random
import time
import warnings

import torch
from operator_samples import strides_of
from torch.fx import Graph, GraphModule

ROWS, COLUMNS = 4, 3
NUMBERS = (0.5, -1.0, 2.0, 0.25)


class Program:
    """A graph, written step by step; `values` are nodes with example tensors."""

    def __init__(self, seed, tracked):
        self.rng = random.Random(seed)
        self.tracked = tracked
        self.graph = Graph()
        self.values = []
        self.read_only = set()  # nodes through which nothing is written
        for name in ("x", "y"):
            self._add(self.graph.placeholder(name), torch.rand(ROWS, COLUMNS) + 0.1)
        for _ in range(self.rng.randint(3, 12)):
            self.rng.choice(
                (self.view, self.view, self.compute, self.write, self.write, self.copy)
            )()
        count = self.rng.randint(1, 3)
        chosen = [self.rng.choice(self.values)[0] for _ in range(count)]
        self.graph.output(tuple(chosen))
        self.module = GraphModule(torch.nn.Module(), self.graph)

    def _add(self, node, example):
        self.values.append((node, example))

    def _method(self, name, *args, **named):
        tensors = torch.utils._pytree.tree_map(
            lambda one: one[1] if _is_value(one) else one, args, is_leaf=_is_value
        )
        nodes = torch.utils._pytree.tree_map(
            lambda one: one[0] if _is_value(one) else one, args, is_leaf=_is_value
        )
        made = getattr(tensors[0], name)(*tensors[1:], **named)
        node = self.graph.call_method(name, nodes, named)
        # Writes through what `unfold` gives are wrong in AOTAutograd alone.
        if name == "unfold" or (nodes[0] in self.read_only and _share_memory(made, tensors[0])):
            self.read_only.add(node)
        return node, made

    def _any(self):
        return self.rng.choice(self.values)

    def _like(self, example):
        """A value that broadcasts to another one."""
        found = [
            one for one in self.values
            if one[1].ndim <= example.ndim
            and all(a in (1, b) for a, b in zip(one[1].shape[::-1], example.shape[::-1], strict=False))
        ]  # fmt: skip
        return self.rng.choice(found) if found else None

    def view(self):
        value = self._any()
        example, rng = value[1], self.rng
        if example.ndim == 0:
            return self._add(*self._method("unsqueeze", value, 0))
        axis = rng.randrange(example.ndim)
        size = example.shape[axis]
        ways = [
            ("transpose", 0, -1), ("unsqueeze", axis), ("select", axis, rng.randrange(size)),
            ("narrow", axis, start := rng.randrange(size), rng.randint(1, size - start)),
            ("flatten",), ("squeeze",), ("detach",), ("view_as", value), ("movedim", 0, -1),
            ("unfold", axis, rng.randint(1, size), rng.randint(1, 2)),
        ]  # fmt: skip
        if example.ndim == 2:
            ways += [("t",), ("diagonal",), ("expand", (2, *example.shape))]
        if example.ndim > 3:
            ways = [("flatten",), ("select", 0, 0)]
        name, *args = rng.choice(ways)
        self._add(*self._method(name, value, *args))
        if rng.random() < 0.2 and self.values[-1][1].ndim:
            node, made = self._method("chunk", self.values[-1], 2)
            place = rng.randrange(len(made))
            part = self.graph.call_function(operator.getitem, (node, place))
            if node in self.read_only:
                self.read_only.add(part)
            self._add(part, made[place])
        return None

    def compute(self):
        value, number = self._any(), self.rng.choice(NUMBERS)
        ways = [
            ("mul", number),
            ("add", number),
            ("sigmoid",),
            ("relu",),
            ("tanh",),
            ("neg",),
            ("sum",),
        ]
        if value[1].ndim:
            ways += [
                ("sum", 0),
                ("flip", 0),
                ("softmax", -1),
                ("cumsum", 0),
                ("repeat_interleave", 1),
            ]
        other = self._like(value[1])
        if other is not None:
            ways += [("mul", other), ("add", other), ("maximum", other)] * 2
        name, *args = self.rng.choice(ways)
        self._add(*self._method(name, value, *args))

    def copy(self):
        name, *args = self.rng.choice(
            [("clone",), ("contiguous",), ("clone",), ("to", torch.float64), ("float",), ("mul", 1)]
        )
        value = self._any()
        node, made = self._method(name, value, *args)
        if made.dtype != torch.float32:
            node, made = self._method("float", (node, made))
        self._add(node, made)

    def write(self):
        value, rng = self._any(), self.rng
        example, number = value[1], rng.choice(NUMBERS)
        if _overlaps(example) or value[0] in self.read_only:
            return
        ways = [
            ("add_", number), ("mul_", number), ("zero_",), ("fill_", number), ("sigmoid_",), ("relu_",),
            ("neg_",), ("clamp_", -1.0, 1.0), ("tanh_",), ("set", number), ("foreach", number), ("mask", number),
        ]  # fmt: skip
        other = self._like(example)
        if other is not None and not _overlap_in_part(example, other[1]):
            ways += [("copy_", other), ("add_", other), ("mul_", other), ("set", other)] * 2
        name, *args = rng.choice(ways)
        if name == "foreach":
            torch._foreach_mul_([example], number)
            self.graph.call_function(torch._foreach_mul_, ([value[0]], number))
        elif name == "mask":
            node, mask = self._method("gt", value, 0.3)
            self._method("masked_fill_", value, (node, mask), number)
        elif name == "set":
            key = slice(None, None, rng.randint(1, 2)) if example.ndim else ...
            given = args[0]
            if _is_value(given) and example.ndim and example[key].shape != example.shape:
                given = number
            example[key] = given[1] if _is_value(given) else given
            nodes = value[0], key, given[0] if _is_value(given) else given
            self.graph.call_function(operator.setitem, nodes)
        else:
            node, made = self._method(name, value, *args)
            if rng.random() < 0.5:
                self._add(node, made)


def _overlaps(example):
    """Whether two elements have one place in memory, into which PyTorch's compilers write nothing."""
    places = torch.zeros((), dtype=torch.int64)
    for size, stride in zip(example.shape, example.stride(), strict=True):
        places = (places[..., None] + torch.arange(size) * stride).flatten()
    return len(places.unique()) < example.numel()


def _overlap_in_part(target, source):
    """Whether eager calls may read what they have written already: results depend on their loops."""
    if not _share_memory(target, source):
        return False
    alike = target.shape == source.shape and target.stride() == source.stride()
    return not (alike and target.data_ptr() == source.data_ptr())


def _share_memory(made, example):
    """Whether one of several values shows what another one has in memory."""
    several = made if isinstance(made, tuple | list) else [made]
    place = example.untyped_storage().data_ptr()
    return any(one.untyped_storage().data_ptr() == place for one in several)


def _is_value(one):
    return isinstance(one, tuple) and len(one) == 2 and isinstance(one[0], torch.fx.Node)


def outcome(function, seed, tracked):
    """All that a run of a program shows."""
    torch.manual_seed(seed)
    leaves = [(torch.rand(ROWS, COLUMNS) + 0.1).requires_grad_(tracked) for _ in range(2)]
    own = [one * 1 for one in leaves]
    before = [one._version for one in own]
    with torch.set_grad_enabled(tracked):
        made = list(function(*own))
    changed = [one._version > version for one, version in zip(own, before, strict=True)]
    flags = [one.requires_grad for one in made]
    values = [one.detach().clone() for one in (*made, *own)]
    grads = []
    if tracked:
        losses = [(one * (n + 1)).sin().sum() for n, one in enumerate(made) if one.requires_grad]
        found = torch.autograd.grad(losses, leaves, allow_unused=True) if losses else (None, None)
        grads = [torch.zeros(ROWS, COLUMNS) if one is None else one for one in found]
    layouts = [(one.shape, strides_of(one), one.dtype) for one in made]
    seen = []
    if not tracked:  # what is written into one tensor shows in those that share its memory
        for n, one in enumerate((*made, *own)):
            one.reshape(-1)[:1].add_(n + 1.0) if one.is_contiguous() else one.flatten()
            seen += [each.clone() for each in (*made, *own)]
    return [changed, flags, layouts], [values, grads, seen]


def of_pytorch(graph, inputs, options=None):
    """AOTAutograd with a compiler that changes nothing: what it refuses is refused by it."""
    from functorch.compile import nop
    from torch._dynamo.backends.common import aot_autograd

    return aot_autograd(fw_compiler=nop, keep_inference_input_mutations=True)(graph, inputs)


def check(seed, options=None, compile_with=None):
    """Compare a program's runs; whether there was something to compare."""
    from aclnn.torch.dynamo import backend

    backend = compile_with or backend

    tracked = bool(seed % 2)
    try:
        program = Program(seed, tracked)
        facts, numbers = outcome(program.module, seed, tracked)
    except (
        RuntimeError
    ):  # eager calls refuse it: a write into what is expanded, or what gradients need
        return False
    torch.manual_seed(seed)
    leaves = [(torch.rand(ROWS, COLUMNS) + 0.1).requires_grad_(tracked) for _ in range(2)]
    with torch.set_grad_enabled(tracked):
        compiled = backend(program.module, [one * 1 for one in leaves], options=options or {})
    for _ in range(2):  # the first call plans, the second is prepared
        ours, found = outcome(compiled, seed, tracked)
        if ours != facts:
            raise AssertionError(f"program {seed}: {ours} for {facts}\n{program.module.code}")
        try:
            torch.testing.assert_close(found, numbers, rtol=2e-5, atol=2e-5, equal_nan=True)
        except AssertionError as error:
            raise AssertionError(f"program {seed}: {error}\n{program.module.code}") from None
    return True


def refuses(seed):
    """Whether AOTAutograd alone refuses a program: values that it would give otherwise are no excuse."""
    try:
        check(seed, compile_with=of_pytorch)
    except AssertionError:
        return False
    except Exception:
        return True
    return False


def is_wrong_without_us(seed):
    """Whether AOTAutograd alone gives something else than eager calls."""
    try:
        check(seed, compile_with=of_pytorch)
    except AssertionError:
        return True
    except Exception:
        return False
    return False


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--take", default="all")
    parser.add_argument(
        "--apart",
        action="store_true",
        help="count apart what AOTAutograd alone refuses or does wrong",
    )
    parser.add_argument("--seconds", type=float, default=float("inf"))
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    end, compared, refused = time.monotonic() + given.seconds, 0, 0
    failed, theirs, seed = [], [], given.seed
    for seed in range(given.seed, given.seed + given.count):
        if time.monotonic() > end:
            break
        try:
            compared += check(seed, {"take": given.take})
        except Exception as error:
            is_value = isinstance(error, AssertionError)
            if given.apart and not is_value and refuses(seed):
                refused += 1
                continue
            if given.apart and is_value and is_wrong_without_us(seed):
                theirs.append(seed)
                continue
            failed.append(seed)
            print(f"{seed}: {type(error).__name__}: {error}", flush=True)
    print(
        f"seeds {given.seed} to {seed}: {compared} compared, {refused} refused by AOTAutograd alone, "
        f"{len(theirs)} wrong by it alone: {theirs[:50]}, {len(failed)} failed: {failed[:50]}"
    )


if __name__ == "__main__":
    with contextlib.redirect_stderr(io.StringIO()):  # graphs print what eager calls refuse
        main()
