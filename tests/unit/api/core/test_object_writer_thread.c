/*
 * Writing an object on another thread: whichever thread writes, the object is complete after a
 * success, and the waiting thread gets a disk error.
 */
#include "tests/unit/test.h"

#include "api/core/object_writer_thread.h"
#include "lib/base/mem.h"
#include "lib/base/os.h"
#include "lib/io/object.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char text[] = "main;work;hot 90\n";

struct fixture {
    char path[64];
    struct object_store *store;
    struct err err;
};

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *walk)
{
    (void)status, (void)kind, (void)walk;
    return remove(path);
}

static int set_up(void **state)
{
    struct fixture *fixture = mem_new(struct fixture, 1);
    snprintf(fixture->path, sizeof(fixture->path), "/tmp/perfolio-task-XXXXXX");
    if (!mkdtemp(fixture->path))
        return -1;
    *state = fixture;
    return object_folder_open(fixture->path, &fixture->store, &fixture->err) != ERR_NONE;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    os_fault_reset();
    object_store_close(fixture->store);
    nftw(fixture->path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    mem_free(fixture);
    return 0;
}

static enum err_code put(struct fixture *fixture, struct worker_pool *pool, const char *key)
{
    struct object_writer_thread task;
    uint8_t sha256[DIGEST_BYTES];
    object_writer_thread_start(&task, pool, fixture->store, key, span_text(text));
    enum err_code code = object_writer_thread_finish(&task, &fixture->err);
    digest_sha256(span_text(text), sha256);
    assert_memory_equal(task.sha256, sha256, DIGEST_BYTES);
    return code;
}

static enum err_code read_back(struct fixture *fixture, const char *key)
{
    buf_auto buf;
    buf_init(&buf, 1000);
    enum err_code code = object_read(fixture->store, key, &buf, &fixture->err);
    if (!code)
        assert_true(span_equal_text(buf_span(&buf), text));
    return code;
}

static void a_finished_task_has_stored_its_object(void **state)
{
    struct fixture *fixture = *state;
    struct worker_pool *pool = worker_pool_create(1, 10, 1000);
    assert_int_equal(put(fixture, pool, "share/one"), ERR_NONE);
    assert_int_equal(read_back(fixture, "share/one"), ERR_NONE);
    worker_pool_destroy(pool);
}

static void a_full_pool_leaves_the_work_to_the_caller(void **state)
{
    struct fixture *fixture = *state;
    struct worker_pool *pool = worker_pool_create(1, 0, 1000); /* accepts no job */
    assert_int_equal(put(fixture, pool, "share/one"), ERR_NONE);
    assert_int_equal(read_back(fixture, "share/one"), ERR_NONE);
    worker_pool_destroy(pool);
}

static void a_disk_error_reaches_the_waiting_thread(void **state)
{
    static const enum os_call calls[] = {OS_CALL_WRITE, OS_CALL_SYNC, OS_CALL_RENAME};
    struct fixture *fixture = *state;
    struct worker_pool *pool = worker_pool_create(1, 10, 1000);
    for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
        os_fault_plan(calls[i], 1, EIO, true);
        assert_int_equal(put(fixture, pool, "share/one"), ERR_IO);
        assert_true(strstr(fixture->err.message, "share/one") != NULL);
        os_fault_reset();
        assert_int_equal(read_back(fixture, "share/one"), ERR_NOT_FOUND);
    }
    worker_pool_destroy(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_finished_task_has_stored_its_object, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_full_pool_leaves_the_work_to_the_caller, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_disk_error_reaches_the_waiting_thread, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
