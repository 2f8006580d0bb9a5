/* Attention of some rows of one batch and one head of keys: a running maximum and sum over tiles of keys.
 *
 * A row is a query of one of the heads that share a head of keys. Keys are in tiles of KEYS, tiles in segments
 * of SEGMENT, counted from key 0: within a segment a row has one running maximum, sum and result, and segments
 * are combined in order. So what a row becomes depends on its own keys alone.
 */
#ifndef ACLNN_ATTENTION_ATTEND_H
#define ACLNN_ATTENTION_ATTEND_H

#include <float.h>

#include "attention/tiles.h"

enum { SEGMENT = 8 * KEYS, MOST_PANELS = 10, MOST_ROWS = MOST_PANELS * ROWS };
enum { NO_MASK, TRUE_HIDES, TRUE_SHOWS };
enum { NO_STATISTICS, LOGSUMEXP, MAX_AND_SUM };
enum { BAD_BLOCK = 102 };

/* A tensor from a batch and head on; strides in bytes. */
typedef struct {
    char *data;
    ptrdiff_t row, head, step;
} operand_t;

/* Keys or values of a batch and head, in one piece or in blocks, and those before them that all batches share. */
typedef struct {
    char *data;
    ptrdiff_t row, step, block; /* bytes from a row, an element, a block to the next */
    const char *shared;
    ptrdiff_t shared_row, shared_step;
} cache_t;

typedef struct {
    /* what is the same for the whole call */
    int type, shift_type, mask_kind, mask_size, statistics;
    int shift_first;              /* scale (q k' + shift), not scale q k' + shift */
    int window;                   /* whether `low` and `high` count */
    int slope_root;               /* by slopes scores fall with the root of distances */
    int64_t ahead;                /* key j is j + ahead - i away from query i */
    ptrdiff_t depth, rope, values;
    ptrdiff_t group;              /* heads of queries to a head of keys */
    ptrdiff_t block_size;         /* of pages; 0: keys are in one piece */
    int64_t blocks;
    float scale;
    /* of a batch and a head of keys */
    operand_t query, query_rope, out, mask, shift, first, second;
    cache_t key, key_rope, value;
    const char *table;            /* ids of the blocks */
    ptrdiff_t table_step;
    const char *sink, *slopes;    /* slopes: floats */
    ptrdiff_t sink_step, slope_step;
    int64_t queries, keys;        /* actual lengths */
    int64_t n_shared;             /* the first of the keys, which all batches share */
    int64_t turn, turned;         /* results of rows from `turn` on lie `turned` rows before */
    int64_t low, high;            /* query i sees keys from i + low to i + high */
    int64_t prefix;               /* and all keys before it */
    int64_t mask_from;            /* the mask begins with this key */
} attention_t;

typedef struct {
    float *queries, *keys, *values, *scores, *out, *total, *most, *most_of_all, *sums, *sums_of_all, *buffer;
    row_t *rows;
    const float *plain; /* keys of the tile that are read as they are, or NULL */
    ptrdiff_t plain_row;
    ptrdiff_t width; /* of a row of values, in whole vectors */
} scratch_t;

static inline ptrdiff_t width_of(ptrdiff_t values) { return (values + LANES - 1) / LANES * LANES; }

/* Divides scratch among its parts, for so many rows; how many bytes it takes. */
static ptrdiff_t lay_out(const attention_t *a, ptrdiff_t rows, int segments, char *memory, scratch_t *s) {
    ptrdiff_t depth = a->depth + a->rope, padded = (rows + ROWS - 1) / ROWS * ROWS, at = 0;
    s->width = width_of(a->values);
#define ROOM(part, count) \
    s->part = (void *)(memory + at); \
    at += ((ptrdiff_t)(count) * (ptrdiff_t)sizeof *s->part + 63) / 64 * 64
    ROOM(queries, padded * depth);
    ROOM(keys, KEYS * depth);
    ROOM(values, KEYS * s->width);
    ROOM(scores, ROWS * KEYS);
    ROOM(out, padded * s->width);
    ROOM(total, segments > 1 ? padded * s->width : 0);
    ROOM(most, padded);
    ROOM(most_of_all, padded);
    ROOM(sums, padded * PARTS);
    ROOM(sums_of_all, padded * PARTS);
    ROOM(buffer, LANES * depth);
    ROOM(rows, 2 * KEYS);
#undef ROOM
    return at;
}

