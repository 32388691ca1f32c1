#include "api/core/object_writer_thread.h"

#include "lib/base/err.h"
#include "lib/io/object.h"

static void write_object(struct worker_job *job)
{
    struct object_writer_thread *task = (struct object_writer_thread *)job;
    task->code = object_put(task->objects, task->key, task->bytes, &task->err);
    digest_sha256(task->bytes, task->sha256);
    sem_post(&task->is_done);
}

void object_writer_thread_start(struct object_writer_thread *task, struct worker_pool *pool,
                                struct object_store *objects, const char *key, struct span bytes)
{
    /* The request already counts these bytes. */
    *task = (struct object_writer_thread){
        .job = {.run = write_object, .bytes = 0}, .objects = objects, .key = key, .bytes = bytes};
    sem_init(&task->is_done, 0, 0);
    struct err busy;
    if (worker_submit(pool, &task->job, &busy))
        write_object(&task->job);
}

enum err_code object_writer_thread_finish(struct object_writer_thread *task, struct err *err)
{
    while (sem_wait(&task->is_done) != 0) {
    }
    sem_destroy(&task->is_done);
    if (task->code)
        *err = task->err;
    return task->code;
}
