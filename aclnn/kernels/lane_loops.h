/* Loops by lanes, over whatever formula: load, compute, round and store, two registers at a time.
 *
 * Halves are rounded from a float whose error has a bound; where that leaves two candidates, the loop
 * notes a doubt.
 */
#ifndef ACLNN_LANE_LOOPS_H
#define ACLNN_LANE_LOOPS_H

#include "lane_abi.h"
#include "lane_params.h"
#include "lane_suspects.h"

#ifdef LANES

/* What loops find besides that were made for operands without it: an element outside of the formula's bounds,
 * a zero. Bits beside those of `lane_abi.h`, which tiles get to see. */
enum { OUTSIDE = 16, ZEROS = 32 };

/* Bytes between what is read and what is prefetched: into the cache nearby, and, a page ahead, into the one
 * behind it: what processors prefetch by themselves ends with a page. */
enum { NEAR_AHEAD = 1024, FAR_AHEAD = 4096 };

/* Where operands are: in the nearest cache, and there, too, across its lines; in a core's others; or beyond.
 * A loop for each, because what is tested in a loop is tested again and again. */
typedef enum { HERE, SHIFTED, NEAR, FAR } distance_t;

/* By way of integers: what lies ahead may lie beyond the array, and is not touched. */
INLINED void prefetch_ahead(const char *p, ptrdiff_t offset, ptrdiff_t n, distance_t distance) {
    for (ptrdiff_t k = 0; k < n; k += 64) {
        uintptr_t here = (uintptr_t)p + (uintptr_t)(offset + k);
        __builtin_prefetch((const void *)(here + NEAR_AHEAD), 0, 3);
        if (distance == FAR) __builtin_prefetch((const void *)(here + FAR_AHEAD), 0, 2);
    }
}

static inline ptrdiff_t size_of(kind_t kind) { return kind == SINGLE ? 4 : 2; }

INLINED lanes_t from_kind(kind_t kind, halves_t h) {
    return kind == HALF ? from_halves(h) : from_bfloats(h);
}
INLINED lanes_t load_kind(kind_t kind, const char *p) {
    if (kind == SINGLE) return lanes_load(p);
    return from_kind(kind, halves_load(p));
}

/* The upper halves become those of x rounded; see `rounded`. */
INLINED ints_t rounded_bfloats(lanes_t x, float bound, uint16_t *doubt) {
    if (bound == 0) return nearest_upper(bits_of(x));
    /* Within so many units of the middle of two neighbours; elsewhere as many do not matter. */
    const uint32_t reach = bound < 4e-7f ? 8 : 16;
    ints_t above = int_plus(bits_of(x), ints_of(0x8000u + reach));
    *doubt = (uint16_t)which_miss(above, ints_of(0x10000u - 2 * reach));
    return above;
}

/* Floats to halves of a kind; a NaN stays one, with what its upper half says, and becomes quiet. */
INLINED halves_t narrowed(kind_t kind, lanes_t x) {
    if (kind == HALF) return to_halves(x);
    lanes_t rounded = floats_of(nearest_upper(bits_of(x)));
    return upper_halves(bits_of(choose(is_nan(x), plus(x, x), rounded)));
}

/* Which halves are not the same, `low` of x a bound less and those of x a bound more. */
INLINED uint16_t doubts_of(halves_t low, lanes_t x, float bound) {
    uint16_t high[LANES] __attribute__((aligned(LANES * 2)));
    put_halves(high, times(x, lanes_of(1.0f + bound)));
    return (uint16_t)which_differ(low, halves_load(high));
}

/* Round x to halves. `bound` is of its relative error; 0: it was rounded to odd, or is exact. */
INLINED halves_t rounded(kind_t kind, lanes_t x, float bound, uint16_t *doubt) {
    if (kind == HALF && bound == 0) return to_halves(x);
    if (kind == HALF) {
        halves_t low = to_halves(times(x, lanes_of(1.0f - bound)));
        *doubt = doubts_of(low, x, bound);
        return low;
    }
    return upper_halves(rounded_bfloats(x, bound, doubt));
}

/* The same of float16, to where they belong. */
INLINED void put_rounded(char *target, lanes_t x, float bound, uint16_t *doubt) {
    put_halves(target, times(x, lanes_of(1.0f - bound)));
    *doubt = doubts_of(halves_load(target), x, bound);
}