/* --- Which keys a row sees ------------------------------------------------------------------------- */

typedef struct { int64_t begin, end; } range_t;

INLINED int64_t query_of(const attention_t *a, ptrdiff_t row) { return row / a->group; }

/* The keys before and behind which a row sees none. */
static inline range_t seen_by(const attention_t *a, int64_t query) {
    range_t seen = { 0, a->keys };
    if (query >= a->queries) {
        seen.end = 0;
    } else if (a->window) {
        seen.begin = query + a->low > 0 && a->prefix <= 0 ? query + a->low : 0;
        int64_t end = query + a->high + 1 > a->prefix ? query + a->high + 1 : a->prefix;
        if (end < seen.end) seen.end = end;
    }
    if (seen.begin >= seen.end) seen.begin = seen.end = 0;
    return seen;
}

static inline int is_hidden(const attention_t *a, const char *at) {
    unsigned char byte = (unsigned char)*at;
    if (a->mask_size == 2) byte |= (unsigned char)(at[1] & 0x7f);
    return (byte != 0) == (a->mask_kind == TRUE_HIDES);
}

/* Takes from the scores [begin, end) of a row the distance of key and query, or its root, times the head's slope. */
static void slope_down(
    const attention_t *a, ptrdiff_t head, int64_t query, int64_t first, ptrdiff_t begin, ptrdiff_t end, float *scores) {
    float slope = element_at(a->slopes + head * a->slope_step, IS_F32);
    for (ptrdiff_t j = begin; j < end; j++) {
        float distance = fabsf((float)(first + j + a->ahead - query));
        scores[j] -= slope * (a->slope_root ? sqrtf(distance) : distance);
    }
}

/* Adds the shift to a row of scores, and makes those of hidden keys -inf; `first` is the key of scores[0]. */
static void hide(
    const attention_t *a, ptrdiff_t row, range_t seen, int64_t first, ptrdiff_t cols, float *scores) {
    ptrdiff_t head = row % a->group;
    int64_t query = query_of(a, row);
    ptrdiff_t begin = seen.begin > first ? (ptrdiff_t)(seen.begin - first) : 0;
    ptrdiff_t end = seen.end - first < cols ? (ptrdiff_t)(seen.end - first) : cols;
    if (begin > cols) begin = cols;
    if (end < begin) end = begin;
    for (ptrdiff_t j = 0; j < begin; j++)
        scores[j] = -INFINITY;
    for (ptrdiff_t j = end; j < cols; j++)
        scores[j] = -INFINITY;
    if (a->shift.data != NULL) {
        const char *shift = a->shift.data + query * a->shift.row + head * a->shift.head + first * a->shift.step;
        float shifts[KEYS];
        widen(shift + begin * a->shift.step, a->shift.step, a->shift_type, shifts + begin, end - begin);
        if (a->shift_first)
            for (ptrdiff_t j = begin; j < end; j++)
                scores[j] = (scores[j] + shifts[j]) * a->scale;
        else
            for (ptrdiff_t j = begin; j < end; j++)
                scores[j] += shifts[j];
    }
    if (a->slopes != NULL) slope_down(a, head, query, first, begin, end, scores);
    if (a->mask_kind != NO_MASK) {
        const char *mask = a->mask.data + query * a->mask.row + head * a->mask.head + (first - a->mask_from) * a->mask.step;
        ptrdiff_t j = a->mask_from > first + begin ? (ptrdiff_t)(a->mask_from - first) : begin;
        if (a->mask_size == 1 && a->mask.step == 1) {
            unsigned char flip = a->mask_kind == TRUE_HIDES ? 0 : 1;
            for (; j < end; j++)
                scores[j] = ((unsigned char)mask[j] != 0) ^ flip ? -INFINITY : scores[j];
        } else {
            for (; j < end; j++)
                if (is_hidden(a, mask + j * a->mask.step)) scores[j] = -INFINITY;
        }
    }
    /* With a prefix, keys between it and the window are hidden. */
    if (a->window && a->prefix > 0)
        for (ptrdiff_t j = begin; j < end; j++)
            if (first + j >= a->prefix && (first + j < query + a->low || first + j > query + a->high))
                scores[j] = -INFINITY;
}

