"""Rows of tokens that go into caches, and come out of them."""

from __future__ import annotations

from .record import Record, State, opaque

_STATE = State(
    "cache_state",
    """
    int size
    int index_size
    int slot_axis
    int counts              # SLOTS, POSITIONS, BLOCKS, WITHOUT_BLOCKS
    ptrdiff_t sequence      # tokens of a batch, where indices do not count slots
    bint strict             # negative indices are refused, not skipped
    bint adds_up            # lengths, which begin with 0
    bint has_first
    """,
)
_FAILURES = (
    ("BAD_SLOT", "an index is {detail}, beyond the slots of the cache"),
    ("BAD_BLOCK", "a table has the block {detail}, which the cache does not have"),
    (
        "BAD_LENGTH",
        "lengths add up to {detail}: more than there are rows, or one is negative, or "
        "longer than its table",
    ),
)
_SIZES = "size, index_size = ITEM_SIZES[inputs[0]], ITEM_SIZES[inputs[2]]"

RECORDS: tuple[Record, ...] = (
    opaque(
        "scatter_rows",
        "cache rows places",
        body="cache",
        state=_STATE,
        arguments=f"slot_axis, counts, strict; sequence = max(1, attr('sequence')); {_SIZES}",
        chunks="1 if state.counts == WITHOUT_BLOCKS else result[0]",
        work="0.1 * size_of(rows)",
        check=("check_slots", "(2,)"),
        failures=_FAILURES,
        onnx=(),
    ),
    opaque(
        "gather_pages",
        "rows cache table lengths first?",
        body="cache",
        state=_STATE,
        arguments=f"slot_axis, adds_up; sequence = 1; has_first = len(inputs) > 4; {_SIZES}",
        chunks="result[0]",
        work="0.1 * size_of(result)",
        check=("check_pages", "tuple(range(2, len(inputs)))"),
        failures=_FAILURES,
        onnx=(),
    ),
)
