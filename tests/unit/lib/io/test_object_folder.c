/*
 * The object store with injected faults: acknowledged objects survive a power cut, and failed ones
 * leave nothing behind.
 */
#include "tests/unit/test.h"

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/base/os.h"
#include "lib/io/object.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OBJECT_BYTES = 10000 };

struct fixture {
    char path[64];
    char folder[80];
    struct object_store *store;
    struct err err;
    uint8_t bytes[OBJECT_BYTES];
};

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *walk)
{
    (void)status, (void)kind, (void)walk;
    return remove(path);
}

static int set_up(void **state)
{
    struct fixture *fixture = mem_new(struct fixture, 1);
    snprintf(fixture->path, sizeof(fixture->path), "/tmp/perfolio-object-XXXXXX");
    if (!mkdtemp(fixture->path))
        return -1;
    snprintf(fixture->folder, sizeof(fixture->folder), "%s/objects", fixture->path);
    for (size_t i = 0; i < OBJECT_BYTES; i++)
        fixture->bytes[i] = (uint8_t)(i * 7 + i / 256);
    *state = fixture;
    return object_folder_open(fixture->folder, &fixture->store, &fixture->err) != ERR_NONE;
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

static struct span content(const struct fixture *fixture)
{
    return span_of(fixture->bytes, OBJECT_BYTES);
}

/* The state after a reboot. */
static void reopen(struct fixture *fixture)
{
    object_store_close(fixture->store);
    fixture->store = NULL;
    if (object_folder_open(fixture->folder, &fixture->store, &fixture->err))
        fail_msg("%s", fixture->err.message);
    if (object_sweep_temporary(fixture->store, &fixture->err))
        fail_msg("%s", fixture->err.message);
}

static void assert_whole(struct fixture *fixture, const char *key)
{
    buf_auto buf;
    buf_init(&buf, 1 << 20);
    if (object_read(fixture->store, key, &buf, &fixture->err))
        fail_msg("%s", fixture->err.message);
    assert_true(span_equal(buf_span(&buf), content(fixture)));
}

static void assert_absent(struct fixture *fixture, const char *key)
{
    int fd;
    uint64_t size;
    assert_int_equal(object_open(fixture->store, key, &fd, &size, &fixture->err), ERR_NOT_FOUND);
}

static enum err_code count_object(void *context, const char *key, uint64_t size,
                                  int64_t modified_ns, struct err *err)
{
    (void)err;
    assert_true(strncmp(key, "share/", 6) == 0);
    assert_int_equal(size, OBJECT_BYTES);
    assert_true(modified_ns > 0);
    ++*(int *)context;
    return ERR_NONE;
}

static int count_objects(struct fixture *fixture, const char *prefix)
{
    int count = 0;
    if (object_list(fixture->store, prefix, count_object, &count, &fixture->err))
        fail_msg("%s", fixture->err.message);
    return count;
}

static int count_unfinished(const struct fixture *fixture)
{
    char command[128];
    int count = -1;
    snprintf(command, sizeof(command), "ls -1 %s/.tmp | wc -l", fixture->folder);
    FILE *file = popen(command, "re");
    if (fscanf(file, "%d", &count) != 1)
        count = -1;
    pclose(file);
    return count;
}

static void an_object_is_read_listed_and_deleted(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(object_put(fixture->store, "share/a/1", content(fixture), &fixture->err), 0);
    assert_int_equal(object_put(fixture->store, "share/b/1", content(fixture), &fixture->err), 0);
    assert_whole(fixture, "share/a/1");
    assert_int_equal(count_objects(fixture, ""), 2);
    assert_int_equal(count_objects(fixture, "share/a"), 1);
    assert_int_equal(count_objects(fixture, "part/"), 0);
    assert_int_equal(object_put(fixture->store, "share/a/1", content(fixture), &fixture->err),
                     ERR_CONFLICT);
    assert_int_equal(object_delete(fixture->store, "share/a/1", &fixture->err), 0);
    assert_int_equal(object_delete(fixture->store, "share/a/1", &fixture->err), 0);
    assert_int_equal(object_delete(fixture->store, "never/was", &fixture->err), 0);
    assert_absent(fixture, "share/a/1");
    assert_int_equal(count_unfinished(fixture), 0);
}

static void refuses_keys_that_could_leave_the_folder(void **state)
{
    struct fixture *fixture = *state;
    static const char *const keys[] = {"",    "/a",     "a/",      "a//b", "..",      "a/../b",
                                       "a b", ".tmp/x", "a/b/c/d", "ä",    "a/.hide", "a\nb"};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        int fd;
        uint64_t size;
        if (object_put(fixture->store, keys[i], content(fixture), &fixture->err) != ERR_INVALID)
            fail_msg("took the key \"%s\"", keys[i]);
        assert_int_equal(object_open(fixture->store, keys[i], &fd, &size, &fixture->err),
                         ERR_INVALID);
    }
    char long_key[300];
    memset(long_key, 'k', sizeof(long_key));
    long_key[201] = '\0';
    assert_int_equal(object_put(fixture->store, long_key, content(fixture), &fixture->err),
                     ERR_INVALID);
}