/* --- Softmax of a tile ------------------------------------------------------------------------------ */

/* Scores of a row become exponentials; its maximum and sums go on. What the row's result is multiplied by.
 * Weights of hidden keys are -0, which tells them from those that are as good as 0. */
static inline float soften(float *scores, ptrdiff_t cols, int hiding, float *most, float *sums) {
    vecf largest = vf_load(scores);
    for (ptrdiff_t j = LANES; j < cols; j += LANES)
        largest = vf_greater(largest, vf_load(scores + j));
    float before = *most, now = vf_largest_lane(largest);
    now = before > now ? before : now;
    *most = now;
    float base = now == -INFINITY ? 0.0f : now;
    float factor = before == now ? 1.0f : 0.0f;
    if (before != now && before != -INFINITY) {
        float lanes[LANES];
        vf_store(lanes, vf_decay(vf_set(before - base)));
        factor = lanes[0];
    }
    vecf sum[PARTS / LANES], from = vf_set(base);
    for (int c = 0; c < PARTS / LANES; c++)
        sum[c] = vf_mul(vf_load(sums + c * LANES), vf_set(factor));
    for (ptrdiff_t j = 0; j < cols; j += PARTS)
        for (int c = 0; c < PARTS / LANES; c++) {
            vecf power = vf_decay(vf_sub(vf_load(scores + j + c * LANES), from));
            if (hiding) {
                float *at = scores + j + c * LANES, powers[LANES];
                vf_store(powers, power);
                for (int k = 0; k < LANES; k++)
                    at[k] = at[k] == -INFINITY ? -0.0f : powers[k];
            } else {
                vf_store(scores + j + c * LANES, power);
            }
            sum[c] = vf_add(sum[c], power);
        }
    for (int c = 0; c < PARTS / LANES; c++)
        vf_store(sums + c * LANES, sum[c]);
    return factor;
}

/* --- A tile ---------------------------------------------------------------------------------------- */

static inline int64_t block_at(const attention_t *a, int64_t key) {
    int32_t id;
    memcpy(&id, a->table + (key / a->block_size) * a->table_step, sizeof id);
    return id;
}

/* Where the keys, or values, from `first` on are; whether every block that they are in exists. */
static int rows_of(const attention_t *a, const cache_t *cache, int64_t first, ptrdiff_t n, row_t *rows, int64_t *bad) {
    if (a->block_size == 0) {
        ptrdiff_t j = 0;
        for (; j < n && first + j < a->n_shared; j++)
            rows[j] = (row_t) { cache->shared + (first + j) * cache->shared_row, cache->shared_step };
        for (; j < n; j++)
            rows[j] = (row_t) { cache->data + (first + j - a->n_shared) * cache->row, cache->step };
        return 1;
    }
    for (ptrdiff_t j = 0; j < n;) {
        int64_t id = block_at(a, first + j), within = (first + j) % a->block_size;
        if (id < 0 || id >= a->blocks) {
            *bad = id;
            return 0;
        }
        const char *block = cache->data + id * cache->block;
        for (; j < n && within < a->block_size; j++, within++)
            rows[j] = (row_t) { block + within * cache->row, cache->step };
    }
    return 1;
}

typedef struct {
    const float *data;
    ptrdiff_t row; /* bytes */
    int finite;    /* -1: nobody looked */
} values_t;

/* Values where they are, if they are rows of whole vectors of floats at one distance; else a copy. */
static values_t plain_values(const attention_t *a, int64_t key) {
    return (values_t) { (const float *)(const void *)(a->value.data + key * a->value.row), a->value.row, -1 };
}

static values_t values_of(const attention_t *a, const row_t *rows, ptrdiff_t n, const scratch_t *s) {
    if (a->type == IS_F32 && a->n_shared == 0 && a->values == s->width && (rows[0].step == 4 || a->values == 1)) {
        ptrdiff_t distance = distance_of(rows, n);
        if (distance != 0) return (values_t) { (const float *)(const void *)rows[0].data, distance, -1 };
    }
    pack_values(rows, n, a->type, a->values, s->width, s->values);
    return (values_t) { s->values, s->width * (ptrdiff_t)sizeof(float), -1 };
}