typedef lanes_t (*lane_formula)(const params_t *, lanes_t, lanes_t, seen_t *);

/* Ask for what comes after the n bytes at `offset` of operands that are alike. */
INLINED void prefetch_operands(const span_t *s, ptrdiff_t offset, ptrdiff_t n, distance_t distance) {
    if (distance == HERE || distance == SHIFTED) return;
    if (s->prefetch & PREFETCH_A) prefetch_ahead(s->a, offset, n, distance);
    if (s->prefetch & PREFETCH_B) prefetch_ahead(s->b, offset, n, distance);
    if (distance == NEAR && s->prefetch & PREFETCH_OUT) prefetch_ahead(s->out, offset, n, distance);
}

/* How many bytes of results come before the first multiple of a register's size, in whole results; 0
 * for short runs, where it does not pay. A register that crosses a line of the cache takes twice as
 * long to store. So the first register is computed where the results begin, and those after it from
 * that multiple on: some results of the first are computed twice. Results may lie across multiples
 * themselves; then registers begin a part of a result before them. */
static inline ptrdiff_t bytes_to_register(const span_t *s, ptrdiff_t size) {
    enum { WIDE = LANES * 4 };
    ptrdiff_t head = (ptrdiff_t)(-(uintptr_t)s->out & (WIDE - 1u));
    return s->n * size >= 16 * WIDE ? head - head % size : 0;
}

INLINED distance_t distance_of(const span_t *s) {
    if (s->stream || s->prefetch & PREFETCH_FAR) return FAR;
    return s->prefetch ? NEAR : HERE;
}

/* To load floats across two lines takes as long as two loads, which for two operands is more than it takes to
 * compute. Small arrays begin anywhere: theirs are read a line at a time, and a register is picked from the
 * last two. No line is read that has no element. */
typedef struct { const char *lines; ints_t picked; lanes_t last; } shifted_t;

#if LANES == 16
enum { SHIFTED_FROM = 2048 }; /* elements: of fewer the nearest cache holds all, which hides it */
INLINED int is_shifted(const span_t *s, ptrdiff_t i) {
    uintptr_t a = (uintptr_t)s->a + 4 * (uintptr_t)i, b = (uintptr_t)s->b + 4 * (uintptr_t)i;
    return s->n - i >= SHIFTED_FROM && a != b && (a | b) % 64 != 0 && (a | b) % 4 == 0;
}
/* An operand from element `i` on, read a register after the other. */
INLINED shifted_t shifted_from(const char *operand, ptrdiff_t i) {
    unsigned before = (unsigned)((uintptr_t)(operand + 4 * i) % 64 / 4);
    /* Where a register is a line, it is all of the next one. */
    shifted_t from = { operand - 4 * (before ? before : LANES), numbers_from(before ? before : LANES) };
    from.last = before ? lanes_load(from.lines + 4 * i) : lanes_of(0.0f);
    return from;
}
INLINED lanes_t next_shifted(shifted_t *from, ptrdiff_t i) {
    lanes_t next = lanes_load(from->lines + 4 * (i + LANES));
    lanes_t register_of_both = pick_of_both(from->last, from->picked, next);
    from->last = next;
    return register_of_both;
}
#else
INLINED int is_shifted(const span_t *s, ptrdiff_t i) { return 0; }
INLINED shifted_t shifted_from(const char *operand, ptrdiff_t i) { return (shifted_t){ operand }; }
INLINED lanes_t next_shifted(shifted_t *from, ptrdiff_t i) { return lanes_of(0.0f); }
#endif

/* `shifted`: the operands, or NULL where they are loaded from where they lie. */
INLINED lanes_t at(
        lane_formula formula, kind_t in, const span_t *s, ptrdiff_t i, seen_t *seen, shifted_t *shifted) {
    lanes_t a = shifted ? next_shifted(&shifted[0], i) : load_kind(in, s->a + i * size_of(in)), b = a;
    if (s->a != s->b) b = shifted ? next_shifted(&shifted[1], i) : load_kind(in, s->b + i * size_of(in));
    return formula(s->params, a, b, seen);
}

