"""Products of quantised matrices, and quantised elements."""

from __future__ import annotations

from collections.abc import Iterable

from .record import Record, State, opaque

_OF_X = "lines, n = size_of(x[:-1]), x[-1]"
_OF_RESULT = "lines, n = size_of(result[:-1]), result[-1]"
_BAD_GROUPS = (
    "BAD_GROUPS",
    "a group ends at {detail}, before it begins or beyond the rows that there are",
)
_BAD_WEIGHT = ("BAD_WEIGHT", "a group has the number {detail}, which no weight has")
_NIBBLES = State(
    "nibbles_state", "int unit  # bytes of an element that holds integers of four bits"
)
_BITS = State("bits_state", "bint shifted  # whether there are offsets")


def _record(
    name: str,
    inputs: str,
    state: State,
    arguments: str,
    work: str,
    parameters: str = "",
    outputs: str = "result",
    *,
    parts: str = "",
    chunks: str = "lines",
    check: tuple[str, str] | tuple[()] = (),
    failures: Iterable[tuple[str, str]] = (),
) -> Record:
    return opaque(
        name,
        inputs,
        parameters,
        outputs=outputs,
        body="quantized",
        state=state,
        per_set=True,
        arguments=arguments,
        parts=parts,
        chunks=chunks,
        work=work,
        check=check,
        failures=failures,
        onnx=(),
    )


