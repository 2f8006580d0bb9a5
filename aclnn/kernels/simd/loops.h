/* Loops by lanes, over whatever formula: load, compute, round and store, two registers at a time.
 *
 * Halves are rounded from a float whose error has a bound; where that leaves two candidates, the loop
 * notes a doubt.
 */
#ifndef ACLNN_SIMD_LOOPS_H
#define ACLNN_SIMD_LOOPS_H

#include "simd/loop_args.h"
#include "simd/params.h"
#include "simd/track.h"

#ifdef LANES

/* What loops find besides that were made for operands without it: an element outside of the formula's bounds,
 * a zero. Bits beside those of `simd/abi.h`, which tiles get to see. */
enum { OUT_OF_DOMAIN = 16, HAS_ZEROS = 32 };

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

static inline ptrdiff_t size_of(elem_type type) { return type == F32 ? 4 : 2; }

INLINED vecf from_f16_type(elem_type type, vech h) {
    return type == F16 ? vf_from_f16(h) : vf_from_bf16(h);
}
INLINED vecf load_elems(elem_type type, const char *p) {
    if (type == F32) return vf_load(p);
    return from_f16_type(type, vh_load(p));
}

/* The upper halves become those of x rounded; see `rounded`. */
INLINED veci rounded_bf16(vecf x, float bound, uint16_t *hard) {
    if (bound == 0) return vi_round_to_upper(vf_bits(x));
    /* Within so many units of the middle of two neighbours; elsewhere as many do not matter. */
    const uint32_t reach = bound < 4e-7f ? 8 : 16;
    veci above = vi_add(vf_bits(x), vi_set(0x8000u + reach));
    *hard = (uint16_t)vi_misses(above, vi_set(0x10000u - 2 * reach));
    return above;
}

/* Floats to halves of a kind; a NaN stays one, with what its upper half says, and becomes quiet. */
INLINED vech narrowed(elem_type type, vecf x) {
    if (type == F16) return vf_to_f16(x);
    vecf rounded = vi_as_floats(vi_round_to_upper(vf_bits(x)));
    return vi_upper_halves(vf_bits(vf_select(vf_is_nan(x), vf_add(x, x), rounded)));
}

/* Which halves are not the same, `low` of x a bound less and those of x a bound more. */
INLINED uint16_t hard_vec(vech low, vecf x, float bound) {
    uint16_t high[LANES] __attribute__((aligned(LANES * 2)));
    vf_store_f16(high, vf_mul(x, vf_set(1.0f + bound)));
    return (uint16_t)vh_differ(low, vh_load(high));
}

/* Round x to halves. `bound` is of its relative error; 0: it was rounded to odd, or is exact. */
INLINED vech rounded(elem_type type, vecf x, float bound, uint16_t *hard) {
    if (type == F16 && bound == 0) return vf_to_f16(x);
    if (type == F16) {
        vech low = vf_to_f16(vf_mul(x, vf_set(1.0f - bound)));
        *hard = hard_vec(low, x, bound);
        return low;
    }
    return vi_upper_halves(rounded_bf16(x, bound, hard));
}

/* The same of float16, to where they belong. */
INLINED void put_rounded(char *target, vecf x, float bound, uint16_t *hard) {
    vf_store_f16(target, vf_mul(x, vf_set(1.0f - bound)));
    *hard = hard_vec(vh_load(target), x, bound);
}

typedef vecf (*vector_formula)(const params_t *, vecf, vecf, track_t *);

