"""Writing and reading by indices, and what makes them."""

from __future__ import annotations

from .record import Record, State, opaque

_PIECES = State(
    "pieces_state",
    """
    int size
    int index_size
    int how
    int indexed             # dimensions
    bint wraps
    combine_fn combine
    """,
)
_TRUTH = State(
    "truth_state",
    """
    int size                # bytes of an element
    uint64_t bits           # of an element that count: not the sign of a number
    bint by_rows            # whether the indices of an element are adjacent
    bint exact              # whether there have to be as many as the result has room for
    bint clears             # whether room that is left is filled with zeros
    int moved               # bytes of elements that are chosen
    """,
)
_LINES = State("line_state", "int axis\nint size\nint index_size")
_TRUE_ELEMENTS = """
    exact, clears
    by_rows, room = attr("by_rows", True), size_of(result)
    size, moved, bits = ITEM_SIZES[inputs[-1]], ITEM_SIZES[outputs[0]], counted_bits(inputs[-1])
    """
_RANGE = (
    (
        "OUT_OF_RANGE",
        "an index is {detail}, which the dimension that it counts along does not have",
    ),
)
_ROOM = (
    ("WRONG_COUNT", "{detail} elements are true, the result has the size {room}"),
    ("NO_ROOM", "{detail} elements are true, for which the result of {room} has no room"),
)

RECORDS: tuple[Record, ...] = (
    opaque(
        "scatter_along",
        "base index source",
        body="indexing",
        state=State(
            "scatter_state",
            """
            int axis
            int size                # bytes of an element
            int index_size
            int how
            bint wraps              # whether negative indices count from the end
            combine_fn combine
            """,
        ),
        arguments="""
            axis, how, wraps
            size, index_size = ITEM_SIZES[inputs[0]], ITEM_SIZES[inputs[1]]
            combine = combiner(inputs[0], state.how)
            """,
        chunks="lines_of(result, state.axis)",
        work="0.6 * (size_of(base) + size_of(index))",
        check=("check_scatter", "(1,)"),
        failures=_RANGE,
        onnx=(),
    ),
    opaque(
        "put_at",
        "base values index",  # an index for each of the first dimensions
        body="indexing",
        state=_PIECES,
        arguments="""
            how, wraps
            size, index_size, indexed = ITEM_SIZES[inputs[0]], ITEM_SIZES[inputs[-1]], len(inputs) - 2
            combine = combiner(inputs[0], state.how)
            """,
        chunks="size_of(result[state.indexed:-1])",
        work="1.0 * (size_of(base) + size_of(values))",
        check=("check_put", "tuple(range(2, len(inputs)))"),
        failures=_RANGE,
        onnx=(),
    ),
    opaque(
        "take_at",
        "table index",
        body="indexing",
        state=_PIECES,
        arguments="""
            wraps
            size, index_size, indexed = ITEM_SIZES[inputs[0]], ITEM_SIZES[inputs[-1]], len(inputs) - 1
            """,
        chunks="size_of(index)",
        work="1.0 * size_of(result)",
        check=("check_take", "tuple(range(1, len(inputs)))"),
        failures=_RANGE,
        onnx=(),
    ),
    opaque(
        "one_hot_lines",
        "index on off",
        body="indexing",
        state=_LINES,
        arguments="axis; size, index_size = ITEM_SIZES[outputs[0]], ITEM_SIZES[inputs[0]]",
        chunks="lines_of(result, state.axis)",
        work="0.3 * size_of(result)",
        onnx=(),
    ),
    opaque(
        "class_indices",
        "target",
        body="indexing",
        state=State(
            "class_state",
            """
            int size                # bytes of a target
            int64_t classes         # a target is less
            int64_t ignored         # the target that is no class: its index is 0
            """,
        ),
        arguments="classes, ignored; size, elements = ITEM_SIZES[inputs[0]], size_of(result)",
        chunks="elements // 4096",
        work="1.0 * elements",
        check=("check_classes", "(0,)"),
        failures=(
            (
                "NO_CLASS",
                "an index is {detail}, must be from 0 to {state.classes - 1}, or {state.ignored}, "
                "which is ignored",
            ),
        ),
        onnx="Where(target == ignored, 0, target)",
    ),
    opaque(
        "spread_counts",
        "counts",
        body="indexing",
        state=_LINES,
        arguments="""
            size, index_size = ITEM_SIZES[outputs[0]], ITEM_SIZES[inputs[0]]
            elements = size_of(result)
            """,
        work="1.0 * elements",
        scratch=True,
        failures=(
            (
                "WRONG_COUNT",
                "counts add up to {detail}, or one is negative, must add up to {elements}",
            ),
        ),
        onnx=(),
    ),
    opaque(
        "ramp",
        "",
        body="indexing",
        state=State(
            "ramp_state",
            """
            double start
            double step
            double last             # the second half is counted back from it
            int64_t first           # of whole numbers, and their step
            int64_t each
            bint is_whole
            bint from_both_ends
            store_fn store
            """,
        ),
        # Integers of 64 bits are computed with as such.
        arguments="""
            is_whole = type(attr("start")) is int and type(attr("step")) is int
            first, each = attr("start") if state.is_whole else 0, attr("step") if state.is_whole else 0
            start, step = 0 if state.is_whole else attr("start"), 0 if state.is_whole else attr("step")
            from_both_ends, last = attr("last") is not None, attr("last") or 0
            store = writer(outputs[0], "int64" if state.is_whole else "float64")
            elements = size_of(result)
            """,
        chunks="elements // 4096",
        work="1.0 * elements",
        onnx=(),
    ),
    opaque(
        "true_places",
        "x",
        outputs="result shape",
        body="indexing",
        state=_TRUTH,
        arguments=_TRUE_ELEMENTS,
        work="1.0 * size_of(x)",
        failures=_ROOM,
        onnx=(),
    ),
    opaque(
        "masked_elements",
        "x mask",
        outputs="result shape",
        body="indexing",
        state=_TRUTH,
        arguments=_TRUE_ELEMENTS,
        work="1.0 * size_of(x)",
        failures=_ROOM,
        onnx=(),
    ),
    opaque(
        "solve_triangle",
        "right matrix",
        body="indexing",
        state=State(
            "solve_state",
            """
            bint upper              # which triangle of the matrix counts
            bint unit               # whether its diagonal counts as ones
            load_fn load
            store_fn store
            """,
        ),
        arguments="""
            upper, unit
            batch, n, wide = size_of(result[:-2]), result[-2], result[-1]
            load, store = reader(inputs[0], "float64"), writer(outputs[0], "float64")
            """,
        parts="""
            double row[n]           # of the matrix
            double x[COLUMNS * n]   # unknowns, of some right-hand sides
            """,
        chunks="batch * ((wide + COLUMNS - 1) // COLUMNS)",
        work="0.5 * batch * n * n * wide",
        onnx=(),
    ),
)
