"""Cases that are one test together: most take less time than pytest does for a test."""

import contextlib
import functools
import inspect
import zlib

import pytest


def around(**case):
    """What each case runs in: `samples` sets it."""
    return contextlib.nullcontext()


ONE = False  # whether a single case stands for all: in the quick part of the suite
EVERY = False  # whether `some` are all: with `--every-case`


def some(values, count, key):
    """So many of the values, which take turns: others for each key.

    Where one loop runs for a product of cases, such as of operators, dtypes and layouts, each operator meets
    some of the layouts, and each layout some of the operators.
    """
    values = list(values)
    if EVERY or count >= len(values):
        return values
    first, every = zlib.crc32(str(key).encode()), len(values)
    places = {(first + k * every // count) % every for k in range(count)}
    return [values[place] for place in sorted(places)]


def each(names, values, ids=str):
    """As `pytest.mark.parametrize`, but all in one test, which tells every case that fails.

    `values` may be a function of other arguments of the test, by their names, and `ids` a function
    that gives a value in words.
    """
    keys = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    shown = ids if callable(ids) else str

    def decorated(test):
        signature = inspect.signature(test)
        needed = inspect.signature(values).parameters if callable(values) else ()

        @functools.wraps(test)
        def run(**given):
            found = list(
                values(**{key: given[key] for key in needed}) if callable(values) else values
            )
            if ONE and found:
                found = [found[zlib.crc32(test.__name__.encode()) % len(found)]]
            failed, skipped = [], []
            for value in found:
                case = dict(zip(keys, value if len(keys) > 1 else [value], strict=True))
                try:
                    with around(**case):
                        test(**given, **case)
                except pytest.skip.Exception as reason:
                    skipped.append(reason)
                except (Exception, pytest.fail.Exception) as error:
                    error.add_note(
                        f"where {', '.join(f'{k} is {shown(v)}' for k, v in case.items())}"
                    )
                    failed.append(error)
            if failed:
                raise BaseExceptionGroup(f"{len(failed)} of {len(found)} cases", failed)
            if skipped and len(skipped) == len(found):
                raise skipped[0]

        kept = [one for name, one in signature.parameters.items() if name not in keys]
        run.__signature__ = signature.replace(parameters=kept)
        return run

    return decorated
