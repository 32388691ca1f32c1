#include "store/catalogue/writer.h"

#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "store/catalogue/catalogue.h"

#include <pthread.h>
#include <stdbool.h>

struct writer {
    struct pg_pool *database;
    char *name;
    pthread_mutex_t mutex; /* guards all below */
    int64_t id;            /* 0: none */
    int64_t opened_ns;     /* monotonic clock */
    bool is_doubted;       /* the id has to end */
    bool is_confirmed;     /* since the last doubt */
};

struct writer *writer_create(struct pg_pool *jobs_database, const char *name)
{
    struct writer *writer = mem_new(struct writer, 1);
    writer->database = jobs_database;
    writer->name = mem_strdup(name);
    pthread_mutex_init(&writer->mutex, NULL);
    return writer;
}

void writer_destroy(struct writer *writer)
{
    if (!writer)
        return;
    struct err err;
    if (writer->id)
        (void)!catalogue_close_writer(writer->database, writer->id, &err);
    pthread_mutex_destroy(&writer->mutex);
    mem_free(writer->name);
    mem_free(writer);
}

enum err_code writer_get(struct writer *writer, int64_t *ret_id, struct err *err)
{
    enum err_code code = ERR_NONE;
    pthread_mutex_lock(&writer->mutex);
    if (!writer->id) {
        code = catalogue_open_writer(writer->database, writer->name, &writer->id, err);
        writer->opened_ns = clock_monotonic_ns();
        writer->is_doubted = writer->is_confirmed = false;
    }
    *ret_id = writer->id;
    pthread_mutex_unlock(&writer->mutex);
    return code;
}

int64_t writer_peek(struct writer *writer)
{
    pthread_mutex_lock(&writer->mutex);
    const int64_t id = writer->id;
    pthread_mutex_unlock(&writer->mutex);
    return id;
}

void writer_lose(struct writer *writer, int64_t id)
{
    pthread_mutex_lock(&writer->mutex);
    if (writer->id == id)
        writer->id = 0;
    pthread_mutex_unlock(&writer->mutex);
}

void writer_end(struct writer *writer, int64_t id)
{
    struct err err;
    writer_lose(writer, id);
    /* If the database is unreachable now, another server ends the id after a minute without a
     * heartbeat. */
    (void)!catalogue_close_writer(writer->database, id, &err);
}

void writer_doubt(struct writer *writer, int64_t id)
{
    pthread_mutex_lock(&writer->mutex);
    if (writer->id == id) {
        writer->is_doubted = true;
        writer->is_confirmed = false;
    }
    pthread_mutex_unlock(&writer->mutex);
}

void writer_confirm(struct writer *writer, int64_t id)
{
    pthread_mutex_lock(&writer->mutex);
    if (writer->id == id)
        writer->is_confirmed = true;
    pthread_mutex_unlock(&writer->mutex);
}

void writer_end_doubted(struct writer *writer, int64_t now_ns)
{
    pthread_mutex_lock(&writer->mutex);
    const int64_t id = writer->id;
    const bool has_to_end = id && writer->is_doubted && writer->is_confirmed &&
                            now_ns - writer->opened_ns >= WRITER_AGE_S * CLOCK_NS_PER_S;
    pthread_mutex_unlock(&writer->mutex);
    if (has_to_end)
        writer_end(writer, id);
}