static void reads_at_most_the_maximum_of_the_buffer(void **state)
{
    struct fixture *fixture = *state;
    buf_auto buf;
    buf_init(&buf, OBJECT_BYTES - 1);
    assert_int_equal(object_put(fixture->store, "share/x", content(fixture), &fixture->err), 0);
    assert_int_equal(object_read(fixture->store, "share/x", &buf, &fixture->err), ERR_TOO_LARGE);
}

static void an_aborted_write_leaves_nothing(void **state)
{
    struct fixture *fixture = *state;
    struct object_writer *writer;
    assert_int_equal(object_writer_open(fixture->store, "share/x", &writer, &fixture->err), 0);
    assert_int_equal(object_writer_append(writer, content(fixture), &fixture->err), 0);
    assert_int_equal(count_unfinished(fixture), 1);
    object_writer_abort(writer);
    object_writer_abort(NULL);
    assert_absent(fixture, "share/x");
    assert_int_equal(count_unfinished(fixture), 0);
}

/* Lets one call fail in each run, every call of each kind once: afterwards the object is complete
 * or does not exist. */
static void every_failing_call_is_reported_and_leaves_nothing_behind(void **state)
{
    struct fixture *fixture = *state;
    static const enum os_call calls[] = {OS_CALL_OPEN, OS_CALL_MKDIR,  OS_CALL_WRITE,
                                         OS_CALL_SYNC, OS_CALL_RENAME, OS_CALL_CLOSE};
    for (size_t kind = 0; kind < sizeof(calls) / sizeof(calls[0]); kind++) {
        int failures = 0;
        for (unsigned nth = 1;; nth++) {
            char key[64];
            snprintf(key, sizeof(key), "share/%zu-%u", kind, nth);
            os_fault_plan(calls[kind], nth, EIO, false);
            enum err_code code = object_put(fixture->store, key, content(fixture), &fixture->err);
            unsigned count = os_fault_count(calls[kind]);
            os_fault_reset();
            if (code) {
                assert_int_equal(code, ERR_IO);
                assert_absent(fixture, key);
                failures++;
            } else {
                assert_whole(fixture, key);
            }
            assert_int_equal(count_unfinished(fixture), 0);
            if (count < nth)
                break;
        }
        /* A failing close of a folder's descriptor does no harm; the others do. */
        if (calls[kind] != OS_CALL_MKDIR)
            assert_true(failures > 0);
    }
}

static void a_short_write_loses_no_byte(void **state)
{
    struct fixture *fixture = *state;
    os_fault_plan(OS_CALL_WRITE, 1, 0, false);
    assert_int_equal(object_put(fixture->store, "share/x", content(fixture), &fixture->err), 0);
    assert_whole(fixture, "share/x");
}