static int all_finite(const values_t *v, ptrdiff_t n, ptrdiff_t width) {
    vecf sum = vf_set(0.0f);
    for (ptrdiff_t j = 0; j < n; j++)
        for (ptrdiff_t c = 0; c < width; c += LANES)
            sum = vf_fma(vf_load((const char *)v->data + j * v->row + c * 4), vf_set(0.0f), sum);
    float lanes[LANES], found = 0.0f;
    vf_store(lanes, sum);
    for (int k = 0; k < LANES; k++)
        found += lanes[k];
    return found == 0.0f;
}

/* Row by row over the keys that are not hidden: what times 0 is not 0 does not count there. */
static void weigh_visible(
    const float *p, const values_t *v, ptrdiff_t rows, ptrdiff_t keys, const float *factors, float *out, ptrdiff_t width) {
    for (ptrdiff_t m = 0; m < rows; m++) {
        float factor = factors[m];
        for (ptrdiff_t j = 0, end; j < keys || factor != 1.0f; j = end) {
            while (j < keys && p[m * KEYS + j] == 0.0f && signbit(p[m * KEYS + j]))
                j++;
            for (end = j; end < keys && !(p[m * KEYS + end] == 0.0f && signbit(p[m * KEYS + end]));)
                end++;
            weighted_1(
                p + m * KEYS + j, (const float *)(const void *)((const char *)v->data + j * v->row), v->row, end - j,
                &factor, out + m * width, width);
            factor = 1.0f;
        }
    }
}

/* Rows [first, first + rows) of a panel with the keys [key, key + n) of a tile. */
static void attend_panel(
    const attention_t *a, scratch_t *s, ptrdiff_t row, ptrdiff_t place, ptrdiff_t rows, int64_t key, ptrdiff_t n,
    values_t *v) {
    ptrdiff_t depth = a->depth + a->rope, end = 0;
    int hiding = a->mask_kind != NO_MASK || a->shift.data != NULL || a->slopes != NULL, seeing = 0;
    range_t seen[ROWS];
    float factors[ROWS];
    for (ptrdiff_t m = 0; m < rows; m++) {
        seen[m] = seen_by(a, query_of(a, row + m));
        if (seen[m].end <= key || seen[m].begin >= key + n) {
            hiding = 1;
            continue;
        }
        seeing = 1;
        hiding |= seen[m].begin > key || seen[m].end < key + n || (a->window && a->prefix > 0);
        ptrdiff_t last = seen[m].end - key < n ? (ptrdiff_t)(seen[m].end - key) : n;
        end = last > end ? last : end;
    }
    if (!seeing) return;
    const products_t *products = products_of(rows);
    ptrdiff_t cols = (end + PARTS - 1) / PARTS * PARTS;
    float scale = a->shift_first && a->shift.data != NULL ? 1.0f : a->scale;
#ifdef HAS_COLUMNS
    if (s->plain != NULL)
        scores_of_row(s->queries + place * depth, s->plain, s->plain_row, cols, depth, scale, s->scores);
    else
#endif
        for (ptrdiff_t j = 0; j < cols; j += products->cols * LANES)
            products->scores(s->queries + place * depth, s->keys + j * depth, depth, scale, s->scores + j);
    hiding |= end < cols;
    for (ptrdiff_t m = 0; m < rows; m++) {
        if (hiding) hide(a, row + m, seen[m], key, cols, s->scores + m * KEYS);
        factors[m] = soften(
            s->scores + m * KEYS, cols, hiding, s->most + place + m, s->sums + (place + m) * PARTS);
    }
    for (ptrdiff_t m = rows; m < products->rows; m++)
        factors[m] = 1.0f;
    if (hiding && v->finite < 0) v->finite = all_finite(v, n, s->width);
    if (hiding && !v->finite)
        weigh_visible(s->scores, v, rows, end, factors, s->out + place * s->width, s->width);
    else
        products->weighted(s->scores, v->data, v->row, end, factors, s->out + place * s->width, s->width);
}

/* --- Rows ------------------------------------------------------------------------------------------ */

