/*
 * The contract of both kinds of object store: with a folder, and, with PERFOLIO_TEST_S3_ENDPOINT
 * and PERFOLIO_TEST_S3_BUCKET, _ACCESS_KEY, _SECRET_KEY, _STYLE set, with an S3 server (make
 * test-s3).
 */
#include "tests/unit/test.h"

#include "lib/base/buf.h"
#include "lib/base/digest.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/base/os.h"
#include "lib/io/object.h"
#include "lib/io/object_s3.h"

#include <ftw.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SMALL_BYTES = 10000, LARGE_BYTES = (19 << 20) + 12345 };

struct fixture {
    char path[64];
    struct object_store *store;
    struct err err;
};

static struct fixture *the(void **state)
{
    return *state;
}

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *walk)
{
    (void)status, (void)kind, (void)walk;
    return remove(path);
}

static int set_up_folder(void **state)
{
    struct fixture *fixture = mem_new(struct fixture, 1);
    snprintf(fixture->path, sizeof(fixture->path), "/tmp/perfolio-object-XXXXXX");
    if (!mkdtemp(fixture->path))
        return -1;
    *state = fixture;
    return object_folder_open(fixture->path, &fixture->store, &fixture->err) != ERR_NONE;
}

/* Each test has its own prefix, so that no test sees objects of another one. */
static int set_up_s3(void **state)
{
    struct fixture *fixture = mem_new(struct fixture, 1);
    char prefix[64], id[DIGEST_ID_BYTES];
    *state = fixture;
    digest_random_id(id);
    snprintf(prefix, sizeof(prefix), "test/%s/", id);
    const char *style = getenv("PERFOLIO_TEST_S3_STYLE");
    const struct object_s3_options options = {
        .endpoint = getenv("PERFOLIO_TEST_S3_ENDPOINT"),
        .bucket = getenv("PERFOLIO_TEST_S3_BUCKET"),
        .access_key = getenv("PERFOLIO_TEST_S3_ACCESS_KEY"),
        .secret_key = getenv("PERFOLIO_TEST_S3_SECRET_KEY"),
        .ca_file = getenv("PERFOLIO_TEST_S3_CA_FILE"),
        .region = getenv("PERFOLIO_TEST_S3_REGION"),
        .prefix = prefix,
        .is_path_style = !style || strcmp(style, "host") != 0,
    };
    if (object_s3_open(&options, &fixture->store, &fixture->err)) {
        print_error("%s\n", fixture->err.message);
        return -1;
    }
    return 0;
}

