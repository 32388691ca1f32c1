#include "tests/unit/test.h"

#include "api/core/metrics.h"
#include "api/core/store_damage.h"
#include "lib/base/clock.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static int64_t time_ns = 1;

static int64_t read_time(void)
{
    return time_ns;
}

static bool has_line(struct metrics *metrics, const char *line)
{
    buf_auto text;
    buf_init(&text, 1 << 20);
    metrics_write(metrics, &text);
    buf_append_byte(&text, '\0');
    return strstr((const char *)text.data, line) != NULL;
}

static void logs_each_block_once_an_hour_and_counts_each_read(void **state)
{
    (void)state;
    struct metrics *metrics = metrics_create();
    struct store_damage_log *log = store_damage_log_create(metrics, read_time);
    const struct store_damage damaged = {
        .tenant_id = 7, .object_key = "block/1/a", .code = ERR_CORRUPT, .message = "checksum"};
    const struct store_damage lost = {
        .tenant_id = 7, .object_key = "block/1/b", .code = ERR_NOT_FOUND, .message = "none"};
    assert_true(store_damage_log_note(log, &damaged));
    assert_true(store_damage_log_note(log, &lost));
    for (int i = 0; i < 59; i++) {
        time_ns += 60 * CLOCK_NS_PER_S;
        assert_false(store_damage_log_note(log, &damaged));
    }
    assert_true(has_line(metrics, "perfolio_store_damaged_reads_total{problem=\"damaged\"} 60\n"));
    assert_true(has_line(metrics, "perfolio_store_damaged_reads_total{problem=\"lost\"} 1\n"));
    assert_true(has_line(metrics, "perfolio_store_damaged_blocks 2\n"));
    time_ns += 60 * CLOCK_NS_PER_S;
    assert_true(store_damage_log_note(log, &damaged));
    assert_false(store_damage_log_note(log, &damaged));
    assert_true(has_line(metrics, "perfolio_store_damaged_blocks 1\n"));
    store_damage_log_destroy(log);
    metrics_destroy(metrics);
}

static void more_blocks_than_it_holds_are_counted_and_not_logged(void **state)
{
    (void)state;
    struct metrics *metrics = metrics_create();
    struct store_damage_log *log = store_damage_log_create(metrics, read_time);
    char key[80];
    const struct store_damage damage = {.object_key = key, .code = ERR_IO, .message = "disk"};
    const int errors = dup(STDERR_FILENO), nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    dup2(nowhere, STDERR_FILENO); /* each of them is logged */
    for (int i = 0; i < STORE_DAMAGE_BLOCKS + 10; i++) {
        snprintf(key, sizeof(key), "block/1/%d", i);
        assert_int_equal(store_damage_log_note(log, &damage), i < STORE_DAMAGE_BLOCKS);
    }
    dup2(errors, STDERR_FILENO);
    close(nowhere);
    close(errors);
    snprintf(key, sizeof(key), "perfolio_store_damaged_blocks %d\n", STORE_DAMAGE_BLOCKS);
    assert_true(has_line(metrics, key));
    assert_true(
        has_line(metrics, "perfolio_store_damaged_reads_total{problem=\"unreadable\"} 266\n"));
    time_ns += 3600 * CLOCK_NS_PER_S;
    snprintf(key, sizeof(key), "block/2/new");
    assert_true(store_damage_log_note(log, &damage));
    store_damage_log_destroy(log);
    metrics_destroy(metrics);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logs_each_block_once_an_hour_and_counts_each_read),
        cmocka_unit_test(more_blocks_than_it_holds_are_counted_and_not_logged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
