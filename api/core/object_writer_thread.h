/*
 * object_writer_thread: writes one object, and computes its SHA-256, on another thread.
 *
 * Decoding a profile needs the processor and making its bytes durable needs the disk. Run in
 * parallel, an upload takes only the longer of the two. If all threads of the pool are busy, the
 * calling thread does the work. Threads: a task belongs to one thread, which finishes what it
 * started.
 */
#ifndef API_CORE_OBJECT_WRITER_THREAD_H
#define API_CORE_OBJECT_WRITER_THREAD_H

#include "api/core/worker.h"
#include "lib/base/buf.h"
#include "lib/base/digest.h"
#include "lib/base/err.h"

#include <semaphore.h>

struct object_store;

/* Lives where the caller puts it; it must not move until object_writer_thread_finish. */
struct object_writer_thread {
    struct worker_job job; /* first: the pool passes it back */
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

/* Waits until the object is written. On success it is durable; task->sha256 is set in any case.
 * Errors: those of object_put. */
enum err_code object_writer_thread_finish(struct object_writer_thread *task,
                                          struct err *err) MUST_USE;

#endif
