/* Stores that bypass the cache, in whole lines, for outputs that nobody reads soon. */
#ifndef ACLNN_STREAM_STORE_H
#define ACLNN_STREAM_STORE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

enum { LINE = 64 };

static inline void stream_line(char *dst, const char *src) {
#if defined(__AVX512F__)
    _mm512_stream_si512((__m512i *)dst, _mm512_loadu_si512(src));
#elif defined(__AVX__)
    __m256i a = _mm256_loadu_si256((const __m256i *)src);
    __m256i b = _mm256_loadu_si256((const __m256i *)(src + 32));
    _mm256_stream_si256((__m256i *)dst, a);
    _mm256_stream_si256((__m256i *)(dst + 32), b);
#elif defined(__SSE2__)
    for (int i = 0; i < LINE; i += 16)
        _mm_stream_si128((__m128i *)(dst + i), _mm_loadu_si128((const __m128i *)(src + i)));
#else
    memcpy(dst, src, LINE);
#endif
}

/* Copy n bytes: plainly up to the first line boundary and after the last. */
static inline void stream_bytes(char *dst, const char *src, ptrdiff_t n) {
    ptrdiff_t head = (ptrdiff_t)(-(uintptr_t)dst & (LINE - 1));
    head = head < n ? head : n;
    memcpy(dst, src, (size_t)head);
    ptrdiff_t i = head;
    for (; i + LINE <= n; i += LINE) stream_line(dst + i, src + i);
    memcpy(dst + i, src + i, (size_t)(n - i));
}

/* Few bytes, without the call that a copy of any length would be. */
static inline void copy_bytes(char *restrict dst, const char *restrict src, ptrdiff_t n) {
    ptrdiff_t i = 0;
    for (; i + LINE <= n; i += LINE) memcpy(dst + i, src + i, LINE);
    if (i < n) memcpy(dst + i, src + i, (size_t)(n - i));
}

/* Streamed lines become visible to other threads in any order without this. */
static inline void stream_fence(void) {
#if defined(__SSE2__)
    _mm_sfence();
#endif
}

#endif
