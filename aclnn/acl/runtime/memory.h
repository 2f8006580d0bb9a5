/* Device memory: segments of address space that blocks are cut from, and the live blocks by address.
 *
 * The device is this machine's CPU. Segments belong to the runtime alone, so that an address in one of them
 * that lies in no live block is known to be freed; any other address is the program's own. A freed block
 * ends at once for every new use; queued work goes on with its bytes, which are released when that is done.
 */
#ifndef ACLNN_RUNTIME_MEMORY_H
#define ACLNN_RUNTIME_MEMORY_H

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "process.h"

#ifndef MAP_NORESERVE
#define MAP_NORESERVE 0
#endif

#define RT_KIB ((uint64_t)1 << 10)
#define RT_MIB ((uint64_t)1 << 20)
#define RT_GIB ((uint64_t)1 << 30)
#define RT_ALIGNMENT ((uint64_t)512)
#define RT_PAGE (4 * RT_KIB)
#define RT_HUGE_PAGE (2 * RT_MIB)
#define RT_HUGE_FROM (4 * RT_MIB)      /* bytes of a block that huge pages are asked for */
#define RT_SMALL (32 * RT_KIB)         /* sizes up to this are multiples of the alignment */
#define RT_SEGMENT (64 * RT_GIB)       /* address space that is reserved at a time */
#define RT_WRITABLE (4 * RT_MIB)       /* of a segment, that is made writable at a time */
#define RT_KEPT (64 * RT_MIB)          /* freed pages that are kept for the next blocks */
#define RT_LARGEST ((uint64_t)1 << 46) /* no machine of today has more */

enum {
    RT_SMALL_CLASSES = 64,                         /* multiples of 512 bytes */
    RT_STEPS = 8,                                  /* sizes between two powers of two */
    RT_CLASSES = RT_SMALL_CLASSES + RT_STEPS * 32, /* up to 2^47 */
    RT_SEGMENTS = 1024
};

/* A free place, of a class: it is written down outside of the memory, which is the program's. */
typedef struct rt_place {
    struct rt_place *next;
    uint64_t address;
    int has_pages;
} rt_place;

/* How a block came to its memory. Those that are mapped one behind the other in a reserved range are one piece of
 * memory: a span stands for them where something reaches across their borders. */
enum { RT_CUT, RT_MAPPED, RT_SPAN };

typedef struct rt_block {
    struct rt_block *left, *right; /* in a treap by address */
    uint32_t priority;
    int refs;
    int alive;
    int is_host;
    int kind;
    int class_;
    int uses;    /* of queued work */
    int waiters; /* threads that wait until there are none */
    int lost;    /* its pages went while queued work used it */
    uint64_t address, nbytes;
    uint64_t reach; /* bytes that may be touched */
    int64_t made_at;
    rt_place *place; /* that becomes free with it */
    void *physical;  /* of mapped memory: the rt_physical behind it, held */
    int n_parts;
    struct rt_block *parts[]; /* of a span, held */
} rt_block;

typedef struct {
    uint64_t begin, cut, writable, end; /* blocks were cut up to `cut` */
} rt_segment;

static struct {
    pthread_mutex_t lock;
    pthread_cond_t unused; /* a block that somebody waits for is used no more */
    rt_block *root;
    int64_t live; /* blocks */
    rt_place *free_places[RT_CLASSES];
    rt_segment segments[RT_SEGMENTS];
    int n_segments;
    uint64_t kept; /* bytes of free places that have pages */
    uint32_t seed;
} rt_memory = { .lock = PTHREAD_MUTEX_INITIALIZER, .seed = 2463534242u };

static inline uint64_t rt_round_up(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }

/* --- The live blocks ---------------------------------------------------------------------------- */

