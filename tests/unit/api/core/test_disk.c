/* The check of the data folder's free space; its disk fills up and fails through lib/base/os. */
#include "tests/unit/test.h"

#include "api/core/disk.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/os.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MIB ((int64_t)1 << 20)

struct fixture {
    char path[64];
    struct disk *disk;
    struct err err;
};

static int set_up(void **state)
{
    struct fixture *fixture = mem_new(struct fixture, 1);
    snprintf(fixture->path, sizeof(fixture->path), "/tmp/perfolio-disk-XXXXXX");
    if (!mkdtemp(fixture->path))
        return -1;
    os_fault_free_bytes(1000 * MIB);
    *state = fixture;
    return disk_create(fixture->path, 100 * MIB, &fixture->disk, &fixture->err) ? -1 : 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    disk_destroy(fixture->disk);
    os_fault_reset();
    char held[80];
    snprintf(held, sizeof(held), "%s/.held", fixture->path);
    unlink(held);
    rmdir(fixture->path);
    mem_free(fixture);
    return 0;
}

/* The disk is checked several times per second. */
static void wait_for(struct fixture *fixture, enum err_code wanted)
{
    const int64_t until_ns = clock_monotonic_ns() + 60 * CLOCK_NS_PER_S;
    while (disk_check(fixture->disk, &fixture->err) != wanted && clock_monotonic_ns() < until_ns)
        clock_sleep_ms(5);
    assert_int_equal(disk_check(fixture->disk, &fixture->err), wanted);
}

static void nothing_is_stored_below_the_reserve(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(disk_check(fixture->disk, &fixture->err), ERR_NONE);
    assert_int_equal(disk_free_bytes(fixture->disk), 1000 * MIB);
    assert_int_equal(disk_min_free_bytes(fixture->disk), 100 * MIB);
    os_fault_free_bytes(100 * MIB - 1);
    wait_for(fixture, ERR_BUSY);
    assert_true(fixture->err.retry_after_s > 0);
    assert_non_null(strstr(fixture->err.message, "disk is full"));
    os_fault_free_bytes(200 * MIB);
    wait_for(fixture, ERR_NONE);
}

static void a_disk_at_the_edge_does_not_flap(void **state)
{
    struct fixture *fixture = *state;
    os_fault_free_bytes(99 * MIB);
    wait_for(fixture, ERR_BUSY);
    os_fault_free_bytes(101 * MIB);
    const int64_t until_ns = clock_monotonic_ns() + 60 * CLOCK_NS_PER_S;
    while (disk_free_bytes(fixture->disk) != 101 * MIB && clock_monotonic_ns() < until_ns)
        clock_sleep_ms(5);
    assert_int_equal(disk_check(fixture->disk, &fixture->err), ERR_BUSY);
}

