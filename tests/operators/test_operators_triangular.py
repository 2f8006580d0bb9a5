"""Systems whose matrix is a triangle, against substitution in fractions and NumPy's solver."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from calls import NULLPTR, empty, refused, run, tensor
from cases import each as named

import aclnn
from aclnn import aclDataType as T

pytestmark = pytest.mark.each_instruction_set

INVALID = 161002
SWITCHES = list(itertools.product((False, True), repeat=3))


def systems(n, wide, dtype, batch=(), seed=0):
    """With a diagonal that keeps them well-conditioned, and numbers in the other triangle, too."""
    rng = np.random.default_rng(seed)
    a = rng.standard_normal((*batch, n, n)) / n
    a[..., range(n), range(n)] += 2
    return rng.standard_normal((*batch, n, wide)).astype(dtype), a.astype(dtype)


def matrix_of(a, upper, transpose, unit):
    made = np.triu(a) if upper else np.tril(a)
    if unit:
        made[..., range(a.shape[-1]), range(a.shape[-1])] = 1
    return made.swapaxes(-1, -2) if transpose else made


def residue(matrix, x, b):
    """The largest error of an equation, in exact arithmetic."""
    rows, columns = x.shape
    exact = [[Fraction(float(one)) for one in row] for row in matrix]
    worst = Fraction(0)
    for i, j in itertools.product(range(rows), range(columns)):
        left = sum(exact[i][k] * Fraction(float(x[k, j])) for k in range(rows))
        worst = max(worst, abs(left - Fraction(float(b[i, j]))))
    return float(worst)


@named(("upper", "transpose", "unit"), SWITCHES)
@named("dtype", [np.float32, np.float64])
def test_solutions(dtype, upper, transpose, unit):
    for n, wide in ((1, 1), (3, 2), (9, 33), (40, 70)):
        b, a = systems(n, wide, dtype, seed=n)
        x, copy = aclnn.triangular_solve(b, a, upper, transpose, unit)
        matrix = matrix_of(a.astype(np.float64), upper, transpose, unit)
        wanted = np.linalg.solve(matrix, b.astype(np.float64))
        bound = 1e-13 if dtype == np.float64 else 2**-24
        np.testing.assert_allclose(x, wanted, rtol=bound, atol=1e-12 if n > 9 else 1e-14)
        assert copy.dtype == x.dtype == dtype
        np.testing.assert_array_equal(copy, a)
        if n == 9:
            assert residue(matrix, x, b) < 64 * np.finfo(dtype).eps


@named(("upper", "transpose", "unit"), SWITCHES)
def test_batches_broadcast_whatever_their_strides(upper, transpose, unit):
    b, a = systems(5, 3, np.float32, (4, 1), 7)
    b = np.ascontiguousarray(b.swapaxes(-1, -2)).swapaxes(-1, -2)
    a = np.asfortranarray(a[:, 0])[:2]
    x, copy = aclnn.triangular_solve(b, a, upper, transpose, unit)
    assert x.shape == (4, 2, 5, 3)
    assert copy.shape == (4, 2, 5, 5)
    for i, j in np.ndindex(4, 2):
        alone = aclnn.triangular_solve(b[i, 0], a[j], upper, transpose, unit)
        np.testing.assert_array_equal(x[i, j], alone[0])
        np.testing.assert_array_equal(copy[i, j], a[j])


def test_solutions_do_not_depend_on_threads():
    b, a = systems(30, 100, np.float32, (3,))
    before = aclnn.get_num_threads()
    found = []
    for threads in (1, 3):
        aclnn.set_num_threads(threads)
        found.append(aclnn.triangular_solve(b, a)[0])
    aclnn.set_num_threads(before)
    np.testing.assert_array_equal(*found)


def test_half_precision_is_that_of_float32_rounded():
    b, a = systems(6, 3, np.float16)
    x, copy = aclnn.triangular_solve(b, a)
    wide = aclnn.triangular_solve(b.astype(np.float32), a.astype(np.float32))[0]
    np.testing.assert_array_equal(x, wide.astype(np.float16))
    np.testing.assert_array_equal(copy, a)


def test_the_other_triangle_and_a_unit_diagonal_are_not_read():
    b, a = systems(4, 2, np.float32)
    spoilt = a.copy()
    spoilt[np.triu_indices(4)] = np.nan
    x, _ = aclnn.triangular_solve(b, spoilt, False, False, True)
    np.testing.assert_array_equal(x, aclnn.triangular_solve(b, a, False, False, True)[0])


def test_a_zero_on_the_diagonal():
    x, _ = aclnn.triangular_solve(np.float32([[1, 0], [2, 3]]), np.float32([[0, 0], [0, 1]]))
    np.testing.assert_array_equal(x, [[np.inf, np.nan], [2, 3]])


def test_both_phases_with_and_without_the_copy():
    b, a = systems(3, 2, np.float32)
    out, copy = np.empty_like(b), np.empty_like(a)
    run(
        "aclnnTriangularSolve", tensor(b), tensor(a), False, False, False, tensor(out), tensor(copy)
    )
    np.testing.assert_array_equal(out, aclnn.triangular_solve(b, a, False)[0])
    np.testing.assert_array_equal(copy, a)
    again = np.empty_like(b)
    run("aclnnTriangularSolve", tensor(b), tensor(a), False, False, False, tensor(again), None)
    np.testing.assert_array_equal(again, out)


@named("shapes", [((0, 2), (0, 0)), ((3, 0), (3, 3)), ((0, 3, 2), (3, 3))])
def test_without_elements(shapes):
    x, _ = aclnn.triangular_solve(*[np.ones(shape, np.float32) for shape in shapes])
    assert x.shape == shapes[0]


@named(
    ("changed", "words"),
    [
        ({"self": empty((3, 2), T.ACL_FLOAT16)}, "self has dtype"),
        ({"A": empty((3, 3), T.ACL_DOUBLE)}, "that of self"),
        ({"xOut": empty((3, 2), T.ACL_DOUBLE)}, "that of self"),
        ({"mOut": empty((3, 3), T.ACL_DOUBLE)}, "that of self"),
        ({"self": empty((3,))}, "dimensions"),
        ({"A": empty((3,))}, "dimensions"),
        ({"A": empty((3, 4))}, "must be equal"),
        ({"A": empty((4, 4))}, "4 rows"),
        ({"self": empty((2, 3, 2)), "A": empty((3, 3, 3))}, "do not broadcast"),
        ({"xOut": empty((2, 2))}, "shape"),
        ({"mOut": empty((3, 2))}, "shape"),
    ],
)
def test_what_is_refused(changed, words):
    given = {"self": empty((3, 2)), "A": empty((3, 3)), "upper": True, "transpose": False}
    given |= {"unitriangular": False, "xOut": empty((3, 2)), "mOut": empty((3, 3))}
    status, message = refused("aclnnTriangularSolve", *(given | changed).values())
    assert status == INVALID
    assert words in message


def test_null_and_units_of_double():
    double = [empty((3, n), T.ACL_DOUBLE) for n in (2, 3)]
    given = [*double, True, False, True, double[0], double[1]]
    status, message = refused("aclnnTriangularSolve", *given)
    assert status == INVALID
    assert "unitriangular" in message
    assert refused("aclnnTriangularSolve", None, *given[1:])[0] == NULLPTR


def test_gradients_are_those_of_pytorchs_solver():
    torch = pytest.importorskip("torch")
    import aclnn.torch

    for upper, transpose, unit in SWITCHES:
        given = [torch.from_numpy(one) for one in systems(4, 3, np.float64, (2,))]
        ours, theirs = ([one.clone().requires_grad_() for one in given] for _ in range(2))
        x = aclnn.triangular_solve(*ours, upper, transpose, unit)[0]
        matrix = theirs[1].mT if transpose else theirs[1]
        y = torch.linalg.solve_triangular(
            matrix, theirs[0], upper=upper != transpose, unitriangular=unit
        )
        for one in (x, y):
            (one * torch.arange(3.0)).sum().backward()
        for mine, other in zip(ours, theirs, strict=True):
            torch.testing.assert_close(mine.grad, other.grad)