RECORDS: tuple[Record, ...] = (
    _record(
        "quantized_product",
        "a b* scale? per_token? offset? bias? antiquant_scale? antiquant_offset? groups?",
        State(
            "product_state",
            """
            int scale, per_token, offset, bias, antiquant_scale, antiquant_offset, groups, out
            int several             # operands that are a weight each, from the second on; 0: all are one
            int out_size            # bytes of a result
            int integers            # of a group: 4 or 2, or 1 where floats are multiplied
            int result              # RAW, FLOATING, BYTES
            int along               # BATCHES, ALONG_ROWS, ALONG_K
            int list_kind           # CUMULATIVE, SIZES, PAIRS
            int activation
            ptrdiff_t group_size    # rows of a weight that share scales; 0: as many as divides them
            int a_unit, b_unit      # bytes of an element that holds integers of four bits, else 0
            bint along_k            # whether those of B are along k, else along n
            ptrdiff_t n             # columns
            bint bias_is_whole
            bint scale_is_bits      # of a float, and of an offset
            bint shortens           # scales lose the bits that they would not have as such
            bint clears             # rows that no group has become zeros
            load_fn load_a, load_b
            const float *table      # of what bytes of B stand for, where these are floats; else NULL
            store_fn store
            int column_bits         # of integers whose columns may become rows at once; 0: none are
            bint by_columns         # whether few rows of A are multiplied by columns as they are
            ptrdiff_t block         # rows of A that are packed at a time
            ptrdiff_t row_parts     # into which rows are cut for threads
            ptrdiff_t line          # bytes of a row, or of a column, of integers that are taken apart
            ptrdiff_t apart         # bytes of all of them
            """,
        ),
        # Columns of single precision are summed in another order: no operator of its own has that.
        """
        clears, shortens, nibbles, floats8
        along, list_kind = attr("along", 0), attr("list_kind", 0)
        activation, group_size = attr("activation", 0), attr("group_size", 0)
        weights = len(inputs) - len(attr("present", ())) - 1
        several, batch = weights if weights > 1 else 0, b[0] if len(b) > 2 else weights
        a_unit, b_unit = NIBBLE_UNITS.get(inputs[0], 0), NIBBLE_UNITS[inputs[1]] if nibbles else 0
        along_k = nibbles == "k"
        m, k, n, out = a[-2], a[-1] * max(1, 2 * state.a_unit), result[-1], len(inputs)
        table = NULL if floats8 is None else table_of_floats(floats8)
        whole = (inputs[0] == "int8" or state.a_unit > 0) and (
            inputs[1] == "int8" or state.b_unit > 0) and floats8 is None
        integers = integers_of_tiles() if whole else 1
        out_size, result = ITEM_SIZES[outputs[0]], RESULTS.get(outputs[0], FLOATING)
        bias_is_whole = state.bias >= 0 and inputs[state.bias] == "int32"
        scale_is_bits = state.scale >= 0 and inputs[state.scale] in ("int64", "uint64")
        single = inputs[0] == "float32" and inputs[max(0, state.antiquant_scale)] == "float32"
        by_columns = single and state.antiquant_scale >= 0 and state.several == 0 and (
            inputs[1] == "int8" or state.b_unit == 1 and state.along_k) and state.along != ALONG_K
        is_unpacked = state.antiquant_scale >= 0 and state.along != ALONG_K and not whole
        nibbles_by_k, bytes_of_b = state.b_unit == 1 and state.along_k, inputs[1] == "int8" and floats8 is None
        column_bits = 4 if is_unpacked and nibbles_by_k else 8 if is_unpacked and bytes_of_b else 0
        load_a = NULL if whole else reader(inputs[0], "float32")
        load_b = NULL if whole else reader("int8" if state.b_unit else inputs[1], "float32")
        store = writer(outputs[0], "float32") if state.result == FLOATING else NULL
        panels, step = (state.n + tile_cols() - 1) // tile_cols(), packed_step(state.integers, k)
        block = max(tile_rows(), min(m, A_BLOCK // max(1, step) // tile_rows() * tile_rows()))
        line = (k + 63) // 64 * 64
        of_table = 4 * state.line if floats8 is not None and state.by_columns else 0
        apart = state.line * tile_cols() if state.b_unit else state.line if state.a_unit else of_table
        row_parts = max(1, min(8, m // 64)) if batch * panels < 8 and state.along != ALONG_K else 1
        """,
        "(0.02 if whole else 0.03) * m * k * state.n * (batch if state.along == BATCHES else 1)"
        " + 0.2 * k * state.n * batch",
        # Rows and a panel, packed; integers of four bits, each in a byte; sums of the rows and the panel.
        parts="""
            char a[max(64, (block * step + 63) // 64 * 64)]
            char b[step * TILE_COLS]
            int8_t apart[apart]
            int32_t sums[block * TILE_COLS]
            """,
        chunks="batch * panels * state.row_parts",
        check=("check_groups", "() if state.along == BATCHES else (state.groups,)"),
        failures=(_BAD_GROUPS, _BAD_WEIGHT),
    ),
    _record(
        "quantize",
        "x scale offset?",
        State(
            "quantize_state",
            """
            load_fn load
            bint has_offset
            bint divides
            bint twice              # multiplies by the scale two times
            int rounding            # 0 nearest even, 1 floor, 2 ceil, 3 trunc
            bint wide               # results have 32 bits
            float low, high
            """,
        ),
        f"""
        divides, twice
        bits, rounding = attr("bits", 8), attr("rounding", 0)
        {_OF_RESULT}
        load, has_offset, wide = reader(inputs[0], "float32"), len(inputs) > 2, outputs[0] == "int32"
        low = 0 if outputs[0] == "uint8" else -(1 << (bits - 1))
        high = 255 if outputs[0] == "uint8" else (1 << (bits - 1)) - 1
        """,
        "0.3 * lines * n",
    ),
    _record(
        "dynamic_quant",
        "x smooth? groups?",
        State(
            "dynamic_state",
            """
            load_fn load
            bint has_smooth
            int groups              # place of the ends of groups of rows, or -1
            int index_size
            bint has_offset
            float low, high
            """,
        ),
        f"""
        bits = attr("bits", 8)
        {_OF_X}
        load, has_smooth, has_offset = reader(inputs[0], "float32"), len(inputs) > 1, len(outputs) > 2
        groups = 2 if len(inputs) > 2 else -1
        index_size = ITEM_SIZES[inputs[2]] if len(inputs) > 2 else 8
        low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
        """,
        "0.5 * lines * n",
        outputs="result scale offset?",
        parts="float values[n]",
        check=("check_ends", "(2,) if state.groups >= 0 else ()"),
        failures=(("BAD_GROUPS", "row {detail} belongs to no group"),),
    ),
    _record(
        "swiglu_quant",
        "x weight_scale? activation_scale? bias? quant_scale? quant_offset? groups?",
        State(
            "swiglu_state",
            """
            int weight_scale, activation_scale, bias, quant_scale, quant_offset, groups, out
            bint clears             # rows that no group has become zeros
            load_fn load
            bint bias_is_whole
            bint is_whole
            bint left               # which half is the gate
            bint dynamic
            bint single             # one quantisation scale for all columns
            int mode                # 0 SwiGLU; 1 pairs, 2 halves, clamped; 3 clamped after the gate
            """,
        ),
        f"""
        left, dynamic, mode, single, clears
        {_OF_X}
        load, out, is_whole = reader(inputs[0], "float32"), len(inputs), inputs[0] == "int32"
        bias_is_whole = state.bias >= 0 and inputs[state.bias] == "int32"
        """,
        "4.0 * lines * n",
        "limit alpha bias",
        "result scale",
        parts="float values[n]  # of a row\nfloat own[n]  # of halves, and scales of a row",
        check=("check_sizes", "(state.groups,) if state.groups >= 0 else ()"),
        failures=(_BAD_GROUPS,),
    ),
    _record(
        "scale_bits",
        "scale offset?",
        _BITS,
        "n, shifted = result[0], len(inputs) > 1",
        "1.0 * n",
        chunks="",
    ),
    _record("scale_of_bits", "bits", _BITS, "n = result[0]", "1.0 * n", chunks=""),
    _record(
        "pack4", "x", _NIBBLES, f"{_OF_RESULT}; unit = NIBBLE_UNITS[outputs[0]]", "1.0 * lines * n"
    ),
    _record(
        "unpack4", "x", _NIBBLES, f"{_OF_RESULT}; unit = NIBBLE_UNITS[inputs[0]]", "1.0 * lines * n"
    ),
)