static void pack_queries(const attention_t *a, ptrdiff_t first, ptrdiff_t rows, scratch_t *s) {
    ptrdiff_t depth = a->depth + a->rope, padded = (rows + ROWS - 1) / ROWS * ROWS;
    float *line = s->buffer;
    for (ptrdiff_t r = 0; r < padded; r++) {
        float *to = s->queries + (r / ROWS) * ROWS * depth + r % ROWS;
        if (r < rows && query_of(a, first + r) < a->queries) {
            ptrdiff_t query = (ptrdiff_t)query_of(a, first + r), head = (first + r) % a->group;
            const operand_t *q = &a->query, *rope = &a->query_rope;
            widen(q->data + query * q->row + head * q->head, q->step, a->type, line, a->depth);
            if (a->rope)
                widen(rope->data + query * rope->row + head * rope->head, rope->step, a->type, line + a->depth, a->rope);
        } else {
            memset(line, 0, (size_t)depth * sizeof(float));
        }
        for (ptrdiff_t d = 0; d < depth; d++)
            to[d * ROWS] = line[d];
    }
}

/* Whether keys or values are rows of floats in one piece, at a distance of whole floats. */
static int are_plain(const attention_t *a, const cache_t *cache) {
#ifdef HAS_COLUMNS
    return a->type == IS_F32 && a->block_size == 0 && a->n_shared == 0 && cache->step == 4 && cache->row % 4 == 0;
#else
    return 0;
#endif
}

static float decayed(float x) {
    float lanes[LANES];
    vf_store(lanes, vf_decay(vf_set(x)));
    return lanes[0];
}

/* Adds a segment's results to those of all segments before it. */
static void add_segment(scratch_t *s, ptrdiff_t rows) {
    for (ptrdiff_t r = 0; r < rows; r++) {
        float before = s->most_of_all[r], added = s->most[r], most = before > added ? before : added;
        float base = most == -INFINITY ? 0.0f : most;
        vecf old = vf_set(decayed(before - base)), new = vf_set(decayed(added - base));
        s->most_of_all[r] = most;
        for (int c = 0; c < PARTS; c += LANES) {
            float *sums = s->sums_of_all + r * PARTS + c;
            vf_store(sums, vf_fma(vf_load(s->sums + r * PARTS + c), new, vf_mul(vf_load(sums), old)));
        }
        for (ptrdiff_t c = 0; c < s->width; c += LANES) {
            float *to = s->total + r * s->width + c;
            vf_store(to, vf_fma(vf_load(s->out + r * s->width + c), new, vf_mul(vf_load(to), old)));
        }
    }
}

static void begin_rows(ptrdiff_t rows, ptrdiff_t width, float *most, float *sums, float *out) {
    for (ptrdiff_t r = 0; r < rows; r++)
        most[r] = -INFINITY;
    memset(sums, 0, (size_t)(rows * PARTS) * sizeof(float));
    memset(out, 0, (size_t)(rows * width) * sizeof(float));
}

static void put_statistic(const operand_t *to, ptrdiff_t query, ptrdiff_t head, int count, float x) {
    char *at = to->data + query * to->row + head * to->head;
    for (int k = 0; k < count; k++)
        put_element(at + k * to->step, IS_F32, x);
}

