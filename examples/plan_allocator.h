/* An allocator that serves a plan: `aclnn plan ... --header plan.h`, then include both.

   The caller gives one block of PLAN_SIZE bytes, aligned to PLAN_ALIGNMENT, says which step runs, and asks
   for buffers by their numbers. A buffer outside its lifetime is refused with NULL. */
#ifndef PLAN_ALLOCATOR_H
#define PLAN_ALLOCATOR_H
#include <stddef.h>
#include <stdint.h>

struct plan_arena {
    char *base;
    const struct plan_buffer *buffers;
    size_t count;
    uint64_t step;
};

static int plan_is_live(const struct plan_buffer *b, uint64_t step)
{
    return b->first <= step && step <= b->last && !(b->free_from <= step && step < b->free_until);
}

/* 0, or the number of a buffer, from 1, that is not where a plan may have it. */
static size_t plan_check(const struct plan_buffer *buffers, size_t count, uint64_t size)
{
    for (size_t i = 0; i < count; i++)
        if (buffers[i].offset > size || buffers[i].size > size - buffers[i].offset)
            return i + 1;
    return 0;
}

/* Begin with a block of memory; 0 if it is none, or not aligned. */
static int plan_begin(struct plan_arena *arena, void *block, size_t alignment,
                      const struct plan_buffer *buffers, size_t count)
{
    if (block == NULL || (uintptr_t)block % alignment)
        return 0;
    arena->base = (char *)block;
    arena->buffers = buffers;
    arena->count = count;
    arena->step = 0;
    return 1;
}

/* The memory of a buffer at the arena's step, or NULL. */
static void *plan_get(const struct plan_arena *arena, size_t id)
{
    if (id >= arena->count || !plan_is_live(&arena->buffers[id], arena->step))
        return NULL;
    return arena->base + arena->buffers[id].offset;
}
#endif