static rt_block *rt_rotate_right(rt_block *node) {
    rt_block *top = node->left;
    node->left = top->right;
    top->right = node;
    return top;
}
static rt_block *rt_rotate_left(rt_block *node) {
    rt_block *top = node->right;
    node->right = top->left;
    top->left = node;
    return top;
}
static rt_block *rt_insert(rt_block *node, rt_block *added) {
    if (node == NULL) return added;
    if (added->address < node->address) {
        node->left = rt_insert(node->left, added);
        return node->left->priority > node->priority ? rt_rotate_right(node) : node;
    }
    node->right = rt_insert(node->right, added);
    return node->right->priority > node->priority ? rt_rotate_left(node) : node;
}
static rt_block *rt_merge(rt_block *low, rt_block *high) {
    if (low == NULL) return high;
    if (high == NULL) return low;
    if (low->priority > high->priority) {
        low->right = rt_merge(low->right, high);
        return low;
    }
    high->left = rt_merge(low, high->left);
    return high;
}
static void rt_remove(rt_block *block) {
    rt_block **link = &rt_memory.root;
    while (*link != block) link = block->address < (*link)->address ? &(*link)->left : &(*link)->right;
    *link = rt_merge(block->left, block->right);
}
/* The live block that begins at or before an address. */
static rt_block *rt_before(uint64_t address) {
    rt_block *node = rt_memory.root, *found = NULL;
    while (node != NULL) {
        if (node->address <= address) {
            found = node;
            node = node->right;
        } else node = node->left;
    }
    return found;
}
static void rt_enter(rt_block *block) {
    uint32_t x = rt_memory.seed;
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    rt_memory.seed = block->priority = x;
    block->left = block->right = NULL;
    block->refs = block->alive = 1;
    rt_memory.root = rt_insert(rt_memory.root, block);
    rt_memory.live++;
}

/* --- Places ---------------------------------------------------------------------------------------- */

static int rt_class_of(uint64_t nbytes) {
    if (nbytes <= RT_SMALL) return (int)((nbytes + RT_ALIGNMENT - 1) / RT_ALIGNMENT) - 1;
    int power = 63 - __builtin_clzll(nbytes - 1); /* nbytes is above 2^power */
    uint64_t step = ((uint64_t)1 << power) / RT_STEPS;
    return RT_SMALL_CLASSES + (power - 15) * RT_STEPS + (int)((nbytes - 1 - ((uint64_t)1 << power)) / step);
}
static uint64_t rt_class_bytes(int class_) {
    if (class_ < RT_SMALL_CLASSES) return (uint64_t)(class_ + 1) * RT_ALIGNMENT;
    int power = (class_ - RT_SMALL_CLASSES) / RT_STEPS + 15, steps = (class_ - RT_SMALL_CLASSES) % RT_STEPS + 1;
    return ((uint64_t)1 << power) + ((uint64_t)1 << power) / RT_STEPS * (uint64_t)steps;
}

/* Room for so many bytes in a segment, a new one if need be; NULL where the system gives none. */
static rt_segment *rt_segment_for(uint64_t nbytes) {
    for (int k = rt_memory.n_segments - 1; k >= 0; k--)
        if (rt_memory.segments[k].end - rt_memory.segments[k].cut >= nbytes) return &rt_memory.segments[k];
    if (rt_memory.n_segments == RT_SEGMENTS) return NULL;
    uint64_t size = nbytes > RT_SEGMENT ? rt_round_up(nbytes, RT_GIB) : RT_SEGMENT;
    void *begin = MAP_FAILED;
    for (; begin == MAP_FAILED && size >= nbytes; size /= 4) {
        begin = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (begin != MAP_FAILED) break;
    }
    if (begin == MAP_FAILED) return NULL;
    rt_segment *one = &rt_memory.segments[rt_memory.n_segments];
    one->begin = one->cut = one->writable = (uint64_t)(uintptr_t)begin;
    one->end = one->begin + size;
    __atomic_store_n(&rt_memory.n_segments, rt_memory.n_segments + 1, __ATOMIC_RELEASE);
    return one;
}

