"""Mixtures of experts: gates, the order of tokens, and their sums."""

from __future__ import annotations

from .record import Record, State, opaque

_BAD_EXPERT = ("BAD_EXPERT", "an index of an expert is {detail}, which there is none of")
_BAD_ROW = ("BAD_ROW", "an index of a row is {detail}, must not be negative")

RECORDS: tuple[Record, ...] = (
    opaque(
        "gate",
        "x bias? finished?",
        "factor eps",
        outputs="result experts rows? normalized?",
        body="expert",
        state=State(
            "gate_state",
            """
            load_fn load
            load_fn load_bias
            store_fn store
            int bias, finished, result, experts, rows, normalized
            int norm                # SOFTMAX, SIGMOID, CHOSEN
            int groups, kept        # groups of experts, and how many of them stay
            bint by_two             # a group counts by the sum of its two largest
            bint divides            # by the sum of what is chosen
            ptrdiff_t k
            """,
        ),
        arguments="""
            norm, by_two, divides
            groups, kept = attr("groups", 1), attr("kept", 1)
            n, k = x[1], result[1]
            load, store = reader(inputs[0], "float32"), writer(outputs[0], "float32")
            load_bias = reader(inputs[1], "float32") if state.bias >= 0 else NULL
            """,
        parts="""
            float values[n]         # of all experts
            float ranked[n]         # what they are chosen by
            float groups[groups]    # best values of groups
            float made[k]           # of those that are chosen
            int32_t chosen[k]
            uint8_t taken[n]
            """,
        chunks="x[0]",
        work="x[0] * n * (10.0 + state.k)",
        failures=(_BAD_EXPERT, _BAD_ROW),
        onnx=(),
    ),
    opaque(
        "route",
        "ids",
        outputs="positions sources counts",
        body="expert",
        state=State(
            "route_state",
            """
            int index_size
            ptrdiff_t each          # how many places a token has in the list
            int64_t experts         # indices are less; 0: any
            ptrdiff_t capacity      # of an expert; 0: tokens of all lie one after the other
            int counting            # UNCOUNTED, CUMULATIVE, COUNTED, BEFORE capacity
            """,
        ),
        arguments="""
            experts, capacity, counting
            index_size, each, n = ITEM_SIZES[inputs[0]], max(1, attr("each")), ids[0]
            """,
        parts="""
            uint32_t counts[COUNTS_BYTES // 4]
            uint64_t keys[2 * n]    # and room for as many more
            """,
        work="10.0 * n",
        failures=(_BAD_EXPERT, _BAD_ROW),
        onnx=(),
    ),
    opaque(
        "take_rows",
        "x sources",
        body="expert",
        state=State("rows_state", "int size"),
        arguments="size = ITEM_SIZES[inputs[0]]",
        chunks="size_of(result[:-1])",
        work="0.1 * size_of(result)",
        onnx=(),
    ),
    opaque(
        "combine",
        "rows places scales? x1? x2? bias? experts?",
        body="expert",
        state=State(
            "combine_state",
            """
            int scales, x1, x2, bias, experts, result
            load_fn load
            load_fn load_scales
            store_fn store
            ptrdiff_t each          # how many rows are added up
            bint by_columns         # the index has all first rows, then all second ones
            bint drops              # -1 stands for a row that was dropped
            """,
        ),
        arguments="""
            each, by_columns, drops
            load, store = reader(inputs[0], "float32"), writer(outputs[0], "float32")
            load_scales = reader(inputs[state.scales], "float32") if state.scales >= 0 else NULL
            """,
        chunks="size_of(result[:-1])",
        work="0.3 * size_of(result) * state.each",
        check=("check_combine", "tuple([1] if state.bias < 0 else [1, state.experts])"),
        failures=(_BAD_EXPERT, _BAD_ROW),
        onnx=(),
    ),
)
