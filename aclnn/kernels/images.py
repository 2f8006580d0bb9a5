"""Windows of images, and other sizes."""

from __future__ import annotations

from .record import Record, State, opaque

_WINDOWS = State(
    "windows_state",
    """
    ptrdiff_t[2] size       # of a window: rows, columns; 0: they share the operand
    ptrdiff_t[2] step       # from one to the next
    ptrdiff_t[2] before     # how many elements the first begins before the operand
    ptrdiff_t[2] after      # how many elements are added behind the operand
    bint wide               # computed in double
    bint counts_margin      # what was added counts as elements
    double divisor          # of means; 0: their elements
    int index_size          # of places of maxima; 0: there are none
    load_fn load
    store_fn store
    """,
)
_SIZES = "rows, results = size_of(result[:3]), result[3]"
_COMPUTED = """
size, step, before, after = attr("size"), attr("step"), attr("before"), attr("after")
load = reader(inputs[0], "float64" if state.wide else "float32")
store = writer(outputs[0], "float64" if state.wide else "float32")
"""


def _windows(name: str, outputs: str, arguments: str, parts: str) -> Record:
    return opaque(
        name,
        "x",
        outputs=outputs,
        body="image",
        state=_WINDOWS,
        per_set=True,
        arguments=f"{arguments}; {_SIZES}; width = x[3]{_COMPUTED}",
        parts=parts,
        chunks="rows",
        work="0.5 * rows * (width + results) * (1 + state.size[0] + state.size[1])",
        onnx=(),
    )


def _resize(name: str, state: State, arguments: str, parts: str) -> Record:
    return opaque(
        name,
        "x",
        body="image",
        state=state,
        per_set=True,
        arguments=f"scale = attr('scale'); {_SIZES}; {arguments}",
        parts=parts,
        chunks="rows",
        work="1.0 * rows * results",
        onnx=(),
    )


RECORDS: tuple[Record, ...] = (
    _windows(
        "window_maxima",
        "result indices",
        "wide = inputs[0] == 'float64'; "
        "index_size = ITEM_SIZES[outputs[1]] if len(outputs) > 1 else 0",
        # Of all rows of a window, and of the results, as double or float.
        """
        char row[width * (8 if wide else 4)]
        char other[width * (8 if wide else 4)]
        char rows[width * (8 if wide else 4) if index_size else 0]  # which row each element is from
        char made[results * (8 if wide else 4)]
        """,
    ),
    _windows(
        "window_means",
        "result",
        "counts_margin, divisor = attr('counts_margin'), attr('divisor', 0); wide = True",
        """
        double row[width]       # of all rows of a window
        double other[width]
        double made[results]
        """,
    ),
    _resize(
        "resize_nearest",
        State(
            "nearest_state",
            """
            bint exact              # the element whose middle is nearest counts
            double[2] scale         # from a result to the next, in elements: along rows and columns
            int size                # bytes of an element
            """,
        ),
        "exact, size = attr('exact'), ITEM_SIZES[outputs[0]]",
        "ptrdiff_t places[results]  # where the nearest elements of a row are",
    ),
    _resize(
        "resize_linear",
        State(
            "linear_state",
            """
            bint corners            # the first and the last elements stay
            double[2] scale         # as above
            load_fn load
            store_fn store
            """,
        ),
        "corners, width = attr('corners'), x[3]; "
        "load, store = reader(inputs[0], 'float64'), writer(outputs[0], 'float64')",
        """
        int32_t columns[results]    # which element is before each result of a row
        double rests[results]       # how far
        double made[results]
        double upper[width]         # rows of the operand
        double lower[width]
        double both[width + 1]
        """,
    ),
)
