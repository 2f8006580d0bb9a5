"""Products whose right operand is packed ahead: bitwise those of the operand as it lies."""

import ml_dtypes
import numpy as np
import pytest

from aclnn import isa

DTYPES = {
    "float32": np.float32,
    "float16": np.float16,
    "bfloat16": ml_dtypes.bfloat16,
    "float64": np.float64,
}
ROWS = (1, 2, 3, 4, 5, 14, 15, 29)
COLUMNS = (1, 7, 15, 16, 17, 31, 32, 33, 64, 65, 100, 129)
TERMS = (1, 2, 3, 31, 256, 257, 513)
TINY = {"float32": 1e-30, "bfloat16": 1e-30, "float16": 1e-6, "float64": 1e-300}


def aligned(nbytes):
    room = np.full(nbytes + 128, 0xA5, np.uint8)
    begin = -room.ctypes.data % 64
    return room[begin : begin + nbytes], room[begin + nbytes :]


def case(rng):
    """Dtypes, operands in any layout, and memory for the result."""
    names = [str(name) for name in rng.choice(list(DTYPES), 3)]
    if rng.random() < 0.5:
        names[0] = names[1]
    batch = tuple(int(size) for size in rng.integers(1, 4, rng.integers(0, 3)))
    m, n, k = (int(rng.choice(sizes)) for sizes in (ROWS, COLUMNS, TERMS))
    if rng.random() < 0.2:
        m, n = n, m
    inner = tuple(1 if rng.random() < 0.3 else size for size in batch)
    a = rng.standard_normal((*batch, m, k)).astype(DTYPES[names[0]])
    b = rng.standard_normal((*inner, k, n)).astype(DTYPES[names[1]])
    if rng.random() < 0.3:
        b = (b * TINY[names[1]]).astype(b.dtype)
    layout = rng.integers(3)
    if layout == 1:
        b = np.ascontiguousarray(b.swapaxes(-1, -2)).swapaxes(-1, -2)
    elif layout == 2:
        b = np.repeat(b, 2, axis=-1)[..., ::2]
    return names, batch, a, np.broadcast_to(b, (*batch, k, n)), (m, n, k)


@pytest.mark.parametrize("name", isa.available())
def test_packed_operands_give_the_same_bits(name):
    module, rng, packed = isa.product_kernels(name), np.random.default_rng(11), 0
    for _ in range(150):
        (left, right, result), batch, a, b, (m, n, k) = case(rng)
        outs = [np.full((*batch, m, n), fill, DTYPES[result]) for fill in (3, 7)]
        kernel = module.product_kernel(
            (left, right), (result,), batch_shape=batch, m=m, n=n, k=k,
            strides=[x.strides for x in (a, b, outs[0])],
        )  # fmt: skip
        if (packing := kernel.packing) is None:
            continue
        place = packing.place
        taker, (form, guard) = packing.kernel(), aligned(packing.nbytes)
        operand = (a, b)[place]
        packing.pack(operand.ctypes.data, form.ctypes.data)
        assert (guard == 0xA5).all()
        assert taker.packing is None
        calls = [[(x.ctypes.data, x.shape, x.strides) for x in (a, b, out)] for out in outs]
        calls[1][place] = (form.ctypes.data, operand.shape, operand.strides)
        assert module.run(kernel, calls[0]) == 0
        assert module.run(taker, calls[1], chunks=int(rng.integers(1, 5))) == 0
        assert outs[0].tobytes() == outs[1].tobytes(), (left, right, result, batch, m, n, k)
        packed += 1
    assert packed > 90


def test_operands_that_panels_cannot_hold_are_read_as_they_lie():
    module = isa.product_kernels()
    mixed = module.product_kernel(("float64", "float32"), ("float64",), m=8, n=64, k=8)
    rounded = module.product_kernel(
        ("float32", "float32"), ("float32",), m=8, n=64, k=8, round_inputs_to_half=True
    )
    nothing = module.product_kernel(("float32", "float32"), ("float32",), m=8, n=64, k=0)
    assert [kernel.packing for kernel in (mixed, rounded, nothing)] == [None] * 3
