"""Sorts, the largest elements, and what sampling keeps."""

from __future__ import annotations

from .record import Record, State, opaque

_SORT = State(
    "sort_state",
    """
    int axis
    int size                # bytes of an element
    int bits                # of a key
    uint64_t turned         # all of these bits, where the largest element is first
    keys_fn keys
    wide_keys_fn wide_keys  # of elements of 64 bits
    ptrdiff_t k             # how many are written
    bint has_values, has_indices
    """,
)


def _sort(name: str) -> Record:
    return opaque(
        name,
        "x",
        outputs="values indices",
        body="sorting",
        state=_SORT,
        function="sort_lines",
        per_set=True,
        arguments="""
            present, descending = attr("present", ()), attr("descending")
            has_values, has_indices = "values" in present, "indices" in present
            axis = attr("axis") % len(x)
            lines, n, k = lines_of(x, state.axis), x[state.axis], values[state.axis]
            size = ITEM_SIZES[inputs[0]]
            bits = 8 * state.size
            turned = 0xFFFFFFFFFFFFFFFF >> (64 - state.bits) if descending else 0
            keys, wide_keys = keys_of(inputs[0]), wide_keys_of(inputs[0])
            """,
        # Keys, or those of 64 bits with their indices, and room for as many more.
        parts="""
            uint32_t counts[COUNTS_BYTES // 4]
            uint64_t keys[2 * n if wide_keys == NULL else 0]
            entry_t entries[2 * n if wide_keys != NULL else 0]
            """,
        chunks="lines",
        work="5.0 * lines * n",
        onnx="TopK(x, axis=axis)",
    )


RECORDS: tuple[Record, ...] = (
    _sort("sort"),
    _sort("topk"),
    opaque(
        "top_k_top_p",
        "x p? k?",
        outputs="result",
        body="sorting",
        state=State(
            "sample_state",
            """
            int size
            int bits
            keys_fn keys
            int p, k
            load_fn load
            """,
        ),
        per_set=True,
        arguments="""
            lines, n = size_of(x[:-1]), x[-1]
            size, bits = ITEM_SIZES[inputs[0]], 15 if inputs[0] == "float16" else 32
            keys, load = keys_of(inputs[0]), reader(inputs[0], "float32")
            """,
        parts="""
            uint32_t counts[COUNTS_BYTES // 4]
            uint64_t keys[2 * n]    # and room for as many more
            float values[n]
            """,
        chunks="lines",
        work="15.0 * lines * n",
        onnx=(),
    ),
)
