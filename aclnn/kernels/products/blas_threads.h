/* Calls of the BLAS: with no more threads than they may use, and none across a fork.
 *
 * The BLAS has one number of threads for the process. While calls run that may use fewer, it is the least
 * of theirs, then again what it was. MKL has a number for each thread, which is set for a call instead.
 *
 * A fork waits for calls that run, and calls wait for the fork: locks of the BLAS that another thread holds
 * would be locked forever in the child.
 */
#ifndef ACLNN_BLAS_THREADS_H
#define ACLNN_BLAS_THREADS_H

#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>

enum { BLAS_MOST_THREADS = 1024 };

static struct {
    int (*number)(void);         /* that it may use now; NULL where it is not known */
    void (*set_number)(int);
    int (*set_for_thread)(int);  /* gives what it was, 0 for the process's */
    pthread_mutex_t lock;
    int running;                 /* calls that are bound */
    int bound[BLAS_MOST_THREADS + 1]; /* how many of them, by the threads that they may use */
    int own, now;                /* what the BLAS was set to before, and what it is now */
    int users, forking;
} blas_pool = { .lock = PTHREAD_MUTEX_INITIALIZER };

static inline void blas_set(int number) {
    blas_pool.set_number(number);
    blas_pool.now = number;
}

/* Bind a call that the BLAS may divide among threads; what `blas_release` takes. */
static int blas_bind(int threads) {
    if (blas_pool.set_for_thread) {
        int most = blas_pool.number ? blas_pool.number() : threads;
        return blas_pool.set_for_thread(threads < most ? threads : most);
    }
    if (!blas_pool.set_number) return 0;
    pthread_mutex_lock(&blas_pool.lock);
    if (!blas_pool.running++) blas_pool.own = blas_pool.now = blas_pool.number();
    if (threads > blas_pool.own) threads = blas_pool.own;
    if (threads > BLAS_MOST_THREADS) threads = BLAS_MOST_THREADS;
    if (threads < 1) threads = 1;
    blas_pool.bound[threads]++;
    if (threads < blas_pool.now) blas_set(threads);
    pthread_mutex_unlock(&blas_pool.lock);
    return threads;
}

static void blas_release(int bound) {
    if (blas_pool.set_for_thread) {
        blas_pool.set_for_thread(bound);
        return;
    }
    if (!blas_pool.set_number) return;
    pthread_mutex_lock(&blas_pool.lock);
    blas_pool.bound[bound]--;
    int next = --blas_pool.running ? blas_pool.now : blas_pool.own;
    while (next < blas_pool.own && !blas_pool.bound[next]) next++;
    /* What somebody else has set meanwhile stays. */
    if (next > blas_pool.now && blas_pool.number() == blas_pool.now) blas_set(next);
    pthread_mutex_unlock(&blas_pool.lock);
}

static void blas_enter(void) {
    for (;;) {
        __atomic_fetch_add(&blas_pool.users, 1, __ATOMIC_SEQ_CST);
        if (!__atomic_load_n(&blas_pool.forking, __ATOMIC_SEQ_CST)) return;
        __atomic_fetch_sub(&blas_pool.users, 1, __ATOMIC_SEQ_CST);
        while (__atomic_load_n(&blas_pool.forking, __ATOMIC_SEQ_CST)) sched_yield();
    }
}
static void blas_leave(void) { __atomic_fetch_sub(&blas_pool.users, 1, __ATOMIC_SEQ_CST); }

/* Several threads may fork at once: each counts. */
static void blas_before_fork(void) {
    __atomic_fetch_add(&blas_pool.forking, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&blas_pool.users, __ATOMIC_SEQ_CST)) sched_yield();
}
static void blas_in_parent(void) { __atomic_fetch_sub(&blas_pool.forking, 1, __ATOMIC_SEQ_CST); }
static void blas_in_child(void) { blas_pool.forking = blas_pool.users = 0; }

/* Addresses of the BLAS's functions, 0 for those that it lacks. It is loaded: its own handlers of forks run
 * after these, as what stops its threads. */
static int blas_found(size_t number, size_t set_number, size_t set_for_thread) {
    static int watching;
    blas_pool.number = (int (*)(void))(uintptr_t)number;
    blas_pool.set_number = number ? (void (*)(int))(uintptr_t)set_number : NULL;
    blas_pool.set_for_thread = (int (*)(int))(uintptr_t)set_for_thread;
    if (watching) return 0;
    watching = 1;
    return pthread_atfork(blas_before_fork, blas_in_parent, blas_in_child);
}

#endif
