#include "tests/unit/test.h"

#include "agent/upload/spool.h"
#include "lib/base/err.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static struct spool *open_spool(const char *folder)
{
    struct spool *spool = NULL;
    struct err err;
    assert_int_equal(spool_open(folder, 1 << 20, &spool, &err), ERR_NONE);
    return spool;
}

static void remove_batch(struct spool *spool, const char *content, struct buf *bytes)
{
    struct spool_batch batch;
    struct err err;
    assert_int_equal(spool_read(spool, &batch, bytes, &err), ERR_NONE);
    assert_true(span_equal_text(buf_span(bytes), content));
    spool_remove(spool, &batch);
}

static void a_corrupt_file_does_not_block_others_and_is_counted(void **state)
{
    (void)state;
    char folder[] = "/tmp/perfolio-spool-XXXXXX", path[128];
    assert_non_null(mkdtemp(folder));
    struct spool *spool = open_spool(folder);
    struct spool_batch first;
    struct spool_counts counts;
    struct err err;
    buf_auto bytes;
    buf_init(&bytes, SPOOL_BATCH_MAX_BYTES);
    assert_int_equal(spool_put(spool, SPAN_LITERAL("one"), &err), ERR_NONE);
    assert_int_equal(spool_put(spool, SPAN_LITERAL("two"), &err), ERR_NONE);
    assert_int_equal(spool_read(spool, &first, &bytes, &err), ERR_NONE);
    snprintf(path, sizeof(path), "%s/%s", folder, first.name);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0); /* can be opened, but not read */
    assert_int_equal(spool_read(spool, &first, &bytes, &err), ERR_CORRUPT);
    remove_batch(spool, "two", &bytes);
    assert_int_equal(spool_read(spool, &first, &bytes, &err), ERR_NOT_FOUND);
    spool_count(spool, &counts);
    assert_int_equal(counts.dropped_batches, 1);
    assert_int_equal(counts.bytes, 0);
    spool_close(spool);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(rmdir(folder), 0);
}

static void nothing_is_lost_without_free_descriptors(void **state)
{
    (void)state;
    char folder[] = "/tmp/perfolio-spool-XXXXXX";
    assert_non_null(mkdtemp(folder));
    struct spool *spool = open_spool(folder);
    struct spool_batch batch;
    struct spool_counts counts;
    struct rlimit usual;
    struct err err;
    buf_auto bytes;
    buf_init(&bytes, SPOOL_BATCH_MAX_BYTES);
    assert_int_equal(spool_put(spool, SPAN_LITERAL("one"), &err), ERR_NONE);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &usual), 0);
    const struct rlimit none = {.rlim_cur = 0, .rlim_max = usual.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    const enum err_code code = spool_read(spool, &batch, &bytes, &err);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &usual), 0);
    assert_int_equal(code, ERR_IO);
    spool_count(spool, &counts);
    assert_int_equal(counts.batches, 1);
    assert_int_equal(counts.dropped_batches, 0);
    remove_batch(spool, "one", &bytes);
    spool_close(spool);
    assert_int_equal(rmdir(folder), 0);
}

static void a_second_process_may_not_use_the_folder(void **state)
{
    (void)state;
    char folder[] = "/tmp/perfolio-spool-XXXXXX";
    assert_non_null(mkdtemp(folder));
    struct spool *spool = open_spool(folder), *other = NULL;
    struct err err;
    assert_int_equal(spool_open(folder, 1 << 20, &other, &err), ERR_CONFLICT);
    assert_non_null(strstr(err.message, folder));
    assert_non_null(strstr(err.message, "--spool-dir"));
    spool_close(spool);
    spool_close(open_spool(folder));
    assert_int_equal(rmdir(folder), 0);
}

static void a_file_name_with_the_last_timestamp_is_ignored(void **state)
{
    (void)state;
    char folder[] = "/tmp/perfolio-spool-XXXXXX", path[160];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/09223372036854775807-aaaaaaaaaaaaaaaaaaaaaa.otlp.zst", folder);
    close(open(path, O_CREAT | O_WRONLY, 0600));
    struct spool *spool = open_spool(folder);
    struct spool_counts counts;
    struct err err;
    buf_auto bytes;
    buf_init(&bytes, SPOOL_BATCH_MAX_BYTES);
    spool_count(spool, &counts);
    assert_int_equal(counts.batches, 0);
    assert_int_equal(spool_put(spool, SPAN_LITERAL("one"), &err), ERR_NONE);
    remove_batch(spool, "one", &bytes);
    spool_close(spool);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
}