/* Whole pages bypass the page cache: in chunks, or directly if the data is page-aligned. */
static void large_objects_of_any_size_are_complete(void **state)
{
    enum { PAGE = 4096 };
    static const size_t sizes[] = {128 << 10, (128 << 10) + 1, (2 << 20) - 1, (4 << 20) + 12305};
    struct fixture *fixture = *state;
    const size_t most = sizes[sizeof(sizes) / sizeof(sizes[0]) - 1];
    uint8_t *memory = mem_new(uint8_t, most + 2 * PAGE);
    uint8_t *bytes = memory + PAGE - (uintptr_t)memory % PAGE;
    uint32_t random = 1;
    for (size_t i = 0; i < most + 1; i++)
        bytes[i] = (uint8_t)((random = random * 1664525 + 1013904223) >> 24);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        for (unsigned way = 0; way < 8; way++) {
            char key[32];
            snprintf(key, sizeof(key), "large/%zu-%u", i, way);
            const struct span given = span_of(bytes + way % 2, sizes[i]);
            os_fault_plan(OS_CALL_WRITE, way / 2, 0, false);
            assert_int_equal(object_put(fixture->store, key, given, &fixture->err), 0);
            os_fault_reset();
            buf_auto read;
            buf_init(&read, most);
            assert_int_equal(object_read(fixture->store, key, &read, &fixture->err), 0);
            assert_int_equal(read.size, given.size);
            assert_memory_equal(read.data, given.data, given.size);
        }
    }
    mem_free(memory);
}

/*
 * The power fails after each call of a put. An acknowledged object is complete then; one that was
 * not acknowledged is complete or does not exist.
 */
static void an_acknowledged_object_survives_a_power_cut(void **state)
{
    struct fixture *fixture = *state;
    for (int i = 0; i < 5; i++) {
        char key[64];
        snprintf(key, sizeof(key), "share/folder%d/x", i);
        os_fault_record(fixture->path);
        assert_int_equal(object_put(fixture->store, key, content(fixture), &fixture->err), 0);
        os_fault_lose_unsynced();
        reopen(fixture);
        for (int j = 0; j <= i; j++) {
            snprintf(key, sizeof(key), "share/folder%d/x", j);
            assert_whole(fixture, key);
        }
    }
    assert_int_equal(count_objects(fixture, ""), 5);
}

static void an_unacknowledged_object_is_complete_or_absent_after_a_power_cut(void **state)
{
    struct fixture *fixture = *state;
    static const enum os_call calls[] = {OS_CALL_WRITE, OS_CALL_SYNC, OS_CALL_RENAME};
    for (size_t kind = 0; kind < sizeof(calls) / sizeof(calls[0]); kind++) {
        for (unsigned nth = 1; nth <= 6; nth++) {
            char key[64];
            snprintf(key, sizeof(key), "share/%zu/%u", kind, nth);
            os_fault_record(fixture->path);
            os_fault_plan(calls[kind], nth, EIO, true);
            enum err_code code = object_put(fixture->store, key, content(fixture), &fixture->err);
            os_fault_lose_unsynced();
            os_fault_reset();
            reopen(fixture);
            if (code)
                assert_absent(fixture, key);
            else
                assert_whole(fixture, key);
            assert_int_equal(count_unfinished(fixture), 0);
        }
    }
}

static void a_deleted_object_stays_deleted_after_a_power_cut(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(object_put(fixture->store, "share/x", content(fixture), &fixture->err), 0);
    os_fault_record(fixture->path);
    assert_int_equal(object_delete(fixture->store, "share/x", &fixture->err), 0);
    os_fault_lose_unsynced();
    reopen(fixture);
    assert_absent(fixture, "share/x");
}

/* A second thread finds a folder that the first thread has created but not synced. */
static void a_folder_made_by_another_is_synced_before_it_is_used(void **state)
{
    struct fixture *fixture = *state;
    os_fault_record(fixture->path);
    char path[128];
    snprintf(path, sizeof(path), "%s/share", fixture->folder);
    assert_int_equal(os_mkdirat(AT_FDCWD, path, 0700), 0);
    assert_int_equal(object_put(fixture->store, "share/x", content(fixture), &fixture->err), 0);
    os_fault_lose_unsynced();
    reopen(fixture);
    assert_whole(fixture, "share/x");
}

static void *put_many(void *context)
{
    struct fixture *fixture = context;
    struct err err;
    static _Atomic int thread_number;
    int number = thread_number++;
    for (int i = 0; i < 25; i++) {
        char key[64];
        snprintf(key, sizeof(key), "share/%d/%d", i % 5, number * 1000 + i);
        if (object_put(fixture->store, key, content(fixture), &err))
            return fixture;
    }
    return NULL;
}

