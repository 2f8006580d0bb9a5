/* One micro-kernel; `microkernel.h` includes this once for each kind of operands, and says what
 *
 *     TILE_TARGET                 attributes of the functions
 *     OPERAND, OPERAND_LANES      an element of a panel, and how many lie in a register
 *     RESULT, VEC                 a sum, and a register of them
 *     BY_ROW, BY_COLUMNS          registers of an element of A, of elements of B, whatever these are
 *     MULTIPLY_ADD, ZERO, LOAD, ADD, STORE
 *     TILE_KINDS                  how many kinds of elements an operand may have that is no panel yet
 *     NAME                        makes names
 *
 * are. Loops of fixed length are unrolled, so that sums stay in registers.
 */

/* `kind` is what the elements of B are, IN_PANEL where they are a panel's. Of any others a panel is made
 * on the way (`copy`): the registers that it comes from are there anyway. The columns beside these, which are
 * likely to be the next ones, come to the cache meanwhile. */
TILE_TARGET INLINED void NAME(sized)(const int rows, const int vectors, const int kind, ptrdiff_t depth,
                                     const OPERAND *a, const char *b, ptrdiff_t b_step, OPERAND *copy,
                                     RESULT *out, ptrdiff_t out_step, int add) {
    VEC sums[TILE_ROWS][TILE_VECTORS];
    const int lane = kind == IN_PANEL ? (int)sizeof(OPERAND) : bytes_of(kind);
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++) {
        __builtin_prefetch(out + i * out_step, 1);
        if (vectors > 1) __builtin_prefetch(out + i * out_step + OPERAND_LANES, 1);
#pragma GCC unroll 4
        for (int j = 0; j < vectors; j++) sums[i][j] = ZERO;
    }
    for (ptrdiff_t k = 0; k < depth; k++) {
        __typeof__(BY_COLUMNS(kind, b)) columns[TILE_VECTORS];
#pragma GCC unroll 4
        for (int j = 0; j < vectors; j++) columns[j] = BY_COLUMNS(kind, b + j * OPERAND_LANES * lane);
        if (kind != IN_PANEL) {
#pragma GCC unroll 4
            for (int j = 0; j < vectors; j++) {
                STORE_OPERAND(copy + j * OPERAND_LANES, columns[j]);
                if (j * OPERAND_LANES * lane % 64 == 0)
                    __builtin_prefetch(b + (vectors + j) * OPERAND_LANES * lane);
            }
            copy += vectors * OPERAND_LANES;
        }
#pragma GCC unroll 16
        for (int i = 0; i < rows; i++) {
            const __typeof__(BY_ROW(a)) one = BY_ROW(a + i);
#pragma GCC unroll 4
            for (int j = 0; j < vectors; j++) sums[i][j] = MULTIPLY_ADD(one, columns[j], sums[i][j]);
        }
        a += rows;
        b += b_step;
    }
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
        for (int j = 0; j < vectors; j++) {
            RESULT *place = out + i * out_step + j * OPERAND_LANES;
            VEC sum = sums[i][j];
            if (add) sum = ADD(LOAD(place), sum);
            STORE(place, sum);
        }
}

#define TILE_ARGUMENTS \
    ptrdiff_t depth, const OPERAND *a, const char *b, ptrdiff_t b_step, OPERAND *copy, RESULT *out, \
            ptrdiff_t out_step, int add
typedef void (*NAME(tile_fn))(TILE_ARGUMENTS);

#define TILE_SIZED(rows, vectors, kind, of) \
    TILE_TARGET static void NAME(tile_##rows##_##vectors##_##of)(TILE_ARGUMENTS) { \
        NAME(sized)(rows, vectors, kind, depth, a, b, b_step, copy, out, out_step, add); \
    }
#if TILE_KINDS == 3
#define TILES_OF(rows, vectors) \
    TILE_SIZED(rows, vectors, IN_PANEL, panel) TILE_SIZED(rows, vectors, OF_F32, f32) \
    TILE_SIZED(rows, vectors, OF_F16, f16) TILE_SIZED(rows, vectors, OF_BF16, bf16)
#define ENTRY(rows, vectors) \
    { NAME(tile_##rows##_##vectors##_panel), NAME(tile_##rows##_##vectors##_f32), \
      NAME(tile_##rows##_##vectors##_f16), NAME(tile_##rows##_##vectors##_bf16) }
#else
#define TILES_OF(rows, vectors) TILE_SIZED(rows, vectors, IN_PANEL, panel)
#define ENTRY(rows, vectors) { NAME(tile_##rows##_##vectors##_panel) }
#endif
#define BOTH(rows) TILES_OF(rows, 1) TILES_OF(rows, 2)
BOTH(1) BOTH(2) BOTH(3) BOTH(4)
#if TILE_ROWS > 4
BOTH(5) BOTH(6)
#endif
#if TILE_ROWS > 6
BOTH(7) BOTH(8) BOTH(9) BOTH(10) BOTH(11) BOTH(12) BOTH(13) BOTH(14)
#endif
#undef BOTH

#define BOTH(rows) { ENTRY(rows, 1), ENTRY(rows, 2) }
static const NAME(tile_fn) NAME(tiles)[TILE_ROWS][TILE_VECTORS][TILE_KINDS + 1] = {
    BOTH(1), BOTH(2), BOTH(3), BOTH(4),
#if TILE_ROWS > 4
    BOTH(5), BOTH(6),
#endif
#if TILE_ROWS > 6
    BOTH(7), BOTH(8), BOTH(9), BOTH(10), BOTH(11), BOTH(12), BOTH(13), BOTH(14),
#endif
};

/* The tile of up to TILE_ROWS rows and TILE_VECTORS registers of columns; with `add`, on top of what is
 * there. */
static inline void NAME(tile)(int rows, int vectors, ptrdiff_t depth, const OPERAND *a, const OPERAND *b,
                              RESULT *out, ptrdiff_t out_step, int add) {
    NAME(tiles)[rows - 1][vectors - 1][IN_PANEL](depth, a, (const char *)b,
                                                 vectors * OPERAND_LANES * (ptrdiff_t)sizeof *b, NULL, out,
                                                 out_step, add);
}

#undef BOTH
#undef ENTRY
#undef TILES_OF
#undef TILE_SIZED
#undef TILE_ARGUMENTS
#undef TILE_KINDS
#undef TILE_TARGET
#undef OPERAND
#undef OPERAND_LANES
#undef RESULT
#undef VEC
#undef BY_ROW
#undef BY_COLUMNS
#undef MULTIPLY_ADD
#undef ZERO
#undef LOAD
#undef ADD
#undef STORE
#undef STORE_OPERAND
#undef NAME