/* Loads and rounds two registers of bfloats, which take turns in memory. */
INLINED ints_t at_interleaved(
        lane_formula formula, limits_t limits, const span_t *s, ptrdiff_t i, seen_t *seen) {
    const ints_t upper = ints_of(0xffff0000u);
    uint16_t *doubt = s->doubts + i / LANES;
    ints_t a = ints_load(s->a + 2 * i), b = s->a == s->b ? a : ints_load(s->b + 2 * i);
    lanes_t even_a = floats_of(int_left(a, 16)), odd_a = floats_of(int_and(a, upper));
    lanes_t even_b = floats_of(int_left(b, 16)), odd_b = floats_of(int_and(b, upper));
    lanes_t even = formula(s->params, even_a, even_b, &seen[0]), shown = seen[0].shown;
    lanes_t odd = formula(s->params, odd_a, odd_b, &seen[!limits.as_one]);
    if (limits.finite) see_finite(&seen[0], shown, seen[!limits.as_one].shown);
    return interleave_upper(rounded_bfloats(even, limits.bound, doubt),
                       rounded_bfloats(odd, limits.bound, doubt + 1));
}

/* Results of two registers that follow one another. */
typedef struct { lanes_t low, high; } both_t;

INLINED both_t at_both(
        lane_formula formula, kind_t in, limits_t limits, const span_t *s, ptrdiff_t i, seen_t *seen,
        shifted_t *shifted) {
    seen_t *other = &seen[!limits.as_one];
    lanes_t low = at(formula, in, s, i, &seen[0], shifted), shown = seen[0].shown;
    both_t both = { low, at(formula, in, s, i + LANES, other, shifted) };
    if (limits.finite) see_finite(&seen[0], shown, other->shown);
    return both;
}

INLINED ints_t both_rounded(kind_t kind, both_t both, float bound, uint16_t *doubt) {
    halves_t low = rounded(kind, both.low, bound, doubt);
    return both_halves(low, rounded(kind, both.high, bound, doubt + 1));
}

INLINED void put_lanes(char *target, lanes_t x, int stream) {
    if (stream) stream_lanes(target, x);
    else lanes_store(target, x);
}
INLINED void put_line(char *target, ints_t line, int stream) {
    if (stream) ints_stream(target, line);
    else ints_store(target, line);
}
/* A line of a kind, at `offset` among others: as it is, or as two lines of floats. */
INLINED void put_kind(char *out, ptrdiff_t offset, ints_t line, kind_t kind, kind_t stored, int stream) {
    if (stored == kind) {
        put_line(out + offset, line, stream);
        return;
    }
    char *target = out + 2 * offset;
    put_lanes(target, from_kind(kind, low_halves(line)), stream);
    put_lanes(target + 4 * LANES, from_kind(kind, high_halves(line)), stream);
}

/* Whether results are staged until their doubts are settled, before they go past the cache. */
INLINED int is_staged(kind_t out, kind_t stored, limits_t limits, const span_t *s) {
    return out != SINGLE && stored == out && limits.bound != 0 && s->staging;
}
/* Takes the place of a staged line, which is streamed. */
INLINED void put_staged(const span_t *s, ptrdiff_t offset, ints_t line) {
    if (s->staged_target) ints_stream(s->staged_target + offset, ints_load(s->staging + offset));
    ints_store(s->staging + offset, line);
}
/* A line of halves, i elements from the beginning. */
INLINED void put_halves_line(
        kind_t out, kind_t stored, limits_t limits, const span_t *s, ptrdiff_t i, ints_t line, int stream,
        seen_t *seen) {
    if (limits.nan) see_short_most(seen, line);
    if (stream && is_staged(out, stored, limits, s)) put_staged(s, 2 * i, line);
    else put_kind(s->out, 2 * i, line, out, stored, stream);
}

/* Results of two registers, i elements from the beginning, as what they are stored as. */
INLINED void put_both(
        kind_t out, kind_t stored, limits_t limits, const span_t *s, ptrdiff_t i, both_t both, int stream,
        seen_t *seen) {
    char *target = s->out + i * size_of(stored);
    uint16_t *doubt = s->doubts + i / LANES;
    if (out == SINGLE && stored == SINGLE) {
        put_lanes(target, both.low, stream);
        put_lanes(target + 4 * LANES, both.high, stream);
        return;
    }
    if (out == SINGLE) {
        put_line(target, both_halves(narrowed(stored, both.low), narrowed(stored, both.high)), stream);
        return;
    }
    if (out == HALF && stored == HALF && limits.bound != 0 && !limits.nan && !stream) {
        put_rounded(target, both.low, limits.bound, doubt);
        put_rounded(target + 2 * LANES, both.high, limits.bound, doubt + 1);
        return;
    }
    ints_t line = both_rounded(out, both, limits.bound, doubt);
    put_halves_line(out, stored, limits, s, i, line, stream, seen);
}

