"""Show versions, the instruction set in use, threads, whose dtype rules hold, and the cache."""

from __future__ import annotations

import argparse
import json

from aclnn import environment


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = "\n".join(
        ["variables of the environment:", *(f"  {line}" for line in environment.described())]
    )


def run(options: argparse.Namespace) -> int:
    from aclnn.reports import config  # reads the environment, which the help must not stumble over

    if options.json:
        print(json.dumps(config.config(), indent=2))
    else:
        config.show_config()
    return 0