static void many_threads_put_at_once(void **state)
{
    struct fixture *fixture = *state;
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, put_many, fixture), 0);
    for (int i = 0; i < 4; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    assert_int_equal(count_objects(fixture, "share/"), 100);
}

/* Failures of one object differ from those of the process, and reads from writes. */
static void unreadable_objects_are_reported_as_such(void **state)
{
    static const struct {
        enum os_call call;
        int error;
        bool is_unreadable;
    } faults[] = {{OS_CALL_READ, EIO, true},     {OS_CALL_OPEN, EIO, true},
                  {OS_CALL_OPEN, EACCES, true},  {OS_CALL_OPEN, EMFILE, false},
                  {OS_CALL_OPEN, ENFILE, false}, {OS_CALL_OPEN, ENOMEM, false}};
    struct fixture *fixture = *state;
    buf_auto buf;
    buf_init(&buf, OBJECT_BYTES);
    assert_int_equal(object_put(fixture->store, "share/x", content(fixture), &fixture->err), 0);
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        for (int way = 0; way < 3; way++) {
            os_fault_plan(faults[i].call, 1, faults[i].error, true);
            enum err_code code =
                way == 0   ? object_read(fixture->store, "share/x", &buf, &fixture->err)
                : way == 1 ? object_read_range(fixture->store, "share/x", 1, 2, &buf, &fixture->err)
                           : object_probe(fixture->store, "share/x", NULL, &fixture->err);
            os_fault_reset();
            assert_int_equal(code, ERR_IO);
            assert_int_equal(fixture->err.is_unreadable, faults[i].is_unreadable);
        }
    }
    for (unsigned nth = 1; nth <= 2; nth++) {
        os_fault_plan(OS_CALL_OPEN, nth, EACCES, true);
        assert_int_equal(object_put(fixture->store, "share/y", content(fixture), &fixture->err),
                         ERR_IO);
        os_fault_reset();
        assert_false(fixture->err.is_unreadable);
    }
    assert_int_equal(object_probe(fixture->store, "share/x", NULL, &fixture->err), 0);
}

static void a_folder_opened_for_reading_is_not_changed(void **state)
{
    struct fixture *fixture = *state;
    struct object_store *reader;
    char temporary[200];
    assert_int_equal(object_put(fixture->store, "share/x", SPAN_LITERAL("abc"), &fixture->err), 0);
    object_store_close(fixture->store);
    snprintf(temporary, sizeof(temporary), "%s/.tmp", fixture->folder);
    assert_int_equal(rmdir(temporary), 0);
    assert_int_equal(object_folder_open_to_read(fixture->folder, &reader, &fixture->err), 0);
    buf_auto buf;
    buf_init(&buf, 100);
    assert_int_equal(object_read(reader, "share/x", &buf, &fixture->err), 0);
    assert_int_equal(object_put(reader, "share/y", SPAN_LITERAL("abc"), &fixture->err), ERR_IO);
    assert_int_equal(access(temporary, F_OK), -1);
    object_store_close(reader);
    assert_int_equal(object_folder_open_to_read("/nowhere/at/all", &reader, &fixture->err),
                     ERR_NOT_FOUND);
    assert_int_equal(object_folder_open(fixture->folder, &fixture->store, &fixture->err), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(unreadable_objects_are_reported_as_such),
        TEST(an_object_is_read_listed_and_deleted),
        TEST(a_folder_opened_for_reading_is_not_changed),
        TEST(refuses_keys_that_could_leave_the_folder),
        TEST(reads_at_most_the_maximum_of_the_buffer),
        TEST(an_aborted_write_leaves_nothing),
        TEST(every_failing_call_is_reported_and_leaves_nothing_behind),
        TEST(a_short_write_loses_no_byte),
        TEST(large_objects_of_any_size_are_complete),
        TEST(an_acknowledged_object_survives_a_power_cut),
        TEST(an_unacknowledged_object_is_complete_or_absent_after_a_power_cut),
        TEST(a_deleted_object_stays_deleted_after_a_power_cut),
        TEST(a_folder_made_by_another_is_synced_before_it_is_used),
        TEST(many_threads_put_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