/* Writes a row's result and statistics. */
static void finish_row(const attention_t *a, ptrdiff_t row, float most, const float *sums, float *out, ptrdiff_t width) {
    ptrdiff_t query = (ptrdiff_t)query_of(a, row), head = row % a->group;
    float parts[PARTS], sum, factor = 1.0f;
    int empty;
    if (query >= a->turn) query -= (ptrdiff_t)a->turned;
    memcpy(parts, sums, sizeof parts);
    for (int n = PARTS / 2; n; n /= 2)
        for (int k = 0; k < n; k++)
            parts[k] += parts[k + n];
    sum = parts[0];
    /* Of scores that are no numbers the maximum may be any, -inf as well, but the sum is none either. */
    if (sum != sum && most != INFINITY) most = NAN;
    empty = most == -INFINITY;
    if (a->sink != NULL && !empty) {
        float sink = element_at(a->sink + head * a->sink_step, a->type), higher = sink > most ? sink : most;
        factor = decayed(most - higher);
        sum = sum * factor + decayed(sink - higher);
        most = higher;
    }
    for (ptrdiff_t c = 0; c < width; c += LANES) {
        vecf x = vf_mul(vf_load(out + c), vf_set(factor));
        vf_store(out + c, empty ? vf_set(0.0f) : vf_div(x, vf_set(sum)));
    }
    const operand_t *o = &a->out;
    narrow(out, o->data + query * o->row + head * o->head, o->step, a->type, a->values);
    if (a->statistics == LOGSUMEXP) {
        put_statistic(&a->first, query, head, 1, empty ? INFINITY : most + (float)full_log(sum));
    } else if (a->statistics == MAX_AND_SUM) {
        int none = a->keys == 0;
        put_statistic(&a->first, query, head, 8, none ? 0.0f : empty ? -FLT_MAX : most);
        put_statistic(&a->second, query, head, 8, none ? 0.0f : empty ? FLT_MAX : sum);
    }
}

/* The keys that any of some rows sees; 0 to 0 where there are none. */
static range_t seen_by_all(const attention_t *a, ptrdiff_t first, ptrdiff_t rows) {
    range_t seen = { INT64_MAX, 0 };
    for (ptrdiff_t r = 0; r < rows; r++) {
        range_t own = seen_by(a, query_of(a, first + r));
        if (own.begin == own.end) continue;
        seen.begin = own.begin < seen.begin ? own.begin : seen.begin;
        seen.end = own.end > seen.end ? own.end : seen.end;
    }
    if (seen.end == 0) seen.begin = 0;
    return seen;
}

/* Whether every block exists that some of the rows read: those of all tiles of keys that any of them sees. */
static int all_blocks_exist(const attention_t *a, ptrdiff_t rows, int64_t *bad) {
    range_t seen = seen_by_all(a, 0, rows);
    for (int64_t key = seen.begin / KEYS * KEYS; key < seen.end; key += a->block_size - key % a->block_size) {
        *bad = block_at(a, key);
        if (*bad < 0 || *bad >= a->blocks) return 0;
    }
    return 1;
}

/* Goes on with the keys [key, end), from the begin of a tile; whether every block that they are in exists. */
static int attend_keys(
    const attention_t *a, scratch_t *s, ptrdiff_t first, ptrdiff_t rows, int64_t key, int64_t end, int64_t *bad) {
    ptrdiff_t depth = a->depth + a->rope;
    for (; key < end; key += KEYS) {
        ptrdiff_t n = end - key < KEYS ? (ptrdiff_t)(end - key) : KEYS;
        s->plain = NULL;
        s->plain_row = 0;
        if (rows == 1 && n % PARTS == 0 && are_plain(a, &a->key) && a->rope == 0) {
            s->plain = (const float *)(const void *)(a->key.data + key * a->key.row);
            s->plain_row = a->key.row / (ptrdiff_t)sizeof(float);
        } else {
            if (!rows_of(a, &a->key, key, n, s->rows, bad)) return 0;
            pack_keys(s->rows, n, a->type, 0, a->depth, depth, s->keys, s->buffer);
        }
        if (a->rope) {
            if (!rows_of(a, &a->key_rope, key, n, s->rows, bad)) return 0;
            pack_keys(s->rows, n, a->type, a->depth, a->rope, depth, s->keys, s->buffer);
        }
        int plain = a->values == s->width && are_plain(a, &a->value);
        if (!plain && !rows_of(a, &a->value, key, n, s->rows, bad)) return 0;
        values_t v = plain ? plain_values(a, key) : values_of(a, s->rows, n, s);
        for (ptrdiff_t place = 0; place < rows; place += ROWS)
            attend_panel(a, s, first + place, place, rows - place < ROWS ? rows - place : ROWS, key, n, &v);
    }
    return 1;
}

static inline ptrdiff_t padded_rows(ptrdiff_t rows) { return (rows + ROWS - 1) / ROWS * ROWS; }

static inline int64_t end_of_segment(int64_t key, int64_t end) {
    int64_t next = (key / SEGMENT + 1) * SEGMENT;
    return next < end ? next : end;
}

