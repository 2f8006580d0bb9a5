/* Handles, streams and events. A stream is a queue and a thread that does its work in order; an event is a mark in
 * it. Nothing here takes the interpreter's lock: work that needs it takes it on the stream's thread.
 *
 * A handle is a number: where its object stands in a table, and how many objects stood there before. One that is
 * no longer live is found out whatever has taken its place.
 */
#ifndef ACLNN_RUNTIME_STREAMS_H
#define ACLNN_RUNTIME_STREAMS_H

#include <errno.h>
#include <sched.h>
#include <signal.h>

#include "memory.h"

static inline void rt_pause(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Whether there is another CPU for whoever is waited for. */
static int rt_may_spin(void) {
#ifdef CPU_COUNT
    cpu_set_t usable;
    return !sched_getaffinity(0, sizeof usable, &usable) && CPU_COUNT(&usable) > 1;
#else
    return sysconf(_SC_NPROCESSORS_ONLN) > 1;
#endif
}

/* --- Handles ----------------------------------------------------------------------------------- */

enum { RT_ANY, RT_STREAM, RT_EVENT, RT_CONTEXT, RT_MODEL, RT_GROUP, RT_PHYSICAL };
enum { RT_CHUNK = 1024, RT_CHUNKS = 4096 };

typedef struct {
    int kind;
    int refs;
    int in_python; /* the Python layer has an object for it, and has to hear of its end */
    uint64_t handle;
} rt_object;

typedef struct {
    uint32_t generation, next_free;
    rt_object *object;
} rt_slot;

static struct {
    pthread_mutex_t lock;
    rt_slot *chunks[RT_CHUNKS];
    uint32_t count, first_free; /* 0: none, as the first slot stays empty */
} rt_handles = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void rt_put(rt_object *object);

static inline rt_slot *rt_slot_at(uint32_t index) { return &rt_handles.chunks[index / RT_CHUNK][index % RT_CHUNK]; }

/* Give an object a handle, which holds it; 0 where there is no room. */
static uint64_t rt_open(rt_object *object, int kind) {
    uint64_t handle = 0;
    pthread_mutex_lock(&rt_handles.lock);
    uint32_t index = rt_handles.first_free;
    if (index) rt_handles.first_free = rt_slot_at(index)->next_free;
    else {
        if (rt_handles.count == 0) rt_handles.count = 1;
        if (rt_handles.count < RT_CHUNK * RT_CHUNKS) {
            rt_slot **chunk = &rt_handles.chunks[rt_handles.count / RT_CHUNK];
            if (*chunk == NULL) *chunk = calloc(RT_CHUNK, sizeof **chunk);
            if (*chunk != NULL) index = rt_handles.count++;
        }
    }
    if (index) {
        rt_slot *slot = rt_slot_at(index);
        slot->generation = (slot->generation + 1) & 0x0fffffff;
        slot->object = object;
        /* No address of a program has such high bits, and no small number is a handle. */
        handle = (uint64_t)1 << 62 | (uint64_t)slot->generation << 28 | (uint64_t)index << 4 | (uint64_t)kind;
        object->kind = kind;
        object->refs = 1;
        object->handle = handle;
    }
    pthread_mutex_unlock(&rt_handles.lock);
    return handle;
}

/* Slot of a live handle, NULL for anything else; the lock is held. */
static rt_slot *rt_live_slot(uint64_t handle, int kind) {
    uint32_t index = (uint32_t)(handle >> 4) & 0xffffff;
    if (handle >> 56 != 1 << 6 || (int)(handle & 15) != kind) return NULL;
    if (index == 0 || index >= rt_handles.count) return NULL;
    rt_slot *slot = rt_slot_at(index);
    return slot->object != NULL && slot->object->handle == handle ? slot : NULL;
}

/* The object of a live handle, held for the caller; NULL for anything else. */
static rt_object *rt_get(uint64_t handle, int kind) {
    pthread_mutex_lock(&rt_handles.lock);
    rt_slot *slot = rt_live_slot(handle, kind);
    rt_object *object = slot == NULL ? NULL : slot->object;
    if (object != NULL) __atomic_add_fetch(&object->refs, 1, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&rt_handles.lock);
    return object;
}

/* End a handle: what it held is the caller's; NULL where it was not live. */
static rt_object *rt_close(uint64_t handle, int kind) {
    pthread_mutex_lock(&rt_handles.lock);
    rt_slot *slot = rt_live_slot(handle, kind);
    rt_object *object = slot == NULL ? NULL : slot->object;
    if (slot != NULL) {
        slot->object = NULL;
        slot->next_free = rt_handles.first_free;
        rt_handles.first_free = (uint32_t)(handle >> 4) & 0xffffff;
    }
    pthread_mutex_unlock(&rt_handles.lock);
    return object;
}

static void rt_hold(rt_object *object) { __atomic_add_fetch(&object->refs, 1, __ATOMIC_RELAXED); }

/* Hold what a list still names; 0 where it is about to be freed. */
static int rt_hold_living(rt_object *object) {
    int refs = __atomic_load_n(&object->refs, __ATOMIC_RELAXED);
    while (refs > 0)
        if (__atomic_compare_exchange_n(&object->refs, &refs, refs + 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) return 1;
    return 0;
}

/* --- Flags that threads wait for ------------------------------------------------------------------ */

typedef struct {
    int refs;
    int raised;
    int64_t when; /* it was raised */
    pthread_mutex_t lock;
    pthread_cond_t changed;
} rt_flag;

static void rt_make_condition(pthread_cond_t *condition) {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
}

static rt_flag *rt_new_flag(void) {
    rt_flag *flag = calloc(1, sizeof *flag);
    if (flag == NULL) return NULL;
    flag->refs = 1;
    pthread_mutex_init(&flag->lock, NULL);
    rt_make_condition(&flag->changed);
    return flag;
}
static void rt_flag_hold(rt_flag *flag) { __atomic_add_fetch(&flag->refs, 1, __ATOMIC_RELAXED); }
static void rt_flag_drop(rt_flag *flag) {
    if (flag == NULL || __atomic_sub_fetch(&flag->refs, 1, __ATOMIC_ACQ_REL)) return;
    pthread_cond_destroy(&flag->changed);
    pthread_mutex_destroy(&flag->lock);
    free(flag);
}
static int rt_is_raised(rt_flag *flag) { return __atomic_load_n(&flag->raised, __ATOMIC_ACQUIRE); }
static void rt_raise(rt_flag *flag) {
    pthread_mutex_lock(&flag->lock);
    flag->when = rt_clock();
    __atomic_store_n(&flag->raised, 1, __ATOMIC_RELEASE);
    pthread_cond_broadcast(&flag->changed);
    pthread_mutex_unlock(&flag->lock);
}
static void rt_lower(rt_flag *flag) { __atomic_store_n(&flag->raised, 0, __ATOMIC_RELEASE); }

static void rt_wait_until(pthread_cond_t *condition, pthread_mutex_t *lock, int64_t until) {
    if (until < 0) pthread_cond_wait(condition, lock);
    else {
        struct timespec t = { .tv_sec = until / 1000000000, .tv_nsec = until % 1000000000 };
        pthread_cond_timedwait(condition, lock, &t);
    }
}

/* Wait for a flag, until a time of the clock or, from below 0, for ever; whether it was raised. */
static int rt_wait_flag(rt_flag *flag, int64_t until) {
    if (rt_is_raised(flag)) return 1;
    pthread_mutex_lock(&flag->lock);
    while (!flag->raised && (until < 0 || rt_clock() < until)) rt_wait_until(&flag->changed, &flag->lock, until);
    int raised = flag->raised;
    pthread_mutex_unlock(&flag->lock);
    return raised;
}

/* A time of the clock, so many nanoseconds from now; -1, for ever, for less than 0. */
static int64_t rt_until(int64_t nanoseconds) { return nanoseconds < 0 ? -1 : rt_clock() + nanoseconds; }

/* --- Streams ---------------------------------------------------------------------------------------- */

typedef int (*rt_function)(void *argument);
typedef void (*rt_destructor)(void *argument);

typedef struct rt_job {
    struct rt_job *next;
    rt_function run; /* gives a status, and sets the thread's message where that is not 0 */
    rt_destructor drop;
    void *argument;
} rt_job;

enum { RT_NO_THREAD, RT_WORKS, RT_ENDED };

typedef struct rt_stream {
    rt_object base;
    int number, flags;
    int device;     /* of the thread that made it */
    int redirected; /* captured, or updating: the Python layer takes its work */
    int closed;     /* takes no more work */
    pthread_mutex_t lock;
    pthread_cond_t more, progress;
    int asleep, waiters;
    int in_python; /* what it does may need the interpreter */
    int outside;   /* ... and may wait for any thread of the program: a function of its own, or an external event */
    int may_spin;
    rt_job *head, *tail;
    uint64_t given, done;
    int worker;
    pthread_t thread;
    char *failure; /* the first since the last time that somebody asked */
    struct rt_stream *previous, *next; /* of all that have work or may get some */
} rt_stream;

enum {
    RT_STACK = 1 << 23,
    RT_WORKER_SPINS = 50000, /* nanoseconds that a thread looks for more work before it sleeps: waking it takes 7 us */
    RT_WAITER_SPINS = 10000, /* and that who waits for it looks on */
    RT_PAUSES = 32            /* between two looks at the clock */
};

static struct {
    pthread_mutex_t lock;
    rt_stream *first;
} rt_streams = { .lock = PTHREAD_MUTEX_INITIALIZER };

static __thread rt_stream *rt_works_for; /* whose thread this is */
static void (*rt_thread_leaves)(void);   /* what is called as the thread of a stream ends */

/* Note whether the job of this thread's stream may wait for the program; what was noted before. */
static int rt_go_outside(int outside) {
    if (rt_works_for == NULL) return 0;
    return __atomic_exchange_n(&rt_works_for->outside, outside, __ATOMIC_RELAXED);
}

static void rt_link(rt_stream *stream) {
    pthread_mutex_lock(&rt_streams.lock);
    stream->next = rt_streams.first;
    if (stream->next != NULL) stream->next->previous = stream;
    rt_streams.first = stream;
    pthread_mutex_unlock(&rt_streams.lock);
}
static void rt_unlink(rt_stream *stream) {
    pthread_mutex_lock(&rt_streams.lock);
    if (stream->previous != NULL) stream->previous->next = stream->next;
    else if (rt_streams.first == stream) rt_streams.first = stream->next;
    if (stream->next != NULL) stream->next->previous = stream->previous;
    stream->next = stream->previous = NULL;
    pthread_mutex_unlock(&rt_streams.lock);
}

static rt_stream *rt_new_stream(uint32_t flags) {
    rt_stream *stream = calloc(1, sizeof *stream);
    if (stream == NULL) return NULL;
    stream->number = rt_next_number();
    stream->flags = (int)flags;
    stream->device = rt_device;
    pthread_mutex_init(&stream->lock, NULL);
    rt_make_condition(&stream->more);
    rt_make_condition(&stream->progress);
    if (!rt_open(&stream->base, RT_STREAM)) {
        free(stream);
        return NULL;
    }
    rt_link(stream);
    return stream;
}

static void rt_drop_job(rt_job *job) {
    if (job->drop != NULL) job->drop(job->argument);
    free(job);
}

static void rt_free_stream(rt_stream *stream) {
    rt_unlink(stream);
    while (stream->head != NULL) {
        rt_job *job = stream->head;
        stream->head = job->next;
        rt_drop_job(job);
    }
    pthread_cond_destroy(&stream->more);
    pthread_cond_destroy(&stream->progress);
    pthread_mutex_destroy(&stream->lock);
    free(stream->failure);
    free(stream);
}

static void rt_keep_failure(rt_stream *stream, int status) {
    char *text = NULL;
    const char *message = rt_take_message();
    if (stream->failure != NULL) return;
    if (message != NULL) text = strdup(message);
    else if ((text = malloc(64)) != NULL) snprintf(text, 64, "work of the stream failed with status %d", status);
    stream->failure = text;
}

/* Look for work without the lock, for a while. */
static void rt_look_for_work(rt_stream *stream) {
    int64_t until = rt_clock() + RT_WORKER_SPINS;
    do {
        for (int k = 0; k < RT_PAUSES; k++) {
            if (__atomic_load_n(&stream->head, __ATOMIC_RELAXED) != NULL) return;
            rt_pause();
        }
        sched_yield(); /* who gives it work may wait for this CPU */
    } while (rt_clock() < until && !__atomic_load_n(&stream->closed, __ATOMIC_RELAXED));
}

/* The next job; NULL at the end. The lock is held, and let go of for a while. */
static rt_job *rt_next_job(rt_stream *stream) {
    for (int looked = !stream->may_spin;; looked = 1) {
        if (__atomic_load_n(&rt_state, __ATOMIC_RELAXED) & RT_EXITING) return NULL;
        rt_job *job = stream->head;
        if (job != NULL) {
            __atomic_store_n(&stream->head, job->next, __ATOMIC_RELAXED);
            if (job->next == NULL) stream->tail = NULL;
            return job;
        }
        if (stream->closed) return NULL;
        if (!looked) {
            pthread_mutex_unlock(&stream->lock);
            rt_look_for_work(stream);
            pthread_mutex_lock(&stream->lock);
            continue;
        }
        stream->asleep = 1;
        pthread_cond_wait(&stream->more, &stream->lock);
        stream->asleep = 0;
    }
}

static void *rt_work(void *given) {
    rt_stream *stream = given;
    rt_works_for = stream;
    rt_device = stream->device;
    stream->may_spin = rt_may_spin();
    pthread_mutex_lock(&stream->lock);
    for (rt_job *job; (job = rt_next_job(stream)) != NULL;) {
        pthread_mutex_unlock(&stream->lock);
        int status = job->run(job->argument);
        rt_drop_job(job);
        pthread_mutex_lock(&stream->lock);
        if (RT_UNLIKELY(status)) rt_keep_failure(stream, status);
        __atomic_store_n(&stream->done, stream->done + 1, __ATOMIC_RELEASE);
        if (stream->waiters) pthread_cond_broadcast(&stream->progress);
    }
    __atomic_store_n(&stream->worker, RT_ENDED, __ATOMIC_RELEASE);
    pthread_cond_broadcast(&stream->progress);
    pthread_mutex_unlock(&stream->lock);
    rt_works_for = NULL;
    if (stream->closed) rt_unlink(stream);
    rt_put(&stream->base);
    if (rt_thread_leaves != NULL) rt_thread_leaves();
    return NULL;
}

/* Start the thread of a stream, whose lock is held; 0 or an error number. It gets no signals. */
static int rt_start(rt_stream *stream) {
    pthread_attr_t attributes;
    sigset_t all, before;
    int failed = pthread_attr_init(&attributes);
    if (failed) return failed;
    pthread_attr_setstacksize(&attributes, RT_STACK);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    rt_hold(&stream->base);
    stream->worker = RT_WORKS;
    failed = pthread_create(&stream->thread, &attributes, rt_work, stream);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    if (failed) {
        stream->worker = RT_NO_THREAD;
        __atomic_sub_fetch(&stream->base.refs, 1, __ATOMIC_RELAXED); /* the caller holds it too */
    }
    return failed;
}

/* Queue work on a stream; what is not queued is dropped. A status, with a message. */
static int rt_queue(rt_stream *stream, const char *function, rt_function run, void *argument, rt_destructor drop) {
    rt_job *job = malloc(sizeof *job);
    if (job == NULL) {
        if (drop != NULL) drop(argument);
        return rt_fail(RT_MEMORY_ALLOCATION, "%s: no memory to queue work on the stream", function);
    }
    *job = (rt_job){ .run = run, .argument = argument, .drop = drop };
    int failed = 0;
    pthread_mutex_lock(&stream->lock);
    int closed = stream->closed;
    if (!closed && RT_UNLIKELY(stream->worker == RT_NO_THREAD)) failed = rt_start(stream);
    if (RT_LIKELY(!closed && !failed)) {
        if (stream->tail != NULL) stream->tail->next = job;
        else __atomic_store_n(&stream->head, job, __ATOMIC_RELAXED);
        stream->tail = job;
        stream->given++;
        if (stream->asleep) pthread_cond_signal(&stream->more);
    }
    pthread_mutex_unlock(&stream->lock);
    if (RT_LIKELY(!closed && !failed)) return RT_SUCCESS;
    rt_drop_job(job);
    if (closed) return rt_fail(RT_INVALID_HANDLE, "%s: stream is destroyed", function);
    return rt_fail(
        RT_RUNTIME_ERROR, "%s: the stream has no thread: can't start new thread: %s", function, strerror(failed));
}

/* Run work now, as the default stream does. */
static int rt_run_now(rt_function run, void *argument, rt_destructor drop) {
    int status = run(argument);
    if (drop != NULL) drop(argument);
    return status;
}

/* See whether the work is done soon, without the lock. */
static void rt_look_for_end(rt_stream *stream, uint64_t goal) {
    int64_t until = rt_clock() + RT_WAITER_SPINS;
    do {
        for (int k = 0; k < RT_PAUSES; k++) {
            if (__atomic_load_n(&stream->done, __ATOMIC_ACQUIRE) >= goal) return;
            rt_pause();
        }
        sched_yield(); /* the thread may wait for this CPU */
    } while (rt_clock() < until);
}

/* Wait for all that a stream was given so far, until a time; whether it is done. Its own thread waits for nothing. */
static int rt_wait_done(rt_stream *stream, int64_t until) {
    if (rt_works_for == stream) return 1;
    pthread_mutex_lock(&stream->lock);
    uint64_t goal = stream->given;
    if (stream->done < goal && stream->may_spin) {
        pthread_mutex_unlock(&stream->lock);
        rt_look_for_end(stream, goal);
        pthread_mutex_lock(&stream->lock);
    }
    stream->waiters++;
    while (stream->done < goal && stream->worker == RT_WORKS && (until < 0 || rt_clock() < until))
        rt_wait_until(&stream->progress, &stream->lock, until);
    stream->waiters--;
    int done = stream->done >= goal || stream->worker != RT_WORKS;
    pthread_mutex_unlock(&stream->lock);
    return done;
}

static int rt_is_idle(rt_stream *stream) {
    pthread_mutex_lock(&stream->lock);
    int idle = stream->done == stream->given || stream->worker != RT_WORKS;
    pthread_mutex_unlock(&stream->lock);
    return idle;
}

/* Wait for the thread of a closed stream to end. */
static int rt_wait_end(rt_stream *stream, int64_t until) {
    if (rt_works_for == stream) return 1;
    pthread_mutex_lock(&stream->lock);
    stream->waiters++;
    while (stream->worker == RT_WORKS && (until < 0 || rt_clock() < until))
        rt_wait_until(&stream->progress, &stream->lock, until);
    stream->waiters--;
    int ended = stream->worker != RT_WORKS;
    pthread_mutex_unlock(&stream->lock);
    return ended;
}

/* The message of the first failure since the last time, which is the caller's to free, or NULL. */
static char *rt_take_failure(rt_stream *stream) {
    pthread_mutex_lock(&stream->lock);
    char *failure = stream->failure;
    stream->failure = NULL;
    pthread_mutex_unlock(&stream->lock);
    return failure;
}

static int rt_outcome(char *failure) {
    if (failure == NULL) return RT_SUCCESS;
    rt_note_failure(RT_RUNTIME_ERROR, failure, strlen(failure));
    free(failure);
    return RT_RUNTIME_ERROR;
}

/* End the handle, take no more work and let the thread end after the last; 0 where that was done before. With
 * `at_once`, work that has not begun is dropped. */
static int rt_close_stream(rt_stream *stream, int at_once) {
    rt_object *held = rt_close(stream->base.handle, RT_STREAM);
    if (held == NULL) return 0;
    rt_job *dropped = NULL;
    pthread_mutex_lock(&stream->lock);
    __atomic_store_n(&stream->closed, 1, __ATOMIC_RELEASE);
    if (at_once) {
        dropped = stream->head;
        stream->head = stream->tail = NULL;
        for (rt_job *job = dropped; job != NULL; job = job->next) stream->done++;
    }
    int has_thread = stream->worker == RT_WORKS;
    if (stream->asleep) pthread_cond_signal(&stream->more);
    pthread_mutex_unlock(&stream->lock);
    while (dropped != NULL) {
        rt_job *job = dropped;
        dropped = job->next;
        rt_drop_job(job);
    }
    if (!has_thread) rt_unlink(stream);
    rt_put(held);
    return 1;
}

enum { RT_EVERY_DEVICE = -1 };

/* All streams of a device that may have work, each held; NULL where there is none. Their count in `*count`. */
static rt_stream **rt_all_streams(int device, int *count) {
    int n = 0;
    pthread_mutex_lock(&rt_streams.lock);
    for (rt_stream *one = rt_streams.first; one != NULL; one = one->next) n++;
    rt_stream **found = n ? malloc((size_t)n * sizeof *found) : NULL;
    n = 0;
    for (rt_stream *one = rt_streams.first; one != NULL && found != NULL; one = one->next)
        if ((device == RT_EVERY_DEVICE || one->device == device) && rt_hold_living(&one->base)) found[n++] = one;
    pthread_mutex_unlock(&rt_streams.lock);
    *count = n;
    return found;
}

/* --- Memory that queued work uses ----------------------------------------------------------------- */

enum {
    RT_LOOK = 5000000,          /* nanoseconds after which a wait for queued work looks around */
    RT_PATIENCE = 1000000000    /* after which it ends if that work may wait for the thread that waits */
};

static int rt_somebody_is_outside(void) {
    int found = 0;
    pthread_mutex_lock(&rt_streams.lock);
    for (rt_stream *one = rt_streams.first; one != NULL && !found; one = one->next)
        found = __atomic_load_n(&one->outside, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&rt_streams.lock);
    return found;
}

/* Whether to wait on for queued work, after so many nanoseconds. The runtime's own work ends by itself; what
 * functions of the program or external events hold up may need this thread, and a stream's own thread never waits. */
static int rt_may_wait(int64_t waited) {
    if (rt_works_for != NULL || __atomic_load_n(&rt_state, __ATOMIC_RELAXED) & RT_EXITING) return 0;
    return waited < RT_PATIENCE || !rt_somebody_is_outside();
}

/* Wait until no queued work uses a block, or a time of the clock; whether none does. */
static int rt_wait_unused(rt_block *block, int64_t until) {
    if (!rt_block_is_used(block)) return 1;
    __atomic_add_fetch(&block->waiters, 1, __ATOMIC_SEQ_CST);
    pthread_mutex_lock(&rt_memory.lock);
    while (rt_block_is_used(block) && rt_clock() < until)
        rt_wait_until(&rt_memory.unused, &rt_memory.lock, until);
    pthread_mutex_unlock(&rt_memory.lock);
    __atomic_sub_fetch(&block->waiters, 1, __ATOMIC_SEQ_CST);
    return !rt_block_is_used(block);
}

static int rt_unused_by_then(void *block, int64_t until) { return rt_wait_unused(block, until); }

/* Wait for the queued work that uses a block; whether it is done. */
static int rt_wait_for_users(rt_block *block) {
    int64_t since = rt_clock();
    while (rt_block_is_used(block) && rt_may_wait(rt_clock() - since))
        if (rt_wait_for(rt_unused_by_then, block, rt_until(RT_LOOK)) < 0) break;
    return !rt_block_is_used(block);
}

/* --- Events ----------------------------------------------------------------------------------------- */

typedef struct {
    rt_object base;
    int number;
    uint32_t flags;
    int closed;
    int awaited, passed; /* waits that streams were given, and those that ended */
    rt_flag *signal;     /* of an external event: whether it is recorded, as models and other streams see it */
    pthread_mutex_t lock;
    rt_flag *latest; /* recording, if any */
} rt_event;

enum { RT_EXTERNAL = 0x20, RT_IPC = 0x40, RT_EVENT_FLAGS = 0x7b };

static rt_event *rt_new_event(uint32_t flags) {
    rt_event *event = calloc(1, sizeof *event);
    if (event == NULL) return NULL;
    event->number = rt_next_number();
    event->flags = flags;
    pthread_mutex_init(&event->lock, NULL);
    if (flags == RT_EXTERNAL) event->signal = rt_new_flag();
    if ((flags == RT_EXTERNAL && event->signal == NULL) || !rt_open(&event->base, RT_EVENT)) {
        rt_flag_drop(event->signal);
        free(event);
        return NULL;
    }
    return event;
}

static void rt_free_event(rt_event *event) {
    rt_flag_drop(event->signal);
    rt_flag_drop(event->latest);
    pthread_mutex_destroy(&event->lock);
    free(event);
}

static int rt_close_event(rt_event *event) {
    rt_object *held = rt_close(event->base.handle, RT_EVENT);
    if (held == NULL) return 0;
    __atomic_store_n(&event->closed, 1, __ATOMIC_RELEASE);
    rt_put(held);
    return 1;
}

/* The latest recording, held; NULL for none. */
static rt_flag *rt_latest(rt_event *event) {
    pthread_mutex_lock(&event->lock);
    rt_flag *latest = event->latest;
    if (latest != NULL) rt_flag_hold(latest);
    pthread_mutex_unlock(&event->lock);
    return latest;
}
/* Make a recording, which is held for the event, the latest. */
static void rt_set_latest(rt_event *event, rt_flag *record) {
    pthread_mutex_lock(&event->lock);
    rt_flag *before = event->latest;
    event->latest = record;
    pthread_mutex_unlock(&event->lock);
    rt_flag_drop(before);
}

static int rt_run_mark(void *flag) {
    rt_raise(flag);
    return RT_SUCCESS;
}
static void rt_drop_flag(void *flag) { rt_flag_drop(flag); }

static int rt_give(rt_stream *stream, const char *function, rt_function run, void *argument, rt_destructor drop) {
    return stream == NULL ? rt_run_now(run, argument, drop) : rt_queue(stream, function, run, argument, drop);
}

/* Record an event behind the work that a stream, NULL for the default one, was given so far. */
static int rt_record(const char *function, rt_event *event, rt_stream *stream) {
    if (event->signal != NULL) {
        rt_flag_hold(event->signal);
        return rt_give(stream, function, rt_run_mark, event->signal, rt_drop_flag);
    }
    rt_flag *record = rt_new_flag();
    if (record == NULL) return rt_fail(RT_MEMORY_ALLOCATION, "%s: no memory to record the event", function);
    rt_flag_hold(record);
    int status = rt_give(stream, function, rt_run_mark, record, rt_drop_flag);
    if (status) rt_flag_drop(record); /* a recording that no stream reaches must not be waited for */
    else rt_set_latest(event, record);
    return status;
}

typedef struct {
    rt_event *event;
    rt_flag *flag;
    int64_t nanoseconds; /* below 0: for ever */
} rt_wait;

static int rt_run_wait(void *given) {
    rt_wait *wait = given;
    int is_outside = rt_go_outside(wait->event->signal != NULL);
    int raised = rt_wait_flag(wait->flag, rt_until(wait->nanoseconds));
    rt_go_outside(is_outside);
    __atomic_add_fetch(&wait->event->passed, 1, __ATOMIC_RELEASE);
    if (raised) return RT_SUCCESS;
    return rt_fail(
        RT_EVENT_SYNC_TIMEOUT, "event %d was not recorded within %g s", wait->event->number,
        (double)wait->nanoseconds / 1e9);
}
static void rt_drop_wait(void *given) {
    rt_wait *wait = given;
    rt_flag_drop(wait->flag);
    rt_put(&wait->event->base);
    free(wait);
}

/* Let what a stream is given from now on wait for an event, for so many nanoseconds at most. */
static int rt_await(const char *function, rt_stream *stream, rt_event *event, int64_t nanoseconds) {
    rt_flag *flag = event->signal;
    if (flag != NULL) rt_flag_hold(flag);
    else if ((flag = rt_latest(event)) == NULL) return RT_SUCCESS;
    rt_wait *wait = malloc(sizeof *wait);
    if (wait == NULL) {
        rt_flag_drop(flag);
        return rt_fail(RT_MEMORY_ALLOCATION, "%s: no memory to wait for the event", function);
    }
    rt_hold(&event->base);
    *wait = (rt_wait){ .event = event, .flag = flag, .nanoseconds = nanoseconds };
    __atomic_add_fetch(&event->awaited, 1, __ATOMIC_RELAXED);
    int status = rt_give(stream, function, rt_run_wait, wait, rt_drop_wait);
    if (status && stream != NULL) __atomic_sub_fetch(&event->awaited, 1, __ATOMIC_RELAXED);
    return status;
}

static int rt_run_reset(void *flag) {
    rt_lower(flag);
    return RT_SUCCESS;
}
static int rt_reset(const char *function, rt_event *event, rt_stream *stream) {
    if (event->signal == NULL)
        return rt_fail(
            RT_PARAM_INVALID, "%s: event %d was not made with ACL_EVENT_EXTERNAL; others are recorded again instead",
            function, event->number);
    rt_flag_hold(event->signal);
    return rt_give(stream, function, rt_run_reset, event->signal, rt_drop_flag);
}

/* Whether an event has happened, by a time at the latest. */
static int rt_has_happened(rt_event *event, int64_t until) {
    rt_flag *flag = event->signal;
    if (flag != NULL) return rt_wait_flag(flag, until);
    if ((flag = rt_latest(event)) == NULL) return 1;
    int raised = rt_wait_flag(flag, until);
    rt_flag_drop(flag);
    return raised;
}

/* When the latest recording happened; 0, with a message, if it has not. */
static int64_t rt_time_of(const char *function, const char *name, rt_event *event) {
    rt_flag *latest = rt_latest(event);
    int64_t when = latest != NULL && rt_is_raised(latest) ? latest->when : 0;
    rt_flag_drop(latest);
    if (!when)
        rt_fail(
            RT_EVENT_TIMESTAMP_INVALID, "%s: %s was not recorded or has not happened yet", function, name);
    return when;
}

/* --- Lives ----------------------------------------------------------------------------------------------- */

typedef struct {
    rt_object base;
    uint64_t offset, nbytes; /* in the file */
} rt_physical;

static void rt_put(rt_object *object) {
    if (__atomic_sub_fetch(&object->refs, 1, __ATOMIC_ACQ_REL)) return;
    if (object->kind == RT_STREAM) rt_free_stream((rt_stream *)object);
    else if (object->kind == RT_EVENT) rt_free_event((rt_event *)object);
    else {
        if (object->kind == RT_PHYSICAL)
            rt_give_pages_back(((rt_physical *)object)->offset, ((rt_physical *)object)->nbytes);
        free(object);
    }
}

#endif
