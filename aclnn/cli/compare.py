"""Compare a model in ONNX with ONNX Runtime or ONNX's reference, node by node.

Differences are in units in the last place of a result's largest element; the first node whose results differ by
more than the limit is named.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict

from aclnn.acl.arguments import shown
from aclnn.acl.errors import invalid
from aclnn.cli.run import add_inputs, arrays_for, pairs
from aclnn.cli.show import progress
from aclnn.differences import LIMIT

OTHERS = ("onnxruntime", "reference")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="a file in ONNX")
    add_inputs(parser)
    parser.add_argument(
        "--with", dest="other", choices=OTHERS, default="onnxruntime",
        help="the reference (default onnxruntime)",
    )  # fmt: skip
    parser.add_argument(
        "--limit",
        default=str(LIMIT),
        metavar="ULP",
        help=f"what still is equal (default {LIMIT:g})",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(options: argparse.Namespace) -> int:
    from aclnn.onnx.comparison import compared, with_every_result
    from aclnn.onnx.reading import from_onnx, loaded

    try:
        limit = float(options.limit)
    except ValueError:
        raise invalid(f"--limit is {shown(options.limit)}, must be a number") from None
    if not limit >= 0:
        raise invalid(f"--limit is {shown(options.limit)}, must be from 0 on")
    with progress(f"reading {options.model}"):
        proto = with_every_result(loaded(options.model))
        model = from_onnx(proto, fallback="allow", packed=False)
    arrays = arrays_for(model, pairs("--input", options.input), options.model_dim)
    with progress(f"comparing {model.name}"):
        found = compared(proto, model, arrays, options.other)
    far = next((one for one in found if not one.ulp <= limit), None)
    if options.json:
        print(json.dumps({
            "with": options.other,
            "first": None if far is None else far.node,
            "values": [asdict(one) for one in found],
        }))  # fmt: skip
        return 0 if far is None else 1
    width = max([len(one.node) for one in found], default=4)
    print(f"{'node':{width}}  {'operator':<24} {'ULP':>8}  result")
    for one in found:
        print(
            f"{one.node:{width}}  {one.operator:<24} {one.ulp:>8.3g}  {one.dtype}{list(one.shape)}"
        )
    if far is None:
        print(f"\nall {len(found)} results are within {limit:g} ULP of those of {options.other}")
        return 0
    print(f"\nthe first that differs is {far.node} ({far.operator}): {far.ulp:.3g} ULP")
    return 1
