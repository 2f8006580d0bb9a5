"""Show versions, the instruction set in use, threads, whose dtype rules hold, and the cache."""

from __future__ import annotations

import argparse
import json

from aclnn import config


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(options: argparse.Namespace) -> int:
    if options.json:
        print(json.dumps(config.config(), indent=2))
    else:
        config.show_config()
    return 0