/* Ask for what comes after the n bytes at `offset` of operands that are alike. */
INLINED void prefetch_operands(const loop_args *s, ptrdiff_t offset, ptrdiff_t n, distance_t distance) {
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
static inline ptrdiff_t bytes_to_register(const loop_args *s, ptrdiff_t size) {
    enum { WIDE = LANES * 4 };
    ptrdiff_t head = (ptrdiff_t)(-(uintptr_t)s->out & (WIDE - 1u));
    return s->n * size >= 16 * WIDE ? head - head % size : 0;
}

INLINED distance_t distance_of(const loop_args *s) {
    if (s->stream || s->prefetch & PREFETCH_FAR) return FAR;
    return s->prefetch ? NEAR : HERE;
}

/* To load floats across two lines takes as long as two loads, which for two operands is more than it takes to
 * compute. Small arrays begin anywhere: theirs are read a line at a time, and a register is picked from the
 * last two. No line is read that has no element. */
typedef struct { const char *lines; veci pending; vecf last; } shifted_t;

#if LANES == 16
enum { SHIFTED_FROM = 2048 }; /* elements: of fewer the nearest cache holds all, which hides it */
INLINED int is_shifted(const loop_args *s, ptrdiff_t i) {
    uintptr_t a = (uintptr_t)s->a + 4 * (uintptr_t)i, b = (uintptr_t)s->b + 4 * (uintptr_t)i;
    return s->n - i >= SHIFTED_FROM && a != b && (a | b) % 64 != 0 && (a | b) % 4 == 0;
}
/* An operand from element `i` on, read a register after the other. */
INLINED shifted_t shifted_from(const char *operand, ptrdiff_t i) {
    unsigned before = (unsigned)((uintptr_t)(operand + 4 * i) % 64 / 4);
    /* Where a register is a line, it is all of the next one. */
    shifted_t from = { operand - 4 * (before ? before : LANES), vi_count_from(before ? before : LANES) };
    from.last = before ? vf_load(from.lines + 4 * i) : vf_set(0.0f);
    return from;
}
INLINED vecf next_shifted(shifted_t *from, ptrdiff_t i) {
    vecf next = vf_load(from->lines + 4 * (i + LANES));
    vecf register_of_both = vf_lookup_both(from->last, from->pending, next);
    from->last = next;
    return register_of_both;
}
#else
INLINED int is_shifted(const loop_args *s, ptrdiff_t i) { return 0; }
INLINED shifted_t shifted_from(const char *operand, ptrdiff_t i) { return (shifted_t){ operand }; }
INLINED vecf next_shifted(shifted_t *from, ptrdiff_t i) { return vf_set(0.0f); }
#endif

/* `shifted`: the operands, or NULL where they are loaded from where they lie. */
INLINED vecf at(
        vector_formula formula, elem_type in, const loop_args *s, ptrdiff_t i, track_t *track, shifted_t *shifted) {
    vecf a = shifted ? next_shifted(&shifted[0], i) : load_elems(in, s->a + i * size_of(in)), b = a;
    if (s->a != s->b) b = shifted ? next_shifted(&shifted[1], i) : load_elems(in, s->b + i * size_of(in));
    return formula(s->params, a, b, track);
}

/* Loads and rounds two registers of bf16, which take turns in memory. */
INLINED veci at_interleaved(
        vector_formula formula, domain_t domain, const loop_args *s, ptrdiff_t i, track_t *track) {
    const veci upper = vi_set(0xffff0000u);
    uint16_t *hard = s->hard + i / LANES;
    veci a = vi_load(s->a + 2 * i), b = s->a == s->b ? a : vi_load(s->b + 2 * i);
    vecf even_a = vi_as_floats(vi_shift_left(a, 16)), odd_a = vi_as_floats(vi_and(a, upper));
    vecf even_b = vi_as_floats(vi_shift_left(b, 16)), odd_b = vi_as_floats(vi_and(b, upper));
    vecf even = formula(s->params, even_a, even_b, &track[0]), shown = track[0].last;
    vecf odd = formula(s->params, odd_a, odd_b, &track[!domain.share_tracking]);
    if (domain.check_finite) track_finite(&track[0], shown, track[!domain.share_tracking].last);
    return vi_interleave_upper(rounded_bf16(even, domain.rel_error, hard),
                       rounded_bf16(odd, domain.rel_error, hard + 1));
}

/* Results of two registers that follow one another. */
typedef struct { vecf low, high; } both_t;

INLINED both_t at_both(
        vector_formula formula, elem_type in, domain_t domain, const loop_args *s, ptrdiff_t i, track_t *track,
        shifted_t *shifted) {
    track_t *other = &track[!domain.share_tracking];
    vecf low = at(formula, in, s, i, &track[0], shifted), shown = track[0].last;
    both_t both = { low, at(formula, in, s, i + LANES, other, shifted) };
    if (domain.check_finite) track_finite(&track[0], shown, other->last);
    return both;
}

INLINED veci both_rounded(elem_type type, both_t both, float bound, uint16_t *hard) {
    vech low = rounded(type, both.low, bound, hard);
    return vi_join(low, rounded(type, both.high, bound, hard + 1));
}

INLINED void put_vector(char *target, vecf x, int stream) {
    if (stream) vf_stream(target, x);
    else vf_store(target, x);
}
INLINED void put_line(char *target, veci line, int stream) {
    if (stream) vi_stream(target, line);
    else vi_store(target, line);
}
/* A line of a kind, at `offset` among others: as it is, or as two lines of floats. */
INLINED void put_line_as(char *out, ptrdiff_t offset, veci line, elem_type type, elem_type stored, int stream) {
    if (stored == type) {
        put_line(out + offset, line, stream);
        return;
    }
    char *target = out + 2 * offset;
    put_vector(target, from_f16_type(type, vi_low_f16(line)), stream);
    put_vector(target + 4 * LANES, from_f16_type(type, vi_high_f16(line)), stream);
}

/* Whether results are staged until their doubts are settled, before they go past the cache. */
INLINED int is_staged(elem_type out, elem_type stored, domain_t domain, const loop_args *s) {
    return out != F32 && stored == out && domain.rel_error != 0 && s->staging;
}
/* Takes the place of a staged line, which is streamed. */
INLINED void put_staged(const loop_args *s, ptrdiff_t offset, veci line) {
    if (s->staged_target) vi_stream(s->staged_target + offset, vi_load(s->staging + offset));
    vi_store(s->staging + offset, line);
}
/* A line of halves, i elements from the beginning. */
INLINED void put_halves_line(
        elem_type out, elem_type stored, domain_t domain, const loop_args *s, ptrdiff_t i, veci line, int stream,
        track_t *track) {
    if (domain.one_nan) track_f16_max(track, line);
    if (stream && is_staged(out, stored, domain, s)) put_staged(s, 2 * i, line);
    else put_line_as(s->out, 2 * i, line, out, stored, stream);
}

/* Results of two registers, i elements from the beginning, as what they are stored as. */
INLINED void put_both(
        elem_type out, elem_type stored, domain_t domain, const loop_args *s, ptrdiff_t i, both_t both, int stream,
        track_t *track) {
    char *target = s->out + i * size_of(stored);
    uint16_t *hard = s->hard + i / LANES;
    if (out == F32 && stored == F32) {
        put_vector(target, both.low, stream);
        put_vector(target + 4 * LANES, both.high, stream);
        return;
    }
    if (out == F32) {
        put_line(target, vi_join(narrowed(stored, both.low), narrowed(stored, both.high)), stream);
        return;
    }
    if (out == F16 && stored == F16 && domain.rel_error != 0 && !domain.one_nan && !stream) {
        put_rounded(target, both.low, domain.rel_error, hard);
        put_rounded(target + 2 * LANES, both.high, domain.rel_error, hard + 1);
        return;
    }
    veci line = both_rounded(out, both, domain.rel_error, hard);
    put_halves_line(out, stored, domain, s, i, line, stream, track);
}

/* Two registers at a time, so that halves fill a line. */
INLINED ptrdiff_t over_pairs(
        vector_formula formula, elem_type in, elem_type out, elem_type stored, domain_t domain,
        distance_t distance, const loop_args *s, ptrdiff_t i, track_t *all_seen) {
    const int stream = distance == FAR && s->stream;
    track_t track[2] = { all_seen[0], all_seen[1] }; /* in registers */
    shifted_t shifted[2];
    if (distance == SHIFTED) {
        shifted[0] = shifted_from(s->a, i);
        shifted[1] = shifted_from(s->b, i);
    }
    for (; i + 2 * LANES <= s->n; i += 2 * LANES) {
        prefetch_operands(s, i * size_of(in), 2 * LANES * size_of(in), distance);
        if (in != BF16) {
            both_t both = at_both(formula, in, domain, s, i, track, distance == SHIFTED ? shifted : NULL);
            put_both(out, stored, domain, s, i, both, stream, track);
            continue;
        }
        veci line = at_interleaved(formula, domain, s, i, track);
        put_halves_line(out, stored, domain, s, i, line, stream, track);
    }
    all_seen[0] = track[0];
    all_seen[1] = track[1];
    return i;
}

/* One register, for what is left of a row. */
INLINED void over_one(
        vector_formula formula, elem_type in, elem_type out, elem_type stored, domain_t domain,
        const loop_args *s, track_t *track) {
    vecf x = at(formula, in, s, 0, track, NULL);
    if (domain.check_finite) track_finite(track, track->last, vf_set(0.0f));
    if (out == F32) {
        if (stored == F32) vf_store(s->out, x);
        else vh_store(s->out, narrowed(stored, x));
        return;
    }
    vech h = rounded(out, x, domain.rel_error, s->hard);
    if (domain.one_nan) track_f16_max(track, vi_join(h, h));
    if (stored == F32) vf_store(s->out, from_f16_type(out, h));
    else vh_store(s->out, h);
}

INLINED loop_args args_at(const loop_args *s, ptrdiff_t i, ptrdiff_t in_size, ptrdiff_t out_size) {
    loop_args part = {
        s->a + i * in_size, s->b + i * in_size, s->out + i * out_size, LANES, s->params, s->hints,
        s->hard + i / LANES, 0, NULL, NULL, 0, s->stored,
    };
    return part;
}

/* Bytes of numbers that no formula minds: 0.53 or 4e-5, whatever the type. */
enum { FILLER = 0x38 };

/* The last elements, fewer than a register holds, are computed together with some before them;
 * where these have doubts, which are numbered, or there are none, by way of copies that are filled
 * up. */
INLINED int over_vectors(
        vector_formula formula, elem_type in, elem_type out, elem_type stored, domain_t domain, loop_args s) {
    track_t track[2] = { track_init(domain.nonzero), track_init(domain.nonzero) };
    distance_t distance = distance_of(&s);
    /* Doubts are numbered from the beginning: halves begin there. */
    ptrdiff_t done = out == F32 && stored == F32 ? bytes_to_register(&s, 4) / 4 : 0;
    if (done) over_one(formula, in, out, stored, domain, &s, &track[0]);
    if (out == F32 && distance == HERE && is_shifted(&s, done)) distance = SHIFTED;
    done = distance == FAR       ? over_pairs(formula, in, out, stored, domain, FAR, &s, done, track)
           : distance == NEAR    ? over_pairs(formula, in, out, stored, domain, NEAR, &s, done, track)
           : distance == SHIFTED ? over_pairs(formula, in, out, stored, domain, SHIFTED, &s, done, track)
                                 : over_pairs(formula, in, out, stored, domain, HERE, &s, done, track);
    if (is_staged(out, stored, domain, &s)) s.out = s.staging;
    while (done < s.n) {
        /* A line that went past the cache must not be written again. */
        if (out == F32 && !s.stream && s.n >= LANES && s.n - done < LANES) done = s.n - LANES;
        ptrdiff_t rest = s.n - done;
        loop_args last = args_at(&s, done, size_of(in), size_of(stored));
        char a[LANES * 4], b[LANES * 4], result[LANES * 4];
        if (rest < LANES) {
            vi_store(a, vi_load_first(last.a, rest * size_of(in), FILLER));
            if (last.a != last.b) vi_store(b, vi_load_first(last.b, rest * size_of(in), FILLER));
            last.b = last.a == last.b ? a : b;
            last.a = a;
            last.out = result;
        }
        over_one(formula, in, out, stored, domain, &last, &track[0]);
        ptrdiff_t size = size_of(stored);
        if (rest < LANES) vi_store_first(s.out + done * size, rest * size, vi_load(result));
        done += LANES;
    }
    track_t all = track_merge(&track[0], &track[1]);
    if (domain.check_negative && has_negative(&all)) return OUT_OF_DOMAIN;
    if (domain.nonzero && has_zero(&all)) return HAS_ZEROS;
    if (out != F32 && domain.one_nan && has_nan(&all, out == F16 ? 0x7c00u : 0x7f80u)) return EXCEPTIONAL;
    return is_range_exceptional(&all, domain) ? EXCEPTIONAL : 0;
}

static inline int any_hard(const uint16_t *hard, ptrdiff_t n) {
    unsigned found = 0;
    for (ptrdiff_t i = 0; i < (n + LANES - 1) / LANES; i++) found |= hard[i];
    return found != 0;
}

#define LOOP(name, formula, in, out, domain, extreme) \
    static int name(const loop_args *s) { \
        int found = s->stored == out       ? over_vectors(formula, in, out, out, domain, *s) \
                    : out != F32        ? over_vectors(formula, in, out, F32, domain, *s) \
                    : s->stored == F16    ? over_vectors(formula, in, out, F16, domain, *s) \
                                           : over_vectors(formula, in, out, BF16, domain, *s); \
        int hard = out != F32 && domain.rel_error != 0 && any_hard(s->hard, s->n); \
        int order = in == BF16 && out == BF16 ? INTERLEAVED : 0; \
        if (is_staged(out, s->stored, domain, s)) found |= STAGED; \
        return found | ((extreme) ? EXCEPTIONAL : 0) | (hard ? HARD_TO_ROUND | order : 0); \
    }

INLINED domain_t without_zeros(domain_t domain) {
    domain.nonzero = 1;
    return domain;
}

/* Fewer elements than that are done before it pays to look for zeros among so many. */
enum { FEW_F32S = 512, FIRST_F32S = 64 };

INLINED zeros_t zeros_among(const char *singles, ptrdiff_t n) {
    unsigned none = 0;
    for (ptrdiff_t i = 0; i < n; i += LANES)
        none |= vi_misses(vi_load(singles + 4 * i), vi_set(0x7fffffffu));
    return none ? SOME_ZEROS : NO_ZEROS;
}

/* Zeros keep their signs, and are not too small: that is a few operations, which are left out until an
 * operand turns out to have zeros. Inputs are never where results go: a block can be computed once more. */
INLINED int by_zeros(const loop_args *s, const char *operand, simd_loop nonzero, simd_loop mask_any) {
    hints_t *hints = s->hints;
    if (s->stored != F32 || s->n < FEW_F32S) return mask_any(s);
    if (hints->zeros == ZEROS_UNKNOWN) hints->zeros = zeros_among(operand, FIRST_F32S);
    int found = hints->zeros == NO_ZEROS ? nonzero(s) : HAS_ZEROS;
    if (!(found & HAS_ZEROS)) return found;
    hints->zeros = SOME_ZEROS;
    return mask_any(s);
}

/* Floats, whose zeros are those of an operand. */
#define F32_LOOP(name, formula, operand, domain, extreme) \
    LOOP(name##_any, formula, F32, F32, domain, extreme) \
    static int name##_nonzero(const loop_args *s) { \
        int found = over_vectors(formula, F32, F32, F32, without_zeros(domain), *s); \
        return found | ((extreme) ? EXCEPTIONAL : 0); \
    } \
    static int name(const loop_args *s) { return by_zeros(s, s->operand, name##_nonzero, name##_any); }

/* Operands that are all alike, then halves from float32 buffers. The forms for halves may stand on
 * inputs that were halves; `from_float` does not. */
#define LOOPS(name, half, bfloat, from_float, operand, domain, extreme) \
    F32_LOOP(name##_f32_loop, name##_f32_vec, operand, domain, extreme) \
    F16_LOOPS(name, half, bfloat, from_float, domain, extreme)
#define F16_LOOPS(name, half, bfloat, from_float, domain, extreme) \
    LOOP(name##_f16_loop, half, F16, F16, domain, extreme) \
    LOOP(name##_bf16_loop, bfloat, BF16, BF16, domain, extreme) \
    LOOP(name##_to_f16_loop, from_float, F32, F16, domain, extreme) \
    LOOP(name##_to_bf16_loop, from_float, F32, BF16, domain, extreme)
#define LOOPS_TABLE(name) \
    static const simd_loops_t name##_loops = { \
        name##_f32_loop, name##_f16_loop, name##_bf16_loop, name##_to_f16_loop, name##_to_bf16_loop, \
    };

/* What needs no more than bits, or is rounded at once, goes by lines: registers of memory, whatever
 * they hold. Span and the formula's own params are copied: they might lie where results go, for all that is
 * known of pointers, and would be read again for every line. */
typedef veci (*line_formula)(const void *params, const char *a, const char *b, track_t *track);

INLINED ptrdiff_t over_whole_lines(
        line_formula formula, elem_type type, elem_type stored, const loop_args *s, const void *params,
        ptrdiff_t i, ptrdiff_t bytes, distance_t distance, track_t *track) {
    enum { WIDE = LANES * 4 };
    const int stream = distance == FAR && s->stream;
    for (; i + 2 * WIDE <= bytes; i += 2 * WIDE) {
        prefetch_operands(s, i, 2 * WIDE, distance);
        veci line = formula(params, s->a + i, s->b + i, track);
        veci next = formula(params, s->a + i + WIDE, s->b + i + WIDE, track);
        put_line_as(s->out, i, line, type, stored, stream);
        put_line_as(s->out, i + WIDE, next, type, stored, stream);
    }
    for (; i + WIDE <= bytes; i += WIDE)
        put_line_as(s->out, i, formula(params, s->a + i, s->b + i, track), type, stored, stream);
    return i;
}

INLINED int over_lines(line_formula formula, elem_type type, elem_type stored, loop_args s, const void *params) {
    enum { WIDE = LANES * 4 };
    const ptrdiff_t size = size_of(type);
    track_t track = track_init(0);
    ptrdiff_t bytes = s.n * size;
    distance_t distance = distance_of(&s);
    ptrdiff_t i = type == stored ? bytes_to_register(&s, size) : 0;
    if (i) vi_store(s.out, formula(params, s.a, s.b, &track));
    i = distance == FAR    ? over_whole_lines(formula, type, stored, &s, params, i, bytes, FAR, &track)
        : distance == NEAR ? over_whole_lines(formula, type, stored, &s, params, i, bytes, NEAR, &track)
                           : over_whole_lines(formula, type, stored, &s, params, i, bytes, HERE, &track);
    if (i < bytes && bytes >= WIDE && !s.stream) {
        i = bytes - WIDE;
        put_line_as(s.out, i, formula(params, s.a + i, s.b + i, &track), type, stored, 0);
    } else if (i < bytes) {
        char a[WIDE], b[WIDE], result[2 * WIDE];
        ptrdiff_t rest = bytes - i;
        vi_store(a, vi_load_first(s.a + i, rest, FILLER));
        vi_store(b, vi_load_first(s.b + i, rest, FILLER));
        put_line_as(result, 0, formula(params, a, b, &track), type, stored, 0);
        if (type == stored) vi_store_first(s.out + i, rest, vi_load(result));
        else memcpy(s.out + 2 * i, result, (size_t)(2 * rest));
    }
    /* There is one NaN, and a bfloat up to the least that is normal may have been rounded twice. */
    uint16_t infinity = type == F16 ? 0x7c00u : 0x7f80u;
    return has_nan(&track, infinity) | vi16_any_le(track.min_bits, 0xffu) ? EXCEPTIONAL : 0;
}

#define LINE_LOOP(name, formula, own, type) \
    static int name(const loop_args *s) { \
        const own params = *OWN_PARAMS(own, s->params); \
        if (s->stored != type) return over_lines(formula, type, F32, *s, &params); \
        return over_lines(formula, type, type, *s, &params); \
    }

#endif

#endif