static void an_unusable_folder_is_reported_at_the_start(void **state)
{
    (void)state;
    char folder[] = "/tmp/perfolio-spool-XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/.new", folder);
    assert_int_equal(mkdir(path, 0700), 0);
    struct spool *spool = NULL;
    struct err err;
    assert_int_equal(spool_open(folder, 1 << 20, &spool, &err), ERR_IO);
    assert_non_null(strstr(err.message, path));
    assert_int_equal(rmdir(path), 0);
    spool_close(open_spool(folder));
    assert_int_equal(rmdir(folder), 0);
}

static void a_file_that_was_removed_does_not_count_as_dropped(void **state)
{
    (void)state;
    char folder[] = "/tmp/perfolio-spool-XXXXXX", command[64];
    assert_non_null(mkdtemp(folder));
    struct spool *spool = NULL;
    struct spool_counts counts;
    struct err err;
    assert_int_equal(spool_open(folder, 8, &spool, &err), ERR_NONE);
    snprintf(command, sizeof(command), "rm %s/*.otlp.zst", folder);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(spool_put(spool, SPAN_LITERAL("batch"), &err), ERR_NONE);
        assert_int_equal(system(command), 0);
    }
    spool_count(spool, &counts);
    assert_int_equal(counts.put_batches, 5);
    assert_int_equal(counts.dropped_batches, 0);
    spool_close(spool);
    assert_int_equal(rmdir(folder), 0);
}

static void without_a_limit_all_batches_stay(void **state)
{
    (void)state;
    char folder[] = "/tmp/perfolio-spool-XXXXXX", command[64];
    assert_non_null(mkdtemp(folder));
    struct spool *spool = NULL;
    struct spool_batch batch;
    struct spool_counts counts;
    struct err err;
    buf_auto bytes;
    buf_init(&bytes, SPOOL_BATCH_MAX_BYTES);
    for (int run = 0; run < 2; run++) {
        assert_int_equal(spool_open(folder, SPOOL_NO_LIMIT, &spool, &err), ERR_NONE);
        for (int i = 0; i < 3; i++)
            assert_int_equal(spool_put(spool, SPAN_LITERAL("one"), &err), ERR_NONE);
        assert_int_equal(spool_read(spool, &batch, &bytes, &err), ERR_NOT_FOUND);
        spool_count(spool, &counts);
        spool_close(spool);
    }
    assert_int_equal(counts.batches, 0); /* the files were removed without a call of the spool */
    assert_int_equal(counts.bytes, 0);
    assert_int_equal(counts.put_batches, 3);
    assert_int_equal(counts.put_bytes, 3 * 3);
    assert_int_equal(counts.dropped_batches, 0);
    snprintf(command, sizeof(command), "rm %s/*.otlp.zst", folder);
    assert_int_equal(system(command), 0);
    assert_int_equal(rmdir(folder), 0);
}

static void an_unused_new_folder_is_removed(void **state)
{
    (void)state;
    char folder[] = "/tmp/perfolio-spool-XXXXXX", path[128];
    struct err err;
    assert_non_null(mkdtemp(folder));
    spool_abandon(open_spool(folder)); /* it existed before */
    snprintf(path, sizeof(path), "%s/new", folder);
    spool_abandon(open_spool(path));
    assert_int_equal(access(path, F_OK), -1);
    struct spool *spool = open_spool(path);
    assert_int_equal(spool_put(spool, SPAN_LITERAL("one"), &err), ERR_NONE);
    spool_abandon(spool);
    assert_int_equal(access(path, F_OK), 0);
    snprintf(path, sizeof(path), "rm -r %s", folder);
    assert_int_equal(system(path), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_second_process_may_not_use_the_folder),
        cmocka_unit_test(a_file_name_with_the_last_timestamp_is_ignored),
        cmocka_unit_test(an_unusable_folder_is_reported_at_the_start),
        cmocka_unit_test(a_file_that_was_removed_does_not_count_as_dropped),
        cmocka_unit_test(without_a_limit_all_batches_stay),
        cmocka_unit_test(a_corrupt_file_does_not_block_others_and_is_counted),
        cmocka_unit_test(nothing_is_lost_without_free_descriptors),
        cmocka_unit_test(an_unused_new_folder_is_removed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