static void nothing_is_stored_while_the_disk_fails(void **state)
{
    struct fixture *fixture = *state;
    static const struct {
        enum os_call call;
        int error;
        const char *words;
    } cases[] = {
        {OS_CALL_WRITE, EIO, "cannot be written"},
        {OS_CALL_WRITE, ENOSPC, "disk is full"},
        {OS_CALL_OPEN, EROFS, "cannot be written"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        os_fault_plan(cases[i].call, 1, cases[i].error, true);
        wait_for(fixture, ERR_BUSY);
        assert_true(fixture->err.retry_after_s > 0);
        assert_non_null(strstr(fixture->err.message, cases[i].words));
        os_fault_reset();
        os_fault_free_bytes(1000 * MIB);
        wait_for(fixture, ERR_NONE);
    }
}

/* Another program has filled the disk: the reserve is released so that deletions work. */
static void the_reserve_is_released_when_others_fill_the_disk(void **state)
{
    struct fixture *fixture = *state;
    const int64_t until_ns = clock_monotonic_ns() + 60 * CLOCK_NS_PER_S;
    assert_int_equal(disk_held_bytes(fixture->disk), 32 * MIB);
    os_fault_free_bytes(99 * MIB);
    wait_for(fixture, ERR_BUSY);
    assert_int_equal(disk_held_bytes(fixture->disk), 32 * MIB);
    os_fault_free_bytes(0);
    while (disk_held_bytes(fixture->disk) && clock_monotonic_ns() < until_ns)
        clock_sleep_ms(5);
    assert_int_equal(disk_held_bytes(fixture->disk), 0);
    os_fault_free_bytes(201 * MIB);
    wait_for(fixture, ERR_NONE);
    assert_int_equal(disk_held_bytes(fixture->disk), 32 * MIB);
}

static void the_reserve_outlives_the_server_and_is_reused_at_the_next_start(void **state)
{
    struct fixture *fixture = *state;
    char held[80];
    snprintf(held, sizeof(held), "%s/.held", fixture->path);
    disk_destroy(fixture->disk);
    fixture->disk = NULL;
    disk_release_reserve_to_start(fixture->path);
    assert_int_equal(access(held, F_OK), 0);
    assert_int_equal(disk_create(fixture->path, 100 * MIB, &fixture->disk, &fixture->err),
                     ERR_NONE);
    assert_int_equal(disk_held_bytes(fixture->disk), 32 * MIB);
    disk_destroy(fixture->disk);
    fixture->disk = NULL;
    os_fault_free_bytes(MIB);
    disk_release_reserve_to_start(fixture->path);
    assert_int_equal(access(held, F_OK), -1);
}

static int64_t allocated_bytes(int fd)
{
    struct stat status;
    assert_int_equal(fstat(fd, &status), 0);
    return (int64_t)status.st_blocks * 512;
}

static void a_file_that_grows_needs_space_for_its_growth(void **state)
{
    struct fixture *fixture = *state;
    fd_auto fd = open(fixture->path, O_TMPFILE | O_RDWR, 0600);
    assert_true(fd >= 0);
    assert_int_equal(disk_allocate(fixture->disk, fd, 30 * MIB, 1, &fixture->err), ERR_NONE);
    assert_int_equal(allocated_bytes(fd), 30 * MIB);
    os_fault_free_bytes(205 * MIB);
    assert_int_equal(disk_allocate(fixture->disk, fd, 34 * MIB, 2, &fixture->err), ERR_NONE);
    assert_int_equal(allocated_bytes(fd), 34 * MIB);
    assert_int_equal(disk_allocate(fixture->disk, fd, 40 * MIB, 2, &fixture->err), ERR_LIMIT);
    assert_int_equal(allocated_bytes(fd), 0);
}

static void the_usual_reserve_follows_the_size_of_the_disk(void **state)
{
    struct fixture *fixture = *state;
    struct disk *disk;
    uint64_t free_bytes, total_bytes;
    os_fault_reset();
    assert_int_equal(os_free_bytes(fixture->path, &free_bytes, &total_bytes), 0);
    assert_int_equal(disk_create(fixture->path, 0, &disk, &fixture->err), ERR_NONE);
    assert_int_equal(disk_min_free_bytes(disk), disk_default_reserve(total_bytes));
    disk_destroy(disk);
}

static void a_small_disk_keeps_at_most_a_quarter(void **state)
{
    (void)state;
    static const int64_t sizes_mib[][2] = {{0, 0},        {4, 1},         {64, 16},    {255, 63},
                                           {256, 64},     {1024, 64},     {2048, 128}, {8192, 512},
                                           {16384, 1024}, {1 << 20, 1024}};
    for (size_t i = 0; i < sizeof(sizes_mib) / sizeof(sizes_mib[0]); i++)
        assert_int_equal(disk_default_reserve((uint64_t)(sizes_mib[i][0] * MIB)) >> 20,
                         sizes_mib[i][1]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    log_set_level(LOG_ERROR + 1);
    const struct CMUnitTest tests[] = {
        TEST(nothing_is_stored_below_the_reserve),
        TEST(a_disk_at_the_edge_does_not_flap),
        TEST(nothing_is_stored_while_the_disk_fails),
        cmocka_unit_test_setup_teardown(
            the_reserve_outlives_the_server_and_is_reused_at_the_next_start, set_up, tear_down),
        TEST(the_reserve_is_released_when_others_fill_the_disk),
        TEST(a_file_that_grows_needs_space_for_its_growth),
        TEST(the_usual_reserve_follows_the_size_of_the_disk),
        TEST(a_small_disk_keeps_at_most_a_quarter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