static enum err_code delete_visited(void *context, const char *key, uint64_t size,
                                    int64_t modified_ns, struct err *err)
{
    (void)size, (void)modified_ns;
    return object_delete(context, key, err);
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    int failed = 0;
    if (!fixture->path[0] && fixture->store)
        failed = object_list(fixture->store, "", delete_visited, fixture->store, &fixture->err) !=
                 ERR_NONE;
    object_store_close(fixture->store);
    if (fixture->path[0])
        nftw(fixture->path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    mem_free(fixture);
    return failed;
}

static void ok(struct fixture *fixture, enum err_code code)
{
    if (code)
        fail_msg("%s: %s", err_code_name(code), fixture->err.message);
}

/* Bytes that contain their own offset. */
static struct span content(size_t size)
{
    static uint8_t *bytes;
    if (!bytes) {
        bytes = mem_alloc(LARGE_BYTES, 1);
        for (size_t i = 0; i < LARGE_BYTES; i++)
            bytes[i] = (uint8_t)(i * 7 + i / 256 + i / 65536);
    }
    return span_of(bytes, size);
}

static void put(struct fixture *fixture, const char *key, size_t size)
{
    ok(fixture, object_put(fixture->store, key, content(size), &fixture->err));
}

static void assert_whole(struct fixture *fixture, const char *key, size_t size)
{
    buf_auto buf;
    buf_init(&buf, size);
    ok(fixture, object_read(fixture->store, key, &buf, &fixture->err));
    assert_true(span_equal(buf_span(&buf), content(size)));
}

static void assert_absent(struct fixture *fixture, const char *key)
{
    int fd;
    uint64_t size;
    buf_auto buf;
    buf_init(&buf, 1 << 20);
    assert_int_equal(object_open(fixture->store, key, &fd, &size, &fixture->err), ERR_NOT_FOUND);
    assert_int_equal(object_read(fixture->store, key, &buf, &fixture->err), ERR_NOT_FOUND);
    assert_int_equal(object_read_range(fixture->store, key, 0, 1, &buf, &fixture->err),
                     ERR_NOT_FOUND);
    assert_int_equal(object_probe(fixture->store, key, NULL, &fixture->err), ERR_NOT_FOUND);
    assert_int_equal(buf.size, 0);
}

struct listed {
    size_t count, limit;
    uint64_t bytes;
    int64_t oldest_ns;
    const char *prefix;
};

static enum err_code count_object(void *context, const char *key, uint64_t size,
                                  int64_t modified_ns, struct err *err)
{
    struct listed *listed = context;
    assert_true(strncmp(key, listed->prefix, strlen(listed->prefix)) == 0);
    listed->bytes += size;
    if (!listed->oldest_ns || modified_ns < listed->oldest_ns)
        listed->oldest_ns = modified_ns;
    if (++listed->count == listed->limit)
        return err_set(err, ERR_CANCELLED, "enough");
    return ERR_NONE;
}

static size_t count_objects(struct fixture *fixture, const char *prefix)
{
    struct listed listed = {.prefix = prefix};
    ok(fixture, object_list(fixture->store, prefix, count_object, &listed, &fixture->err));
    return listed.count;
}

static void an_object_is_read_listed_and_deleted(void **state)
{
    struct fixture *fixture = the(state);
    put(fixture, "share/a/1", SMALL_BYTES);
    put(fixture, "share/b/1", SMALL_BYTES);
    put(fixture, "top", 1);
    assert_whole(fixture, "share/a/1", SMALL_BYTES);
    assert_whole(fixture, "top", 1);
    assert_int_equal(count_objects(fixture, ""), 3);
    assert_int_equal(count_objects(fixture, "share/a"), 1);
    assert_int_equal(count_objects(fixture, "part/"), 0);
    struct listed listed = {.prefix = "share/"};
    ok(fixture, object_list(fixture->store, "share/", count_object, &listed, &fixture->err));
    assert_int_equal(listed.bytes, 2 * SMALL_BYTES);
    assert_true(listed.oldest_ns > INT64_C(1600000000000000000));
    ok(fixture, object_delete(fixture->store, "share/a/1", &fixture->err));
    ok(fixture, object_delete(fixture->store, "share/a/1", &fixture->err));
    ok(fixture, object_delete(fixture->store, "never/was", &fixture->err));
    assert_absent(fixture, "share/a/1");
    assert_whole(fixture, "share/b/1", SMALL_BYTES);
}

static void an_empty_object_is_an_object(void **state)
{
    struct fixture *fixture = the(state);
    int fd;
    uint64_t size = 1;
    put(fixture, "empty", 0);
    assert_whole(fixture, "empty", 0);
    ok(fixture, object_open(fixture->store, "empty", &fd, &size, &fixture->err));
    close(fd);
    assert_int_equal(size, 0);
    buf_auto buf;
    buf_init(&buf, 10);
    assert_int_equal(object_read_range(fixture->store, "empty", 0, 1, &buf, &fixture->err),
                     ERR_CORRUPT);
}

static void a_range_is_exact_or_refused(void **state)
{
    struct fixture *fixture = the(state);
    static const size_t ranges[][2] = {{0, 1},    {0, SMALL_BYTES},     {1, 4096},
                                       {4095, 2}, {SMALL_BYTES - 1, 1}, {5000, 5000}};
    buf_auto buf;
    buf_init(&buf, SMALL_BYTES + 1);
    put(fixture, "a/b", SMALL_BYTES);
    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
        size_t offset = ranges[i][0], size = ranges[i][1];
        buf_clear(&buf);
        buf_append_byte(&buf, 'x');
        ok(fixture, object_read_range(fixture->store, "a/b", offset, size, &buf, &fixture->err));
        assert_int_equal(buf.size, size + 1);
        assert_int_equal(buf.data[0], 'x');
        assert_memory_equal(buf.data + 1, content(SMALL_BYTES).data + offset, size);
    }
    static const size_t beyond[][2] = {
        {0, SMALL_BYTES + 1}, {SMALL_BYTES - 1, 2}, {SMALL_BYTES, 1}, {SIZE_MAX, 1}, {1 << 30, 9}};
    for (size_t i = 0; i < sizeof(beyond) / sizeof(beyond[0]); i++) {
        buf_clear(&buf);
        assert_int_equal(object_read_range(fixture->store, "a/b", beyond[i][0], beyond[i][1], &buf,
                                           &fixture->err),
                         ERR_CORRUPT);
        assert_int_equal(buf.size, 0);
    }
    ok(fixture, object_read_range(fixture->store, "a/b", SIZE_MAX, 0, &buf, &fixture->err));
    ok(fixture, object_probe(fixture->store, "a/b", NULL, &fixture->err));
}

