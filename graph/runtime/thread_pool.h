/* Threads that wait for work, and teams of them: the caller and as many others as are free each do a
 * part. The caller also does those that no other thread has begun by the time it is done with its own,
 * so that threads which sleep, or have no CPU, hold nothing up.
 *
 * Handing parts over and waiting for them takes 0.5 us, half of what a loop of OpenMP does, which sets a
 * team up each time.
 */
#ifndef ACLNN_TEAM_H
#define ACLNN_TEAM_H

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#if defined(__linux__) && defined(CPU_COUNT)
#define TEAM_PLACES
#endif

typedef void (*team_part)(void *context, int member);

enum {
    TEAM_LINES = 128,          /* bytes that CPUs fetch at once: two lines */
    TEAM_MOST = 1024,          /* threads in all */
    TEAM_STACK = 1 << 23,      /* bytes for each of them: a kernel may be anything, Python too */
    TEAM_SPIN_NS = 1000000,    /* that a thread looks for more work before it sleeps */
    TEAM_PAUSES = 64,          /* between two looks at the clock */
    TEAM_PATIENCE = 1 << 12    /* pauses before a caller that waits lets others have its CPU */
};

/* A worker is FREE until a caller HOLDS it, and has POSTED work once it has something to do. Whoever
 * changes that, the worker to BUSY or the caller back, does the part. */
enum { TEAM_FREE, TEAM_HELD, TEAM_POSTED, TEAM_BUSY, TEAM_DONE };

typedef struct {
    int state, asleep;
    int member;
    team_part part;
    void *context;
    __attribute__((aligned(TEAM_LINES))) pthread_mutex_t lock;
    pthread_cond_t rings;
    int rung;
    int spins; /* whether it has a CPU to look for work on */
    pthread_t thread;
#ifdef TEAM_PLACES
    int placed; /* it was woken elsewhere than on the caller's CPU, and may run where the caller may */
    cpu_set_t usable;
#endif
} __attribute__((aligned(TEAM_LINES))) team_worker;

static struct {
    pthread_mutex_t lock; /* for making workers */
    int count;
    team_worker *workers[TEAM_MOST];
} team_pool = { .lock = PTHREAD_MUTEX_INITIALIZER };

