/* Gradients of attention of one batch and one head of keys.
 *
 * Weights are computed anew from the statistics of the forward pass: of a block of rows with all tiles of keys
 * for the gradient of queries, of a tile of keys with all blocks of rows for those of keys and values. Each
 * gradient is a sum in the order of the other's positions.
 */
#ifndef ACLNN_ATTENTION_GRADIENT_H
#define ACLNN_ATTENTION_GRADIENT_H

#include "attention/attend.h"

enum { BLOCK_ROWS = KEYS / ROWS * ROWS };

typedef struct {
    attention_t a;         /* `first` and `second`: the statistics, which are read */
    operand_t grad, result, grad_query;
    cache_t grad_key, grad_value; /* that are written */
} gradient_t;

typedef struct {
    float *queries, *grads;            /* packed panels of a block's rows */
    float *query_rows, *grad_rows;     /* the same row by row */
    float *keys, *values;              /* a tile of keys, and of values, in packed panels */
    float *key_rows;                   /* of keys, row by row */
    float *scores, *slopes;            /* of a panel: weights, and the gradients of scores */
    float *weights_by_key, *slopes_by_key; /* of a block, [KEYS][KEYS] */
    float *sum_query, *sum_key, *sum_value;
    float *base, *share, *products;    /* of a row: what exponents are less by, 1 / sum, grad·result */
    float *buffer;
    row_t *rows;
    ptrdiff_t width, value_width;
} gradient_scratch_t;

static ptrdiff_t lay_out_gradient(const attention_t *a, char *memory, gradient_scratch_t *s) {
    ptrdiff_t depth = a->depth, at = 0;
    s->width = width_of(depth);
    s->value_width = width_of(a->values);
#define ROOM(part, count) \
    s->part = (void *)(memory + at); \
    at += ((ptrdiff_t)(count) * (ptrdiff_t)sizeof *s->part + 63) / 64 * 64
    ROOM(queries, BLOCK_ROWS * depth);
    ROOM(grads, BLOCK_ROWS * a->values);
    ROOM(query_rows, BLOCK_ROWS * s->width);
    ROOM(grad_rows, BLOCK_ROWS * s->value_width);
    ROOM(keys, KEYS * depth);
    ROOM(values, KEYS * a->values);
    ROOM(key_rows, KEYS * s->width);
    ROOM(scores, ROWS * KEYS);
    ROOM(slopes, ROWS * KEYS);
    ROOM(weights_by_key, (KEYS + ROWS) * KEYS);
    ROOM(slopes_by_key, (KEYS + ROWS) * KEYS);
    ROOM(sum_query, BLOCK_ROWS * s->width);
    ROOM(sum_key, (KEYS + ROWS) * s->width);
    ROOM(sum_value, (KEYS + ROWS) * s->value_width);
    ROOM(base, BLOCK_ROWS);
    ROOM(share, BLOCK_ROWS);
    ROOM(products, BLOCK_ROWS);
    ROOM(buffer, LANES * (depth + a->values));
    ROOM(rows, KEYS);
#undef ROOM
    return at;
}

static const char *place_of(const operand_t *o, const attention_t *a, ptrdiff_t row) {
    return o->data + (ptrdiff_t)query_of(a, row) * o->row + (row % a->group) * o->head;
}

static void widen_row(const char *from, ptrdiff_t step, int type, float *to, ptrdiff_t n, ptrdiff_t width) {
    widen(from, step, type, to, n);
    for (ptrdiff_t k = n; k < width; k++)
        to[k] = 0.0f;
}

static void pack_row(const float *line, ptrdiff_t row, ptrdiff_t depth, float *panels) {
    float *to = panels + (row / ROWS) * ROWS * depth + row % ROWS;
    for (ptrdiff_t d = 0; d < depth; d++)
        to[d * ROWS] = line[d];
}

