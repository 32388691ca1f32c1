/* How many files the cache of open blocks keeps open, where an open file is a copy of an object. */
#include "tests/unit/store/random_batch.h"
#include "tests/unit/test.h"

#include "lib/base/err.h"
#include "lib/base/flight_cache.h"
#include "lib/io/object.h"
#include "store/query/block_cache.h"

#include <dirent.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK_COUNT = 12, COPY_COUNT = 4, TENANT = 7 };

static char folder[64];
static struct object_store *objects;
static uint64_t block_bytes;
static char keys[BLOCK_COUNT][32];

static int set_up(void **state)
{
    struct err err;
    snprintf(folder, sizeof(folder), "/tmp/perfolio-blocks-XXXXXX");
    (void)state;
    return !mkdtemp(folder) || object_folder_open(folder, &objects, &err);
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *place)
{
    (void)status, (void)type, (void)place;
    return remove(path);
}

static int tear_down(void **state)
{
    (void)state;
    object_store_close(objects);
    return nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void put_blocks(void)
{
    uint64_t random = 88172645463325252;
    const struct random_shape shape = {.sample_count = 5000,
                                       .stack_count = 300,
                                       .location_count = 200,
                                       .series_count = 3,
                                       .profile_count = 60,
                                       .label_set_count = 2,
                                       .begin_ns = INT64_C(1700000000000000000),
                                       .span_ns = INT64_C(3600000000000),
                                       .value_max = 1 << 30,
                                       .value_unit = 1};
    struct batch *batch = random_batch(&random, &shape);
    struct block_summary summary;
    struct err err;
    buf_auto bytes;
    buf_init(&bytes, SIZE_MAX / 2);
    assert_int_equal(block_write_batch(batch, TENANT, 1, &bytes, &summary, &err), ERR_NONE);
    for (int i = 0; i < BLOCK_COUNT; i++) {
        snprintf(keys[i], sizeof(keys[i]), "block/1/%08d", i);
        assert_int_equal(object_put(objects, keys[i], buf_span(&bytes), &err), ERR_NONE);
    }
    block_bytes = bytes.size;
    batch_destroy(batch);
}

/* Open files below the folder. */
static int count_copies(void)
{
    int count = 0;
    DIR *descriptors = opendir("/proc/self/fd");
    assert_non_null(descriptors);
    for (const struct dirent *entry; (entry = readdir(descriptors));) {
        char path[300], target[500];
        snprintf(path, sizeof(path), "/proc/self/fd/%s", entry->d_name);
        const ssize_t size = readlink(path, target, sizeof(target) - 1);
        target[size > 0 ? size : 0] = 0;
        count += strstr(target, folder) && strstr(target, "block/1/");
    }
    closedir(descriptors);
    return count;
}

typedef enum err_code ref_function(struct block_cache *blocks, int64_t tenant_id,
                                   const struct catalogue_place *place,
                                   const struct wait_limit *wait_limit,
                                   struct flight_entry **ret_entry, struct err *err);

static int count_kept_copies(uint64_t copy_bytes, ref_function *ref)
{
    struct block_cache *cache = block_cache_create(objects, 0);
    block_cache_limit_copies(cache, copy_bytes);
    for (int i = 0; i < BLOCK_COUNT; i++) {
        const struct catalogue_place place = {.object_key = keys[i], .level = 1};
        struct flight_entry *entry;
        struct err err;
        assert_int_equal(ref(cache, TENANT, &place, NULL, &entry, &err), ERR_NONE);
        flight_cache_unref(entry);
    }
    const int count = count_copies();
    block_cache_destroy(cache);
    assert_int_equal(count_copies(), 0);
    return count;
}

static void unused_copies_have_a_limit(void **state)
{
    (void)state;
    put_blocks();
    const uint64_t limit = COPY_COUNT * block_bytes + block_bytes / 2;
    assert_int_equal(count_kept_copies(UINT64_MAX, block_cache_ref), BLOCK_COUNT);
    assert_int_equal(count_kept_copies(UINT64_MAX, block_cache_ref_stacks), BLOCK_COUNT);
    assert_in_range(count_kept_copies(limit, block_cache_ref), 1, COPY_COUNT);
    assert_in_range(count_kept_copies(limit, block_cache_ref_stacks), 1, COPY_COUNT);
    assert_int_equal(count_kept_copies(block_bytes / 2, block_cache_ref), 0);
    assert_int_equal(count_kept_copies(block_bytes / 2, block_cache_ref_stacks), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(unused_copies_have_a_limit, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