static inline void team_pause(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static inline int team_state(const team_worker *worker) {
    return __atomic_load_n(&worker->state, __ATOMIC_SEQ_CST);
}
static inline void team_set(team_worker *worker, int state) {
    __atomic_store_n(&worker->state, state, __ATOMIC_RELEASE);
}
static inline int team_change(team_worker *worker, int from, int to) {
    return __atomic_compare_exchange_n(&worker->state, &from, to, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static inline int64_t team_clock(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void team_look_for_work(const team_worker *worker) {
    int64_t until = team_clock() + TEAM_SPIN_NS;
    do {
        for (int k = 0; k < TEAM_PAUSES; k++) {
            if (team_state(worker) == TEAM_POSTED) return;
            team_pause();
        }
    } while (team_clock() < until);
}

#ifdef TEAM_PLACES
static int team_cpus(void) {
    cpu_set_t usable;
    return sched_getaffinity(0, sizeof usable, &usable) ? 1 : CPU_COUNT(&usable);
}
/* A thread that is woken often comes to the CPU of who woke it, and waits there for milliseconds: let it
 * be woken on another. Where it may run it had from its first caller; now it has that from this one. */
static void team_place(team_worker *worker) {
    int here = sched_getcpu();
    cpu_set_t others;
    if (here < 0 || sched_getaffinity(0, sizeof others, &worker->usable)) return;
    others = worker->usable;
    CPU_CLR(here, &others);
    worker->placed = CPU_COUNT(&others) && !pthread_setaffinity_np(worker->thread, sizeof others, &others);
}
static void team_unplace(team_worker *worker) {
    if (!worker->placed) return;
    pthread_setaffinity_np(worker->thread, sizeof worker->usable, &worker->usable);
    worker->placed = 0;
    worker->spins = __atomic_load_n(&team_pool.count, __ATOMIC_RELAXED) < CPU_COUNT(&worker->usable);
}
#else
static int team_cpus(void) { return (int)sysconf(_SC_NPROCESSORS_ONLN); }
static void team_place(team_worker *worker) {}
static void team_unplace(team_worker *worker) {}
#endif

/* Either the worker sees what was posted, or who posted sees that it is asleep, and rings. */
static void team_sleep(team_worker *worker) {
    pthread_mutex_lock(&worker->lock);
    __atomic_store_n(&worker->asleep, 1, __ATOMIC_SEQ_CST);
    while (team_state(worker) != TEAM_POSTED && !worker->rung) pthread_cond_wait(&worker->rings, &worker->lock);
    worker->rung = 0;
    __atomic_store_n(&worker->asleep, 0, __ATOMIC_SEQ_CST);
    team_unplace(worker);
    pthread_mutex_unlock(&worker->lock);
}

static void *team_work(void *given) {
    team_worker *worker = given;
    for (;;) {
        if (worker->spins) team_look_for_work(worker);
        if (team_state(worker) != TEAM_POSTED) team_sleep(worker);
        if (!team_change(worker, TEAM_POSTED, TEAM_BUSY)) continue;
        worker->part(worker->context, worker->member);
        team_set(worker, TEAM_DONE);
    }
    return NULL;
}

/* Signals are for the threads that there were before. */
static int team_start(team_worker *worker) {
    pthread_attr_t attributes;
    sigset_t all, before;
    if (pthread_attr_init(&attributes)) return 0;
    pthread_attr_setstacksize(&attributes, TEAM_STACK);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&worker->thread, &attributes, team_work, worker);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return !failed;
}

/* One more worker, which is held; NULL where there can be none. */
static team_worker *team_new(void) {
    void *memory = NULL;
    team_worker *worker = NULL;
    pthread_mutex_lock(&team_pool.lock);
    int count = team_pool.count;
    if (count < TEAM_MOST && !posix_memalign(&memory, TEAM_LINES, sizeof *worker)) {
        worker = memset(memory, 0, sizeof *worker);
        worker->state = TEAM_HELD;
        worker->spins = count + 2 <= team_cpus();
        pthread_mutex_init(&worker->lock, NULL);
        pthread_cond_init(&worker->rings, NULL);
        if (team_start(worker)) {
            team_pool.workers[count] = worker;
            __atomic_store_n(&team_pool.count, count + 1, __ATOMIC_RELEASE);
        } else {
            free(worker);
            worker = NULL;
        }
    }
    pthread_mutex_unlock(&team_pool.lock);
    return worker;
}

/* A free worker from number `*next` on, or a new one; it is held. */
static team_worker *team_hold(int *next) {
    int count = __atomic_load_n(&team_pool.count, __ATOMIC_ACQUIRE);
    while (*next < count) {
        team_worker *worker = team_pool.workers[(*next)++];
        if (team_change(worker, TEAM_FREE, TEAM_HELD)) return worker;
    }
    return team_new();
}

static void team_post(team_worker *worker, team_part part, void *context, int member) {
    worker->part = part;
    worker->context = context;
    worker->member = member;
    __atomic_store_n(&worker->state, TEAM_POSTED, __ATOMIC_SEQ_CST);
    if (!__atomic_load_n(&worker->asleep, __ATOMIC_SEQ_CST)) return;
    pthread_mutex_lock(&worker->lock);
    if (!worker->rung) team_place(worker);
    worker->rung = 1;
    pthread_cond_signal(&worker->rings);
    pthread_mutex_unlock(&worker->lock);
}

/* A part that was posted is done when this returns: by the worker, or else by the caller. */
static void team_finish(team_worker *worker, team_part part, void *context, int member) {
    if (team_change(worker, TEAM_POSTED, TEAM_FREE)) {
        part(context, member);
        return;
    }
    for (int k = 0; team_state(worker) != TEAM_DONE; k++) {
        if (k < TEAM_PATIENCE) team_pause();
        else sched_yield();
    }
    team_set(worker, TEAM_FREE);
}

/* Do the parts of all members, from 0 on, at once as far as there are threads. */
static void team_run(int members, team_part part, void *context) {
    team_worker *workers[TEAM_MOST];
    int next = 0, posted = 0;
    while (posted < members - 1 && posted < TEAM_MOST) {
        team_worker *worker = team_hold(&next);
        if (worker == NULL) break;
        team_post(worker, part, context, posted + 1);
        workers[posted++] = worker;
    }
    part(context, 0);
    for (int member = posted + 1; member < members; member++) part(context, member);
    for (int k = posted - 1; k >= 0; k--) team_finish(workers[k], part, context, k + 1);
}

/* In a forked child there are no workers; it may make its own. */
static void team_forget(void) {
    pthread_mutex_init(&team_pool.lock, NULL);
    team_pool.count = 0;
}
static void team_watch_forks(void) { pthread_atfork(NULL, NULL, team_forget); }

#endif
