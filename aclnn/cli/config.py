"""Show versions, the instruction set in use, threads, whose dtype rules hold, and the cache."""

from __future__ import annotations

import argparse
import json

from aclnn import environment


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--clear-measurements",
        action="store_true",
        help="remove what was measured on this machine, so that it is measured anew",
    )
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = "\n".join(
        ["variables of the environment:", *(f"  {line}" for line in environment.described())]
    )


def run(options: argparse.Namespace) -> int:
    if options.clear_measurements:
        from aclnn import measurements

        print(f"removed {measurements.clear()} files in {measurements.folder()}")
        return 0
    from aclnn.reports import config  # reads the environment, which the help must not stumble over

    if options.json:
        print(json.dumps(config.config(), indent=2))
    else:
        config.show_config()
    return 0