static void reads_at_most_the_maximum_of_the_buffer(void **state)
{
    struct fixture *fixture = the(state);
    buf_auto buf;
    buf_init(&buf, SMALL_BYTES - 1);
    put(fixture, "share/x", SMALL_BYTES);
    assert_int_equal(object_read(fixture->store, "share/x", &buf, &fixture->err), ERR_TOO_LARGE);
    assert_int_equal(buf.size, 0);
    assert_int_equal(
        object_read_range(fixture->store, "share/x", 0, SMALL_BYTES, &buf, &fixture->err),
        ERR_TOO_LARGE);
}

static void refuses_invalid_keys(void **state)
{
    struct fixture *fixture = the(state);
    static const char *const keys[] = {"",    "/a",     "a/",      "a//b", "..",      "a/../b",
                                       "a b", ".tmp/x", "a/b/c/d", "ä",    "a/.hide", "a\nb"};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        buf_auto buf;
        buf_init(&buf, 1);
        struct object_writer *writer;
        struct err *err = &fixture->err;
        assert_int_equal(object_put(fixture->store, keys[i], content(1), err), ERR_INVALID);
        assert_int_equal(object_writer_open(fixture->store, keys[i], &writer, err), ERR_INVALID);
        assert_int_equal(object_read(fixture->store, keys[i], &buf, err), ERR_INVALID);
        assert_int_equal(object_delete_many(fixture->store, &keys[i], 1, err), ERR_INVALID);
    }
    assert_int_equal(count_objects(fixture, ""), 0);
}

/* One part, one full part, many parts; in chunks that are not aligned to parts. */
static void a_writer_joins_its_pieces(void **state)
{
    struct fixture *fixture = the(state);
    static const size_t sizes[] = {0, SMALL_BYTES, 8 << 20, (8 << 20) + 1, 16 << 20, LARGE_BYTES};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct object_writer *writer;
        char key[32];
        snprintf(key, sizeof(key), "block/%zu", i);
        ok(fixture, object_writer_open(fixture->store, key, &writer, &fixture->err));
        for (size_t at = 0, piece; at < sizes[i]; at += piece) {
            piece = sizes[i] - at < 700001 ? sizes[i] - at : 700001;
            ok(fixture, object_writer_append(writer, span_of(content(at + 1).data + at, piece),
                                             &fixture->err));
        }
        ok(fixture, object_writer_commit(writer, &fixture->err));
        assert_whole(fixture, key, sizes[i]);
    }
    assert_int_equal(count_objects(fixture, "block/"), 6);
}

static void an_aborted_write_leaves_nothing(void **state)
{
    struct fixture *fixture = the(state);
    static const size_t sizes[] = {SMALL_BYTES, LARGE_BYTES};
    for (size_t i = 0; i < 2; i++) {
        struct object_writer *writer;
        ok(fixture, object_writer_open(fixture->store, "share/x", &writer, &fixture->err));
        ok(fixture, object_writer_append(writer, content(sizes[i]), &fixture->err));
        object_writer_abort(writer);
        assert_absent(fixture, "share/x");
    }
    object_writer_abort(NULL);
    ok(fixture, object_sweep_temporary(fixture->store, &fixture->err));
    assert_int_equal(count_objects(fixture, ""), 0);
}

static void a_large_object_is_read_through_a_descriptor(void **state)
{
    struct fixture *fixture = the(state);
    int fd;
    uint64_t size;
    put(fixture, "large", LARGE_BYTES);
    ok(fixture, object_open(fixture->store, "large", &fd, &size, &fixture->err));
    assert_int_equal(size, LARGE_BYTES);
    assert_int_equal(lseek(fd, 0, SEEK_CUR), 0);
    uint8_t *bytes = mem_alloc(LARGE_BYTES + 1, 1);
    size_t got = 0;
    for (ssize_t taken; (taken = read(fd, bytes + got, LARGE_BYTES + 1 - got)) > 0;)
        got += (size_t)taken;
    close(fd);
    assert_int_equal(got, LARGE_BYTES);
    assert_memory_equal(bytes, content(LARGE_BYTES).data, LARGE_BYTES);
    mem_free(bytes);
}

