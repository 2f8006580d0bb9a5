"""Sorts of whole numbers of 64 bits, of which the upper bits are a key and the lower ones an index.

No two are alike, so that any order of equal keys is that of their indices. Few are merged, more
are sorted by digits of their keys.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

cdef enum:
    MERGED = 192            # lines of at most so many elements are merged
    RUN = 8                 # of which so many are put in order one by one
    WIDE_FROM = 4096        # elements from which digits have eleven bits
    MOST_BUCKETS = 2048
    COUNTS_BYTES = 24576    # of counts: three digits of eleven bits, or eight of eight

cdef struct entry_t:
    # An element whose key leaves no room for its index.
    uint64_t key
    int64_t index


cdef inline void put_in_order(uint64_t *x, ptrdiff_t n) noexcept nogil:
    """Insertion, of a few."""
    cdef ptrdiff_t i, j
    cdef uint64_t own
    for i in range(1, n):
        own, j = x[i], i
        while j > 0 and x[j - 1] > own:
            x[j] = x[j - 1]
            j -= 1
        x[j] = own


cdef inline void merge(const uint64_t *a, ptrdiff_t n, const uint64_t *b, ptrdiff_t m,
                       uint64_t *to) noexcept nogil:
    """Without branches as long as both have elements: each step takes one of them."""
    cdef const uint64_t *a_end = a + n
    cdef const uint64_t *b_end = b + m
    cdef bint left
    while a < a_end and b < b_end:
        left = a[0] < b[0]
        to[0] = a[0] if left else b[0]
        a += left
        b += not left
        to += 1
    memcpy(to, a, (a_end - a) * sizeof(uint64_t))
    to += a_end - a
    memcpy(to, b, (b_end - b) * sizeof(uint64_t))


cdef inline uint64_t *merge_sort(uint64_t *x, uint64_t *other, ptrdiff_t n) noexcept nogil:
    """The one of both that has them in order at the end."""
    cdef ptrdiff_t i, width = RUN, half
    i = 0
    while i < n:
        put_in_order(x + i, min(<ptrdiff_t>RUN, n - i))
        i += RUN
    while width < n:
        i = 0
        while i < n:
            half = min(width, n - i)
            merge(x + i, half, x + i + half, min(width, n - i - half), other + i)
            i += 2 * width
        x, other = other, x
        width *= 2
    return x


cdef inline uint64_t *digit_sort(uint64_t *x, uint64_t *other, ptrdiff_t n, int bits,
                                 uint32_t *counts) noexcept nogil:
    """By digits of keys of so many bits, the lowest first, but for those that all share."""
    cdef int width = 11 if n >= WIDE_FROM else 8, digits, d, shift
    cdef uint32_t mask, total, count
    cdef uint32_t *own
    cdef uint64_t key
    cdef ptrdiff_t i, b, buckets
    if bits <= 16:
        width = 8
    digits = (bits + width - 1) // width
    buckets, mask = 1 << width, (1 << width) - 1
    memset(counts, 0, digits * buckets * sizeof(uint32_t))
    if digits == 3:
        for i in range(n):
            key = x[i] >> 32
            counts[key & mask] += 1
            counts[buckets + (key >> 11 & mask)] += 1
            counts[2 * buckets + (key >> 22)] += 1
    else:
        for i in range(n):
            key = x[i] >> 32
            for d in range(digits):
                counts[d * buckets + (key >> (8 * d) & mask)] += 1
    for d in range(digits):
        own, total, shift = counts + d * buckets, 0, 32 + d * width
        if own[x[0] >> shift & mask] == <uint32_t>n:
            continue
        for b in range(buckets):
            count = own[b]
            own[b] = total
            total += count
        for i in range(n):
            key = x[i]
            other[own[key >> shift & mask]] = key
            own[key >> shift & mask] += 1
        x, other = other, x
    return x


cdef inline entry_t *wide_sort(entry_t *x, entry_t *other, ptrdiff_t n,
                               uint32_t *counts) noexcept nogil:
    """Sort by keys of 64 bits."""
    cdef uint32_t total, count
    cdef uint32_t *own
    cdef ptrdiff_t i, b
    cdef int d, shift
    memset(counts, 0, 8 * 256 * sizeof(uint32_t))
    for i in range(n):
        for d in range(8):
            counts[d * 256 + (x[i].key >> (8 * d) & 255)] += 1
    for d in range(8):
        own, total, shift = counts + d * 256, 0, 8 * d
        if own[x[0].key >> shift & 255] == <uint32_t>n:
            continue
        for b in range(256):
            count = own[b]
            own[b] = total
            total += count
        for i in range(n):
            b = x[i].key >> shift & 255
            other[own[b]] = x[i]
            own[b] += 1
        x, other = other, x
    return x


cdef inline uint64_t *sorted_keys(uint64_t *x, uint64_t *other, ptrdiff_t n, int bits,
                                  uint32_t *counts) noexcept nogil:
    if n <= MERGED:
        return merge_sort(x, other, n)
    return digit_sort(x, other, n, bits, counts)


cdef inline ptrdiff_t let_through(uint64_t *x, ptrdiff_t n, ptrdiff_t k, int bits,
                                  uint32_t *counts) noexcept nogil:
    """Move the keys to the front that may be among the `k` least: those whose upper digits do not
    exceed the k-th's; how many they are."""
    cdef int width = min(11, bits), shift = 32 + bits - width
    cdef uint64_t most, key
    cdef ptrdiff_t i, found = 0
    cdef uint32_t total = 0
    memset(counts, 0, MOST_BUCKETS * sizeof(uint32_t))
    for i in range(n):
        counts[x[i] >> shift] += 1
    most = 0
    while total + counts[most] < <uint32_t>k:
        total += counts[most]
        most += 1
    most += 1
    for i in range(n):
        key = x[i]
        x[found] = key
        found += (key >> shift) < most
    return found
