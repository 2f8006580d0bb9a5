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
        help="remove the measurements of this machine",
    )
    capi = parser.add_argument_group("programs in C and C++")
    capi.add_argument("--cflags", action="store_true", help="print the compiler's flags")
    capi.add_argument(
        "--libs", action="store_true", help="print the linker's flags, run path included"
    )
    capi.add_argument(
        "--cann-home",
        action="store_true",
        help="print a folder laid out as an installation of CANN",
    )
    capi.add_argument(
        "--capi", action="store_true", help="show which library, package and interpreter they use"
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
    if options.cflags or options.libs or options.cann_home or options.capi:
        return _show_installation(options)
    from aclnn.reports import config  # reads the environment, which the help must not stumble over

    if options.json:
        print(json.dumps(config.config(), indent=2))
    else:
        config.show_config()
    return 0


def _show_installation(options: argparse.Namespace) -> int:
    """One line for build files, flags of the compiler first."""
    from aclnn.capi import installation

    flags = []
    if options.cflags:
        flags.append(installation.cflags())
    if options.libs:
        flags.append(installation.libs())
    if flags:
        print(" ".join(flags))
    if options.cann_home:
        print(installation.cann_home())
    if options.capi:
        print(installation.described())
    return 0