static inline int has_several(range_t seen) { return seen.end > 0 && (seen.end - 1) / SEGMENT > seen.begin / SEGMENT; }

/* Rows [first, first + rows) of a batch and head of keys. 0, or BAD_BLOCK with the id in `bad`. */
static int attend(const attention_t *a, ptrdiff_t first, ptrdiff_t rows, int segments, char *memory, int64_t *bad) {
    scratch_t s;
    lay_out(a, rows, segments, memory, &s);
    ptrdiff_t padded = padded_rows(rows);
    range_t seen = seen_by_all(a, first, rows);
    int several = has_several(seen);
    pack_queries(a, first, rows, &s);
    begin_rows(padded, s.width, s.most, s.sums, s.out);
    if (several) begin_rows(padded, s.width, s.most_of_all, s.sums_of_all, s.total);
    for (int64_t key = seen.begin / KEYS * KEYS, end; key < seen.end; key = end) {
        end = several ? end_of_segment(key, seen.end) : seen.end;
        if (!attend_keys(a, &s, first, rows, key, end, bad)) return BAD_BLOCK;
        if (several) {
            add_segment(&s, rows);
            begin_rows(padded, s.width, s.most, s.sums, s.out);
        }
    }
    float *most = several ? s.most_of_all : s.most, *sums = several ? s.sums_of_all : s.sums;
    float *out = several ? s.total : s.out;
    for (ptrdiff_t r = 0; r < rows; r++)
        finish_row(a, first + r, most[r], sums + r * PARTS, out + r * s.width, s.width);
    return 0;
}

/* --- Rows of few units, by segments ------------------------------------------------------------------- */

/* Floats that the results of a segment take. */
static ptrdiff_t part_size(ptrdiff_t values, ptrdiff_t rows) {
    return padded_rows(rows) * (width_of(values) + PARTS + LANES);
}

static void use_part(scratch_t *s, ptrdiff_t rows, float *part) {
    ptrdiff_t padded = padded_rows(rows);
    s->out = part;
    s->sums = part + padded * s->width;
    s->most = s->sums + padded * PARTS;
}

/* One segment of the keys of some rows, whose results stay in `part`. */
static int attend_segment(
    const attention_t *a, ptrdiff_t first, ptrdiff_t rows, int64_t segment, char *memory, float *part, int64_t *bad) {
    scratch_t s;
    lay_out(a, rows, 2, memory, &s);
    use_part(&s, rows, part);
    range_t seen = seen_by_all(a, first, rows);
    int64_t key = segment * SEGMENT, begin = seen.begin / KEYS * KEYS, end = end_of_segment(key, seen.end);
    if (begin > key) key = begin;
    begin_rows(padded_rows(rows), s.width, s.most, s.sums, s.out);
    if (key >= end) return 0;
    pack_queries(a, first, rows, &s);
    return attend_keys(a, &s, first, rows, key, end, bad) ? 0 : BAD_BLOCK;
}

/* Writes rows of which all segments are there: bits are those of `attend`. */
static void join_segments(const attention_t *a, ptrdiff_t first, ptrdiff_t rows, char *memory, float *parts, ptrdiff_t size) {
    scratch_t s;
    lay_out(a, rows, 2, memory, &s);
    range_t seen = seen_by_all(a, first, rows);
    int64_t segment = seen.begin / SEGMENT;
    int several = has_several(seen);
    begin_rows(padded_rows(rows), s.width, s.most_of_all, s.sums_of_all, s.total);
    use_part(&s, rows, parts + segment * size);
    for (; several && segment * SEGMENT < seen.end; segment++) {
        use_part(&s, rows, parts + segment * size);
        add_segment(&s, rows);
    }
    float *most = several ? s.most_of_all : s.most, *sums = several ? s.sums_of_all : s.sums;
    float *out = several ? s.total : s.out;
    for (ptrdiff_t r = 0; r < rows; r++)
        finish_row(a, first + r, most[r], sums + r * PARTS, out + r * s.width, s.width);
}

/* Counts a segment that is done; whether it was the last of `all`. */
static inline int is_last(int32_t *done, int32_t all) { return __atomic_add_fetch(done, 1, __ATOMIC_ACQ_REL) == all; }

#endif