/* Rows [first, first + rows) of queries and of the gradient of results, and what weights are made from. */
static void take_rows(const gradient_t *g, ptrdiff_t first, ptrdiff_t rows, gradient_scratch_t *s) {
    const attention_t *a = &g->a;
    memset(s->queries, 0, (size_t)(BLOCK_ROWS * a->depth) * sizeof(float));
    memset(s->grads, 0, (size_t)(BLOCK_ROWS * a->values) * sizeof(float));
    for (ptrdiff_t r = 0; r < rows; r++) {
        float *query = s->query_rows + r * s->width, *grad = s->grad_rows + r * s->value_width;
        s->base[r] = s->share[r] = s->products[r] = 0.0f;
        if (query_of(a, first + r) >= a->queries) {
            memset(query, 0, (size_t)s->width * sizeof(float));
            memset(grad, 0, (size_t)s->value_width * sizeof(float));
            continue;
        }
        widen_row(place_of(&a->query, a, first + r), a->query.step, a->type, query, a->depth, s->width);
        widen_row(place_of(&g->grad, a, first + r), g->grad.step, a->type, grad, a->values, s->value_width);
        pack_row(query, r, a->depth, s->queries);
        pack_row(grad, r, a->values, s->grads);
        const char *result = place_of(&g->result, a, first + r);
        float product = 0.0f;
        for (ptrdiff_t k = 0; k < a->values; k++)
            product += grad[k] * element_at(result + k * g->result.step, a->type);
        s->products[r] = product;
        s->base[r] = element_at(place_of(&a->first, a, first + r), IS_F32);
        s->share[r] = 1.0f;
        if (a->statistics == MAX_AND_SUM) s->share[r] = 1.0f / element_at(place_of(&a->second, a, first + r), IS_F32);
    }
}

static void take_keys(const gradient_t *g, int64_t key, ptrdiff_t n, gradient_scratch_t *s) {
    const attention_t *a = &g->a;
    int64_t bad;
    rows_of(a, &a->key, key, n, s->rows, &bad);
    pack_keys(s->rows, n, a->type, 0, a->depth, a->depth, s->keys, s->buffer);
    pack_values(s->rows, n, a->type, a->depth, s->width, s->key_rows);
    rows_of(a, &a->value, key, n, s->rows, &bad);
    pack_keys(s->rows, n, a->type, 0, a->values, a->values, s->values, s->buffer);
}

/* Weights and the gradients of scores of a panel with a tile; whether any of its rows sees one of the keys. */
static int slopes_of(
    const gradient_t *g, ptrdiff_t row, ptrdiff_t place, ptrdiff_t rows, int64_t key, ptrdiff_t n,
    gradient_scratch_t *s) {
    const attention_t *a = &g->a;
    range_t seen[ROWS];
    int seeing = 0;
    for (ptrdiff_t m = 0; m < rows; m++) {
        seen[m] = seen_by(a, query_of(a, row + m));
        seeing |= seen[m].begin < key + n && seen[m].end > key;
    }
    if (!seeing) return 0;
    const products_t *products = products_of(rows);
    ptrdiff_t cols = (n + PARTS - 1) / PARTS * PARTS;
    float scale = a->shift_first && a->shift.data != NULL ? 1.0f : a->scale;
    for (ptrdiff_t j = 0; j < cols; j += products->cols * LANES) {
        products->scores(s->queries + place * a->depth, s->keys + j * a->depth, a->depth, scale, s->scores + j);
        products->scores(s->grads + place * a->values, s->values + j * a->values, a->values, 1.0f, s->slopes + j);
    }
    for (ptrdiff_t m = 0; m < rows; m++) {
        float *p = s->scores + m * KEYS, *slope = s->slopes + m * KEYS;
        hide(a, row + m, seen[m], key, cols, p);
        vecf base = vf_set(s->base[place + m]), share = vf_set(s->share[place + m]);
        vecf product = vf_set(s->products[place + m]);
        for (ptrdiff_t j = 0; j < cols; j += LANES) {
            vecf weight = vf_mul(vf_decay(vf_sub(vf_load(p + j), base)), share);
            vf_store(p + j, weight);
            vf_store(slope + j, vf_mul(weight, vf_sub(vf_load(slope + j), product)));
        }
    }
    return 1;
}

