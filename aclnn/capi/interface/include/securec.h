/* Functions on memory and text that know how much room there is, with the meaning of Annex K of C11. They give 0, or
 * an error number after which a text is empty and memory is zero, where there is room for that. */
#ifndef ACLNN_CPU_SECUREC_H_
#define ACLNN_CPU_SECUREC_H_

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#ifndef errno_t
typedef int errno_t;
#define errno_t errno_t
#endif
#ifndef EOK
#define EOK 0
#endif
#ifndef EINVAL_AND_RESET
#define EINVAL_AND_RESET (22 | 128)
#endif
#ifndef ERANGE_AND_RESET
#define ERANGE_AND_RESET (34 | 128)
#endif
#ifndef EOVERLAP_AND_RESET
#define EOVERLAP_AND_RESET (54 | 128)
#endif
#define SECUREC_MEM_MAX_LEN ((size_t)0x7fffffff)
#define SECUREC_STRING_MAX_LEN ((size_t)0x7fffffff)

#if defined(__GNUC__) || defined(__clang__)
#define ACLNN_CPU_PRINTS(format_at, first_at) __attribute__((format(printf, format_at, first_at)))
#else
#define ACLNN_CPU_PRINTS(format_at, first_at)
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Whether two stretches of bytes have some in common. */
static inline int aclnn_cpu_overlap(const void *a, const void *b, size_t count) {
  const uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;
  return a != b && (x < y ? y - x < count : x - y < count);
}

/* Characters before the zero, `most` where there is none in so many. */
static inline size_t aclnn_cpu_length(const char *text, size_t most) {
  const char *end = (const char *)memchr(text, 0, most);
  return end ? (size_t)(end - text) : most;
}

static inline errno_t memset_s(void *dest, size_t destMax, int c, size_t count) {
  if (destMax == 0 || destMax > SECUREC_MEM_MAX_LEN) return ERANGE;
  if (!dest) return EINVAL;
  memset(dest, c, count > destMax ? destMax : count);
  return count > destMax ? ERANGE_AND_RESET : EOK;
}

static inline errno_t memmove_s(void *dest, size_t destMax, const void *src, size_t count) {
  if (destMax == 0 || destMax > SECUREC_MEM_MAX_LEN) return ERANGE;
  if (!dest) return EINVAL;
  if (!src || count > destMax) {
    memset(dest, 0, destMax);
    return src ? ERANGE_AND_RESET : EINVAL_AND_RESET;
  }
  memmove(dest, src, count);
  return EOK;
}

static inline errno_t memcpy_s(void *dest, size_t destMax, const void *src, size_t count) {
  if (dest && src && destMax > 0 && destMax <= SECUREC_MEM_MAX_LEN && count <= destMax &&
      aclnn_cpu_overlap(dest, src, count)) {
    memset(dest, 0, destMax);
    return EOVERLAP_AND_RESET;
  }
  return memmove_s(dest, destMax, src, count);
}

/* Puts at most `count` characters of a text behind the first `at` of another one. */
static inline errno_t aclnn_cpu_put(char *dest, size_t destMax, size_t at, const char *src, size_t count) {
  size_t length = aclnn_cpu_length(src, count < destMax ? count : destMax);
  if (length >= destMax - at || aclnn_cpu_overlap(dest + at, src, length + 1)) {
    dest[0] = 0;
    return length >= destMax - at ? ERANGE_AND_RESET : EOVERLAP_AND_RESET;
  }
  memmove(dest + at, src, length);
  dest[at + length] = 0;
  return EOK;
}

static inline errno_t strncpy_s(char *dest, size_t destMax, const char *src, size_t count) {
  if (destMax == 0 || destMax > SECUREC_STRING_MAX_LEN) return ERANGE;
  if (!dest) return EINVAL;
  if (!src) {
    dest[0] = 0;
    return EINVAL_AND_RESET;
  }
  return aclnn_cpu_put(dest, destMax, 0, src, count);
}

static inline errno_t strcpy_s(char *dest, size_t destMax, const char *src) {
  return strncpy_s(dest, destMax, src, SECUREC_STRING_MAX_LEN);
}

static inline errno_t strncat_s(char *dest, size_t destMax, const char *src, size_t count) {
  size_t at;
  if (destMax == 0 || destMax > SECUREC_STRING_MAX_LEN) return ERANGE;
  if (!dest) return EINVAL;
  at = aclnn_cpu_length(dest, destMax);
  if (!src || at == destMax) {
    dest[0] = 0;
    return EINVAL_AND_RESET;
  }
  return aclnn_cpu_put(dest, destMax, at, src, count);
}

static inline errno_t strcat_s(char *dest, size_t destMax, const char *src) {
  return strncat_s(dest, destMax, src, SECUREC_STRING_MAX_LEN);
}

/* These give the number of characters, or -1: what does not fit gives an empty text, or, where `count` cuts it off
 * before the room ends, its begin. */
ACLNN_CPU_PRINTS(4, 0)
static inline int vsnprintf_s(char *dest, size_t destMax, size_t count, const char *format, va_list arguments) {
  int length;
  if (!dest || destMax == 0 || destMax > SECUREC_STRING_MAX_LEN) return -1;
  dest[0] = 0;
  if (!format) return -1;
  length = vsnprintf(dest, count < destMax ? count + 1 : destMax, format, arguments);
  if (length < 0 || ((size_t)length >= destMax && count >= destMax)) {
    dest[0] = 0;
    return -1;
  }
  return (size_t)length > count ? -1 : length;
}

ACLNN_CPU_PRINTS(3, 0)
static inline int vsprintf_s(char *dest, size_t destMax, const char *format, va_list arguments) {
  return vsnprintf_s(dest, destMax, SECUREC_STRING_MAX_LEN, format, arguments);
}

ACLNN_CPU_PRINTS(4, 5)
static inline int snprintf_s(char *dest, size_t destMax, size_t count, const char *format, ...) {
  va_list arguments;
  int length;
  va_start(arguments, format);
  length = vsnprintf_s(dest, destMax, count, format, arguments);
  va_end(arguments);
  return length;
}

ACLNN_CPU_PRINTS(3, 4)
static inline int sprintf_s(char *dest, size_t destMax, const char *format, ...) {
  va_list arguments;
  int length;
  va_start(arguments, format);
  length = vsprintf_s(dest, destMax, format, arguments);
  va_end(arguments);
  return length;
}

#ifdef __cplusplus
}
#endif

#endif /* ACLNN_CPU_SECUREC_H_ */