/* Two registers at a time, so that halves fill a line. */
INLINED ptrdiff_t over_pairs(
        lane_formula formula, kind_t in, kind_t out, kind_t stored, limits_t limits,
        distance_t distance, const span_t *s, ptrdiff_t i, seen_t *all_seen) {
    const int stream = distance == FAR && s->stream;
    seen_t seen[2] = { all_seen[0], all_seen[1] }; /* in registers */
    shifted_t shifted[2];
    if (distance == SHIFTED) {
        shifted[0] = shifted_from(s->a, i);
        shifted[1] = shifted_from(s->b, i);
    }
    for (; i + 2 * LANES <= s->n; i += 2 * LANES) {
        prefetch_operands(s, i * size_of(in), 2 * LANES * size_of(in), distance);
        if (in != BFLOAT) {
            both_t both = at_both(formula, in, limits, s, i, seen, distance == SHIFTED ? shifted : NULL);
            put_both(out, stored, limits, s, i, both, stream, seen);
            continue;
        }
        ints_t line = at_interleaved(formula, limits, s, i, seen);
        put_halves_line(out, stored, limits, s, i, line, stream, seen);
    }
    all_seen[0] = seen[0];
    all_seen[1] = seen[1];
    return i;
}

/* One register, for what is left of a row. */
INLINED void over_one(
        lane_formula formula, kind_t in, kind_t out, kind_t stored, limits_t limits,
        const span_t *s, seen_t *seen) {
    lanes_t x = at(formula, in, s, 0, seen, NULL);
    if (limits.finite) see_finite(seen, seen->shown, lanes_of(0.0f));
    if (out == SINGLE) {
        if (stored == SINGLE) lanes_store(s->out, x);
        else halves_store(s->out, narrowed(stored, x));
        return;
    }
    halves_t h = rounded(out, x, limits.bound, s->doubts);
    if (limits.nan) see_short_most(seen, both_halves(h, h));
    if (stored == SINGLE) lanes_store(s->out, from_kind(out, h));
    else halves_store(s->out, h);
}

INLINED span_t span_at(const span_t *s, ptrdiff_t i, ptrdiff_t in_size, ptrdiff_t out_size) {
    span_t part = {
        s->a + i * in_size, s->b + i * in_size, s->out + i * out_size, LANES, s->params, s->hints,
        s->doubts + i / LANES, 0, NULL, NULL, 0, s->stored,
    };
    return part;
}

/* Bytes of numbers that no formula minds: 0.53 or 4e-5, whatever the type. */
enum { FILLER = 0x38 };

/* The last elements, fewer than a register holds, are computed together with some before them;
 * where these have doubts, which are numbered, or there are none, by way of copies that are filled
 * up. */
INLINED int over_lanes(
        lane_formula formula, kind_t in, kind_t out, kind_t stored, limits_t limits, span_t s) {
    seen_t seen[2] = { nothing_seen(limits.nonzero), nothing_seen(limits.nonzero) };
    distance_t distance = distance_of(&s);
    /* Doubts are numbered from the beginning: halves begin there. */
    ptrdiff_t done = out == SINGLE && stored == SINGLE ? bytes_to_register(&s, 4) / 4 : 0;
    if (done) over_one(formula, in, out, stored, limits, &s, &seen[0]);
    if (out == SINGLE && distance == HERE && is_shifted(&s, done)) distance = SHIFTED;
    done = distance == FAR       ? over_pairs(formula, in, out, stored, limits, FAR, &s, done, seen)
           : distance == NEAR    ? over_pairs(formula, in, out, stored, limits, NEAR, &s, done, seen)
           : distance == SHIFTED ? over_pairs(formula, in, out, stored, limits, SHIFTED, &s, done, seen)
                                 : over_pairs(formula, in, out, stored, limits, HERE, &s, done, seen);
    if (is_staged(out, stored, limits, &s)) s.out = s.staging;
    while (done < s.n) {
        /* A line that went past the cache must not be written again. */
        if (out == SINGLE && !s.stream && s.n >= LANES && s.n - done < LANES) done = s.n - LANES;
        ptrdiff_t rest = s.n - done;
        span_t last = span_at(&s, done, size_of(in), size_of(stored));
        char a[LANES * 4], b[LANES * 4], result[LANES * 4];
        if (rest < LANES) {
            ints_store(a, first_bytes(last.a, rest * size_of(in), FILLER));
            if (last.a != last.b) ints_store(b, first_bytes(last.b, rest * size_of(in), FILLER));
            last.b = last.a == last.b ? a : b;
            last.a = a;
            last.out = result;
        }
        over_one(formula, in, out, stored, limits, &last, &seen[0]);
        ptrdiff_t size = size_of(stored);
        if (rest < LANES) put_first_bytes(s.out + done * size, rest * size, ints_load(result));
        done += LANES;
    }
    seen_t all = seen_by_both(&seen[0], &seen[1]);
    if (limits.outside && negative_seen(&all)) return OUTSIDE;
    if (limits.nonzero && zero_seen(&all)) return ZEROS;
    if (out != SINGLE && limits.nan && nan_seen(&all, out == HALF ? 0x7c00u : 0x7f80u)) return SUSPECTS;
    return unusual_seen(&all, limits) ? SUSPECTS : 0;
}