static void many_objects_are_deleted_at_once_and_others_stay(void **state)
{
    struct fixture *fixture = the(state);
    enum { KEYS = 60 };
    char keys[KEYS + 2][32];
    const char *wanted[KEYS + 2];
    for (size_t i = 0; i < KEYS; i++) {
        snprintf(keys[i], sizeof(keys[i]), "block/%zu/%zu", i % 3, i);
        put(fixture, keys[i], i);
        wanted[i] = keys[i];
    }
    wanted[KEYS] = "block/none";
    wanted[KEYS + 1] = "never/was/there";
    put(fixture, "block/4", 4);
    put(fixture, "block/0/stays", 5);
    ok(fixture, object_delete_many(fixture->store, wanted, KEYS + 2, &fixture->err));
    assert_int_equal(count_objects(fixture, ""), 2);
    assert_whole(fixture, "block/4", 4);
    ok(fixture, object_delete_many(fixture->store, wanted, KEYS + 2, &fixture->err));
    ok(fixture, object_delete_many(fixture->store, NULL, 0, &fixture->err));
}

struct puts {
    struct fixture *fixture;
    size_t number, count;
};

static void *put_some(void *context)
{
    struct puts *puts = context;
    struct err err;
    for (size_t i = 0; i < puts->count; i++) {
        char key[64];
        snprintf(key, sizeof(key), "share/%zu/%zu", i % 5, puts->number * 10000 + i);
        if (object_put(puts->fixture->store, key, content(100), &err)) {
            print_error("%s\n", err.message);
            return puts;
        }
    }
    return NULL;
}

static void put_in_threads(struct fixture *fixture, size_t each)
{
    pthread_t threads[4];
    struct puts puts[4];
    for (size_t i = 0; i < 4; i++) {
        puts[i] = (struct puts){.fixture = fixture, .number = i, .count = each};
        assert_int_equal(pthread_create(&threads[i], NULL, put_some, &puts[i]), 0);
    }
    for (size_t i = 0; i < 4; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
}

/* More than one page of a listing and more than one multi-delete, put by threads that share a
 * store. */
static void more_than_a_page_is_put_listed_and_deleted(void **state)
{
    struct fixture *fixture = the(state);
    /* Only S3 has pages; a folder would sync each object. */
    const size_t each = fixture->path[0] ? 10 : 260, all = 4 * each;
    put_in_threads(fixture, each);
    assert_int_equal(count_objects(fixture, "share/"), all);
    struct listed few = {.prefix = "share/", .limit = 7};
    assert_int_equal(object_list(fixture->store, "share/", count_object, &few, &fixture->err),
                     ERR_CANCELLED);
    assert_int_equal(few.count, 7);
    char(*keys)[32] = mem_alloc(all, sizeof(*keys));
    const char **wanted = mem_new(const char *, all);
    for (size_t i = 0; i < all; i++) {
        snprintf(keys[i], sizeof(keys[i]), "share/%zu/%zu", i % each % 5,
                 i / each * 10000 + i % each);
        wanted[i] = keys[i];
    }
    ok(fixture, object_delete_many(fixture->store, wanted, all, &fixture->err));
    mem_free(wanted);
    mem_free(keys);
    assert_int_equal(count_objects(fixture, ""), 0);
}

#define STORE_TESTS(SET_UP)                                                                        \
    SHARED(an_object_is_read_listed_and_deleted, SET_UP),                                          \
        SHARED(an_empty_object_is_an_object, SET_UP), SHARED(a_range_is_exact_or_refused, SET_UP), \
        SHARED(reads_at_most_the_maximum_of_the_buffer, SET_UP),                                   \
        SHARED(refuses_invalid_keys, SET_UP), SHARED(a_writer_joins_its_pieces, SET_UP),           \
        SHARED(an_aborted_write_leaves_nothing, SET_UP),                                           \
        SHARED(a_large_object_is_read_through_a_descriptor, SET_UP),                               \
        SHARED(many_objects_are_deleted_at_once_and_others_stay, SET_UP),                          \
        SHARED(more_than_a_page_is_put_listed_and_deleted, SET_UP)
#define SHARED(name, set_up) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest folder_tests[] = {STORE_TESTS(set_up_folder)};
    const struct CMUnitTest s3_tests[] = {STORE_TESTS(set_up_s3)};
    if (getenv("PERFOLIO_TEST_S3_ENDPOINT"))
        return cmocka_run_group_tests_name("s3", s3_tests, NULL, NULL);
    return cmocka_run_group_tests_name("folder", folder_tests, NULL, NULL);
}