/* The gradient of rows [first, first + rows) of queries. */
static void gradient_of_rows(const gradient_t *g, ptrdiff_t first, ptrdiff_t rows, char *memory) {
    const attention_t *a = &g->a;
    gradient_scratch_t s;
    lay_out_gradient(a, memory, &s);
    float ones[ROWS];
    for (int m = 0; m < ROWS; m++)
        ones[m] = 1.0f;
    take_rows(g, first, rows, &s);
    memset(s.sum_query, 0, (size_t)(BLOCK_ROWS * s.width) * sizeof(float));
    for (int64_t key = 0; key < a->keys; key += KEYS) {
        ptrdiff_t n = a->keys - key < KEYS ? (ptrdiff_t)(a->keys - key) : KEYS;
        int taken = 0;
        for (ptrdiff_t place = 0; place < rows; place += ROWS) {
            ptrdiff_t count = rows - place < ROWS ? rows - place : ROWS;
            int seeing = 0;
            for (ptrdiff_t m = 0; m < count; m++) {
                range_t seen = seen_by(a, query_of(a, first + place + m));
                seeing |= seen.begin < key + n && seen.end > key;
            }
            if (!seeing) continue;
            if (!taken) take_keys(g, key, n, &s);
            taken = 1;
            slopes_of(g, first + place, place, count, key, n, &s);
            products_of(count)->weighted(
                s.slopes, s.key_rows, s.width * 4, n, ones, s.sum_query + place * s.width, s.width);
        }
    }
    for (ptrdiff_t r = 0; r < rows; r++) {
        float *line = s.sum_query + r * s.width;
        for (ptrdiff_t k = 0; k < a->depth; k++)
            line[k] *= a->scale;
        narrow(line, (char *)place_of(&g->grad_query, a, first + r), g->grad_query.step, a->type, a->depth);
    }
}

static void add_by_key(
    const float *by_key, ptrdiff_t keys, const float *rows, ptrdiff_t count, ptrdiff_t width, float *sum) {
    float ones[ROWS];
    for (int m = 0; m < ROWS; m++)
        ones[m] = 1.0f;
    for (ptrdiff_t j = 0; j < keys; j += ROWS)
        products_of(keys - j < ROWS ? keys - j : ROWS)->weighted(
            by_key + j * KEYS, rows, width * 4, count, ones, sum + j * width, width);
}

/* The gradients of keys and values of the tile that begins with `key`; `all` rows there are. */
static void gradient_of_keys(const gradient_t *g, int64_t key, ptrdiff_t n, ptrdiff_t all, char *memory) {
    const attention_t *a = &g->a;
    gradient_scratch_t s;
    lay_out_gradient(a, memory, &s);
    memset(s.sum_key, 0, (size_t)((KEYS + ROWS) * s.width) * sizeof(float));
    memset(s.sum_value, 0, (size_t)((KEYS + ROWS) * s.value_width) * sizeof(float));
    int taken = 0;
    for (ptrdiff_t first = 0; first < all; first += BLOCK_ROWS) {
        ptrdiff_t rows = all - first < BLOCK_ROWS ? all - first : BLOCK_ROWS;
        int seeing = 0;
        for (ptrdiff_t r = 0; r < rows && !seeing; r++) {
            range_t seen = seen_by(a, query_of(a, first + r));
            seeing = seen.begin < key + n && seen.end > key;
        }
        if (!seeing) continue;
        if (!taken) take_keys(g, key, n, &s);
        taken = 1;
        take_rows(g, first, rows, &s);
        for (ptrdiff_t place = 0; place < rows; place += ROWS) {
            ptrdiff_t count = rows - place < ROWS ? rows - place : ROWS;
            int some = slopes_of(g, first + place, place, count, key, n, &s);
            for (ptrdiff_t m = 0; m < count; m++)
                for (ptrdiff_t j = 0; j < n; j++) {
                    s.weights_by_key[j * KEYS + place + m] = some ? s.scores[m * KEYS + j] : 0.0f;
                    s.slopes_by_key[j * KEYS + place + m] = some ? s.slopes[m * KEYS + j] : 0.0f;
                }
        }
        add_by_key(s.weights_by_key, n, s.grad_rows, rows, s.value_width, s.sum_value);
        add_by_key(s.slopes_by_key, n, s.query_rows, rows, s.width, s.sum_key);
    }
    for (ptrdiff_t j = 0; j < n; j++) {
        float *line = s.sum_key + j * s.width;
        for (ptrdiff_t k = 0; k < a->depth; k++)
            line[k] *= a->scale;
        narrow(line, g->grad_key.data + (key + j) * g->grad_key.row, g->grad_key.step, a->type, a->depth);
        narrow(
            s.sum_value + j * s.value_width, g->grad_value.data + (key + j) * g->grad_value.row,
            g->grad_value.step, a->type, a->values);
    }
}

#endif
