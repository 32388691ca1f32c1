/*
 * object_task: writes one object, and computes its SHA-256, on another thread.
 *
 * Reading a profile takes the processor and making its bytes durable takes the disk: started
 * together, an upload waits for the longer of the two only. When all threads of the pool are busy,
 * the caller's own does the work. Threads: a task belongs to one, which finishes what it started.
 */
#ifndef API_CORE_OBJECT_WRITER_THREAD_H
#define API_CORE_OBJECT_WRITER_THREAD_H

#include "api/core/worker.h"
#include "lib/base/buf.h"
#include "lib/base/digest.h"
#include "lib/base/err.h"

#include <semaphore.h>

struct object_store;

/* Lives where the caller puts it, unmoved until object_writer_thread_finish. */
struct object_writer_thread {
    struct worker_job job; /* first: the pool hands it back */
    sem_t is_done;
    struct object_store *objects;
    const char *key;
    struct span bytes;
    uint8_t sha256[DIGEST_BYTES];
    enum err_code code;
    struct err err;
};

/* key and bytes are borrowed until object_writer_thread_finish, which must follow. */
void object_writer_thread_start(struct object_writer_thread *task, struct worker_pool *pool,
                                struct object_store *objects, const char *key, struct span bytes);

/* Waits. On success the object is durable; task->sha256 is right in any case. Handles what
 * object_put does. */
enum err_code object_writer_thread_finish(struct object_writer_thread *task,
                                          struct err *err) MUST_USE;

#endif