static rt_place *rt_cut(int class_) {
    uint64_t nbytes = rt_class_bytes(class_), before = 0;
    uint64_t alignment = nbytes >= RT_HUGE_FROM ? RT_HUGE_PAGE : nbytes > RT_SMALL ? RT_PAGE : RT_ALIGNMENT;
    rt_segment *from = rt_segment_for(nbytes + alignment);
    rt_place *place = from == NULL ? NULL : calloc(1, sizeof *place);
    if (place == NULL) return NULL;
    before = rt_round_up(from->cut, alignment) - from->cut;
    uint64_t end = from->cut + before + nbytes;
    if (end > from->writable) {
        uint64_t most = rt_round_up(end - from->begin, RT_WRITABLE) + from->begin;
        if (most > from->end) most = rt_round_up(end - from->begin, RT_PAGE) + from->begin;
        if (mprotect((void *)(uintptr_t)from->writable, most - from->writable, PROT_READ | PROT_WRITE)) {
            free(place);
            return NULL;
        }
        from->writable = most;
    }
    place->address = from->cut + before;
    from->cut = end;
#ifdef MADV_HUGEPAGE
    if (nbytes >= RT_HUGE_FROM) madvise((void *)(uintptr_t)place->address, nbytes, MADV_HUGEPAGE);
#endif
    return place;
}

static rt_place *rt_take_place(int class_) {
    rt_place *place = rt_memory.free_places[class_];
    if (place == NULL) return rt_cut(class_);
    rt_memory.free_places[class_] = place->next;
    if (place->has_pages) rt_memory.kept -= rt_class_bytes(class_);
    return place;
}

/* Pages of what was freed go back to the system, but for some. */
static void rt_give_place_back(rt_place *place, int class_) {
    uint64_t nbytes = rt_class_bytes(class_);
    place->has_pages = nbytes <= RT_SMALL || rt_memory.kept + nbytes <= RT_KEPT;
    if (place->has_pages) rt_memory.kept += nbytes;
    else madvise((void *)(uintptr_t)place->address, nbytes, MADV_DONTNEED);
    place->next = rt_memory.free_places[class_];
    rt_memory.free_places[class_] = place;
}

/* --- Blocks ------------------------------------------------------------------------------------------ */

/* What programs in C may touch of so many bytes: up to the next multiple of 32, and 32 more. */
static uint64_t rt_with_slack(uint64_t nbytes) { return rt_round_up(nbytes, 32) + 32; }

/* A new block, which the registry holds: NULL where memory is short. */
static rt_block *rt_allocate(uint64_t nbytes, int is_host, int has_slack) {
    if (nbytes > RT_LARGEST) return NULL;
    rt_block *block = calloc(1, sizeof *block);
    if (block == NULL) return NULL;
    int class_ = rt_class_of(rt_with_slack(nbytes));
    pthread_mutex_lock(&rt_memory.lock);
    rt_place *place = rt_take_place(class_);
    if (place == NULL) {
        pthread_mutex_unlock(&rt_memory.lock);
        free(block);
        return NULL;
    }
    block->place = place;
    block->class_ = class_;
    block->address = place->address;
    block->nbytes = nbytes;
    block->reach = has_slack ? rt_with_slack(nbytes) : nbytes;
    block->is_host = is_host;
    block->made_at = rt_clock(); /* captures tell by it what was made inside them */
    rt_enter(block);
    pthread_mutex_unlock(&rt_memory.lock);
    return block;
}

static void rt_block_hold(rt_block *block) { __atomic_add_fetch(&block->refs, 1, __ATOMIC_RELAXED); }

static void rt_block_drop(rt_block *block) {
    if (__atomic_sub_fetch(&block->refs, 1, __ATOMIC_ACQ_REL)) return;
    for (int k = 0; k < block->n_parts; k++) rt_block_drop(block->parts[k]);
    if (block->kind == RT_CUT) {
        pthread_mutex_lock(&rt_memory.lock);
        rt_give_place_back(block->place, block->class_);
        pthread_mutex_unlock(&rt_memory.lock);
    }
    free(block);
}