static inline int any_doubt(const uint16_t *doubts, ptrdiff_t n) {
    unsigned found = 0;
    for (ptrdiff_t i = 0; i < (n + LANES - 1) / LANES; i++) found |= doubts[i];
    return found != 0;
}

#define LOOP(name, formula, in, out, limits, extreme) \
    static int name(const span_t *s) { \
        int found = s->stored == out       ? over_lanes(formula, in, out, out, limits, *s) \
                    : out != SINGLE        ? over_lanes(formula, in, out, SINGLE, limits, *s) \
                    : s->stored == HALF    ? over_lanes(formula, in, out, HALF, limits, *s) \
                                           : over_lanes(formula, in, out, BFLOAT, limits, *s); \
        int doubts = out != SINGLE && limits.bound != 0 && any_doubt(s->doubts, s->n); \
        int order = in == BFLOAT && out == BFLOAT ? INTERLEAVED : 0; \
        if (is_staged(out, s->stored, limits, s)) found |= STAGED; \
        return found | ((extreme) ? SUSPECTS : 0) | (doubts ? DOUBTS | order : 0); \
    }

INLINED limits_t without_zeros(limits_t limits) {
    limits.nonzero = 1;
    return limits;
}

/* Fewer elements than that are done before it pays to look for zeros among so many. */
enum { FEW_SINGLES = 512, FIRST_SINGLES = 64 };

INLINED zeros_t zeros_among(const char *singles, ptrdiff_t n) {
    unsigned none = 0;
    for (ptrdiff_t i = 0; i < n; i += LANES)
        none |= which_miss(ints_load(singles + 4 * i), ints_of(0x7fffffffu));
    return none ? SOME : NONE;
}

/* Zeros keep their signs, and are not too small: that is a few operations, which are left out until an
 * operand turns out to have zeros. Inputs are never where results go: a block can be computed once more. */
INLINED int by_zeros(const span_t *s, const char *operand, lane_loop nonzero, lane_loop any) {
    hints_t *hints = s->hints;
    if (s->stored != SINGLE || s->n < FEW_SINGLES) return any(s);
    if (hints->zeros == UNKNOWN) hints->zeros = zeros_among(operand, FIRST_SINGLES);
    int found = hints->zeros == NONE ? nonzero(s) : ZEROS;
    if (!(found & ZEROS)) return found;
    hints->zeros = SOME;
    return any(s);
}

