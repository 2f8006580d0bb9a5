/* Device memory between pages that nobody may touch: what reads or writes past it ends at once.
 *
 * A library that is loaded before a program (LD_PRELOAD). Memory ends where such a page begins, but for what its
 * alignment takes, or with ACLNN_TEST_GUARD=before begins where one ends. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096, ALIGNMENT = 64, MOST = 1 << 16 };

typedef int malloc_fn(void **, size_t, int);
typedef int free_fn(void *);
typedef struct {
  char *given, *begin; /* what the program has, and the first page of it */
  void *own;
  size_t bytes;
} block_t;

static block_t blocks[MOST];
static int count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void protect(const block_t *block, int access) {
  if (mprotect(block->begin - PAGE, PAGE, access) || mprotect(block->begin + block->bytes, PAGE, access)) abort();
}

int aclrtMalloc(void **given, size_t size, int policy) {
  malloc_fn *next = (malloc_fn *)dlsym(RTLD_NEXT, "aclrtMalloc");
  const char *side = getenv("ACLNN_TEST_GUARD");
  block_t block;
  if (given == NULL || size == 0 || size > ((size_t)1 << 40)) return next(given, size, policy);
  block.bytes = (size + PAGE - 1) / PAGE * PAGE;
  int status = next(&block.own, block.bytes + 3 * PAGE, policy);
  if (status) return status;
  block.begin = (char *)(((uintptr_t)block.own + PAGE - 1) / PAGE * PAGE + PAGE);
  block.given = block.begin;
  if (side == NULL || strcmp(side, "before") != 0)
    block.given += block.bytes - (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  protect(&block, PROT_NONE);
  pthread_mutex_lock(&lock);
  if (count == MOST) abort();
  blocks[count++] = block;
  pthread_mutex_unlock(&lock);
  *given = block.given;
  return 0;
}

int aclrtFree(void *given) {
  free_fn *next = (free_fn *)dlsym(RTLD_NEXT, "aclrtFree");
  pthread_mutex_lock(&lock);
  int at = count - 1;
  while (at >= 0 && blocks[at].given != given) at--;
  block_t block = {0};
  if (at >= 0) {
    block = blocks[at];
    blocks[at] = blocks[--count];
  }
  pthread_mutex_unlock(&lock);
  if (at < 0) return next(given);
  protect(&block, PROT_READ | PROT_WRITE);
  return next(block.own);
}