/* Whether new calls may use a block. */
static int rt_block_lives(const rt_block *block) {
    for (int k = 0; k < block->n_parts; k++)
        if (!rt_block_lives(block->parts[k])) return 0;
    return __atomic_load_n(&block->alive, __ATOMIC_ACQUIRE);
}

/* Count queued work that uses a block, which it holds too. */
static void rt_block_use(rt_block *block) {
    for (int k = 0; k < block->n_parts; k++) rt_block_use(block->parts[k]);
    __atomic_add_fetch(&block->uses, 1, __ATOMIC_SEQ_CST);
}
static void rt_block_end_use(rt_block *block) {
    for (int k = 0; k < block->n_parts; k++) rt_block_end_use(block->parts[k]);
    if (__atomic_sub_fetch(&block->uses, 1, __ATOMIC_SEQ_CST)) return;
    if (!__atomic_load_n(&block->waiters, __ATOMIC_SEQ_CST)) return;
    pthread_mutex_lock(&rt_memory.lock);
    pthread_cond_broadcast(&rt_memory.unused);
    pthread_mutex_unlock(&rt_memory.lock);
}
static int rt_block_is_used(const rt_block *block) { return __atomic_load_n(&block->uses, __ATOMIC_SEQ_CST) > 0; }

/* Whether queued work, which has counted itself, still finds its bytes when its turn comes. */
static int rt_block_serves(const rt_block *block) {
    for (int k = 0; k < block->n_parts; k++)
        if (!rt_block_serves(block->parts[k])) return 0;
    if (__atomic_load_n(&block->lost, __ATOMIC_ACQUIRE)) return 0;
    return block->kind == RT_SPAN || rt_block_is_used(block) || rt_block_lives(block);
}

/* End the block that begins at an address for new uses: the caller holds it then. NULL when there is none of that
 * kind. */