/* Floats, whose zeros are those of an operand. */
#define SINGLE_LOOP(name, formula, operand, limits, extreme) \
    LOOP(name##_any, formula, SINGLE, SINGLE, limits, extreme) \
    static int name##_nonzero(const span_t *s) { \
        int found = over_lanes(formula, SINGLE, SINGLE, SINGLE, without_zeros(limits), *s); \
        return found | ((extreme) ? SUSPECTS : 0); \
    } \
    static int name(const span_t *s) { return by_zeros(s, s->operand, name##_nonzero, name##_any); }

/* Operands that are all alike, then halves from float32 buffers. The forms for halves may stand on
 * inputs that were halves; `from_float` does not. */
#define LOOPS(name, half, bfloat, from_float, operand, limits, extreme) \
    SINGLE_LOOP(name##_single_loop, name##_single_lanes, operand, limits, extreme) \
    HALF_LOOPS(name, half, bfloat, from_float, limits, extreme)
#define HALF_LOOPS(name, half, bfloat, from_float, limits, extreme) \
    LOOP(name##_half_loop, half, HALF, HALF, limits, extreme) \
    LOOP(name##_bfloat_loop, bfloat, BFLOAT, BFLOAT, limits, extreme) \
    LOOP(name##_to_half_loop, from_float, SINGLE, HALF, limits, extreme) \
    LOOP(name##_to_bfloat_loop, from_float, SINGLE, BFLOAT, limits, extreme)
#define LOOPS_TABLE(name) \
    static const lane_loops_t name##_loops = { \
        name##_single_loop, name##_half_loop, name##_bfloat_loop, name##_to_half_loop, name##_to_bfloat_loop, \
    };

/* What needs no more than bits, or is rounded at once, goes by lines: registers of memory, whatever
 * they hold. Span and the formula's own params are copied: they might lie where results go, for all that is
 * known of pointers, and would be read again for every line. */
typedef ints_t (*line_formula)(const void *params, const char *a, const char *b, seen_t *seen);

INLINED ptrdiff_t over_whole_lines(
        line_formula formula, kind_t kind, kind_t stored, const span_t *s, const void *params,
        ptrdiff_t i, ptrdiff_t bytes, distance_t distance, seen_t *seen) {
    enum { WIDE = LANES * 4 };
    const int stream = distance == FAR && s->stream;
    for (; i + 2 * WIDE <= bytes; i += 2 * WIDE) {
        prefetch_operands(s, i, 2 * WIDE, distance);
        ints_t line = formula(params, s->a + i, s->b + i, seen);
        ints_t next = formula(params, s->a + i + WIDE, s->b + i + WIDE, seen);
        put_kind(s->out, i, line, kind, stored, stream);
        put_kind(s->out, i + WIDE, next, kind, stored, stream);
    }
    for (; i + WIDE <= bytes; i += WIDE)
        put_kind(s->out, i, formula(params, s->a + i, s->b + i, seen), kind, stored, stream);
    return i;
}

INLINED int over_lines(line_formula formula, kind_t kind, kind_t stored, span_t s, const void *params) {
    enum { WIDE = LANES * 4 };
    const ptrdiff_t size = size_of(kind);
    seen_t seen = nothing_seen(0);
    ptrdiff_t bytes = s.n * size;
    distance_t distance = distance_of(&s);
    ptrdiff_t i = kind == stored ? bytes_to_register(&s, size) : 0;
    if (i) ints_store(s.out, formula(params, s.a, s.b, &seen));
    i = distance == FAR    ? over_whole_lines(formula, kind, stored, &s, params, i, bytes, FAR, &seen)
        : distance == NEAR ? over_whole_lines(formula, kind, stored, &s, params, i, bytes, NEAR, &seen)
                           : over_whole_lines(formula, kind, stored, &s, params, i, bytes, HERE, &seen);
    if (i < bytes && bytes >= WIDE && !s.stream) {
        i = bytes - WIDE;
        put_kind(s.out, i, formula(params, s.a + i, s.b + i, &seen), kind, stored, 0);
    } else if (i < bytes) {
        char a[WIDE], b[WIDE], result[2 * WIDE];
        ptrdiff_t rest = bytes - i;
        ints_store(a, first_bytes(s.a + i, rest, FILLER));
        ints_store(b, first_bytes(s.b + i, rest, FILLER));
        put_kind(result, 0, formula(params, a, b, &seen), kind, stored, 0);
        if (kind == stored) put_first_bytes(s.out + i, rest, ints_load(result));
        else memcpy(s.out + 2 * i, result, (size_t)(2 * rest));
    }
    /* There is one NaN, and a bfloat up to the least that is normal may have been rounded twice. */
    uint16_t infinity = kind == HALF ? 0x7c00u : 0x7f80u;
    return nan_seen(&seen, infinity) | any_short_at_most(seen.least, 0xffu) ? SUSPECTS : 0;
}

#define LINE_LOOP(name, formula, type, kind) \
    static int name(const span_t *s) { \
        const type params = *OWN_PARAMS(type, s->params); \
        if (s->stored != kind) return over_lines(formula, kind, SINGLE, *s, &params); \
        return over_lines(formula, kind, kind, *s, &params); \
    }

#endif

#endif