static rt_block *rt_end_block(uint64_t address, int is_host, int kind) {
    pthread_mutex_lock(&rt_memory.lock);
    rt_block *found = rt_before(address);
    if (found != NULL && (found->address != address || found->is_host != is_host || found->kind != kind)) found = NULL;
    if (found != NULL) {
        rt_remove(found);
        rt_memory.live--;
        __atomic_store_n(&found->alive, 0, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&rt_memory.lock);
    return found;
}

/* Address space that was reserved by aclrtReserveMemAddress; guarded by the memory's lock. */
typedef struct rt_range {
    struct rt_range *next;
    uint64_t address, nbytes;
} rt_range;
static rt_range *rt_reserved;

/* The reserved range of an address; the lock is held. */
static rt_range *rt_range_of(uint64_t address) {
    rt_range *one = rt_reserved;
    while (one != NULL && address - one->address >= one->nbytes) one = one->next;
    return one;
}

/* The block that is mapped behind another one in the same range, or NULL; the lock is held. */
static rt_block *rt_next_mapped(const rt_block *block) {
    uint64_t end = block->address + block->nbytes;
    rt_block *next = rt_before(end);
    if (next == NULL || next->address != end || next->kind != RT_MAPPED) return NULL;
    return rt_range_of(end) == rt_range_of(block->address) ? next : NULL;
}

/* What is mapped from a block on, as far as some end if it goes so far: held, the block alone where nothing
 * follows it, or memory is short; the lock is held. */
static rt_block *rt_span(rt_block *first, uint64_t end) {
    int count = 1;
    rt_block *last = first;
    for (rt_block *next; last->address + last->nbytes < end && (next = rt_next_mapped(last)) != NULL; last = next)
        count++;
    rt_block *span = count > 1 ? calloc(1, sizeof *span + (size_t)count * sizeof *span->parts) : NULL;
    if (span == NULL) {
        rt_block_hold(first);
        return first;
    }
    span->refs = span->alive = 1;
    span->kind = RT_SPAN;
    span->address = first->address;
    span->nbytes = span->reach = last->address + last->nbytes - first->address;
    span->n_parts = count;
    for (int k = 0; k < count; k++, first = rt_next_mapped(first)) {
        rt_block_hold(first);
        span->parts[k] = first;
        if (first->made_at > span->made_at) span->made_at = first->made_at;
    }
    return span;
}

/* The live block that has so many bytes at an address, or the first of them where it has not all, or ends there; it
 * is held for the caller. */
static rt_block *rt_find(uint64_t address, uint64_t nbytes) {
    pthread_mutex_lock(&rt_memory.lock);
    rt_block *found = rt_before(address);
    if (found != NULL && address - found->address > found->reach) found = NULL;
    if (found != NULL && found->kind == RT_MAPPED && nbytes > found->address + found->reach - address)
        found = rt_span(found, nbytes > RT_LARGEST ? UINT64_MAX : address + nbytes);
    else if (found != NULL) rt_block_hold(found);
    pthread_mutex_unlock(&rt_memory.lock);
    return found;
}

static int rt_is_ours(uint64_t address) {
    int count = __atomic_load_n(&rt_memory.n_segments, __ATOMIC_ACQUIRE);
    for (int k = 0; k < count; k++)
        if (address >= rt_memory.segments[k].begin && address < rt_memory.segments[k].end) return 1;
    return 0;
}

/* --- Address space and memory apart -------------------------------------------------------------------- */

/* Memory that can be mapped is a part of one file without a name, which has pages where they were written. */
static struct {
    pthread_mutex_t lock;
    int file;
    uint64_t end;
} rt_file = { .lock = PTHREAD_MUTEX_INITIALIZER, .file = -1 };

static int rt_is_reserved(uint64_t address) {
    pthread_mutex_lock(&rt_memory.lock);
    int found = rt_range_of(address) != NULL;
    pthread_mutex_unlock(&rt_memory.lock);
    return found;
}

static int64_t rt_extend_file(uint64_t nbytes) {
    int64_t offset = -1;
    pthread_mutex_lock(&rt_file.lock);
#ifdef MFD_CLOEXEC
    if (rt_file.file < 0) rt_file.file = memfd_create("aclnn", MFD_CLOEXEC);
#endif
    if (rt_file.file >= 0 && !ftruncate(rt_file.file, (off_t)(rt_file.end + nbytes))) {
        offset = (int64_t)rt_file.end;
        rt_file.end += nbytes;
    }
    pthread_mutex_unlock(&rt_file.lock);
    return offset;
}

/* Give pages of the file back to the system. */
static void rt_give_pages_back(uint64_t offset, uint64_t nbytes) {
#ifdef FALLOC_FL_PUNCH_HOLE
    fallocate(rt_file.file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)nbytes);
#else
    (void)offset, (void)nbytes;
#endif
}

/* Check that bytes can be used: the block that they lie in is held in `*block`, NULL for the program's own memory.
 */
static int rt_check(const char *function, const char *name, const void *pointer, uint64_t nbytes, rt_block **block) {
    uint64_t address = (uint64_t)(uintptr_t)pointer;
    *block = NULL;
    if (pointer == NULL && nbytes) return rt_fail(RT_PARAM_INVALID, "%s: %s is null", function, name);
    rt_block *found = rt_find(address, nbytes);
    if (found == NULL || (address == found->address + found->reach && nbytes)) {
        int is_ours = rt_is_ours(address) || rt_is_reserved(address);
        if (found != NULL) rt_block_drop(found);
        if (!is_ours) return RT_SUCCESS;
        return rt_fail(
            RT_PARAM_INVALID, "%s: %s is address %#llx, which is in no live allocation of aclrtMalloc", function,
            name, (unsigned long long)address);
    }
    uint64_t used = address - found->address;
    if (nbytes > found->reach - used) {
        uint64_t left = used < found->nbytes ? found->nbytes - used : 0;
        rt_block_drop(found);
        return rt_fail(
            RT_PARAM_INVALID, "%s: %s is address %#llx, %llu bytes before the end of its allocation, but %llu bytes "
            "are used", function, name, (unsigned long long)address, (unsigned long long)left,
            (unsigned long long)nbytes);
    }
    *block = found;
    return RT_SUCCESS;
}

#endif
