#include "tests/unit/test.h"

#include "cli/record/record_summary.h"
#include "cli/terminal.h"

#include <stdio.h>
#include <unistd.h>

enum { SAID_BYTES = 4096 };

/* The text for these counts. */
static void summarise(const struct agent_counts *counts, char said[SAID_BYTES])
{
    struct terminal terminal = {0};
    FILE *file = tmpfile();
    assert_non_null(file);
    fflush(stderr);
    const int saved = dup(STDERR_FILENO);
    assert_true(saved >= 0 && dup2(fileno(file), STDERR_FILENO) >= 0);
    record_summary_print(&terminal, &(struct record_summary){
                                        .counts = counts, .frequency_hz = 99, .has_waits = true});
    fflush(stderr);
    assert_true(dup2(saved, STDERR_FILENO) >= 0);
    close(saved);
    rewind(file);
    said[fread(said, 1, SAID_BYTES - 1, file)] = 0;
    fclose(file);
}

static void assert_said(const char *said, const char *words)
{
    if (!strstr(said, words))
        fail_msg("'%s' is not in '%s'", words, said);
}

static void missing_parts_are_named(void **state)
{
    (void)state;
    char said[SAID_BYTES];
    summarise(&(struct agent_counts){.refused_names = 2}, said);
    assert_said(said, "warning: 2 processes have more names of JIT-compiled code");
    assert_null(strstr(said, "too many"));
    assert_null(strstr(said, "mappings"));
    summarise(&(struct agent_counts){.refused_mappings = 3, .refused_tables = 2}, said);
    assert_said(said, "warning: 3 mappings were too many");
    assert_said(said, "warning: 2 unwind tables did not fit");
    assert_null(strstr(said, "process"));
    summarise(&(struct agent_counts){.samples = 10}, said);
    assert_null(strstr(said, "warning"));
}

static void singular_and_plural_are_used(void **state)
{
    (void)state;
    char said[SAID_BYTES];
    summarise(&(struct agent_counts){.samples = 1,
                                     .off_cpu = 1,
                                     .lost_samples = 1,
                                     .refused_processes = 1,
                                     .refused_names = 1},
              said);
    assert_said(said, "1 sample at 99 Hz");
    assert_said(said, "1 wait of a thread\n");
    assert_said(said, "1 sample was lost");
    assert_said(said, "1 process was too many");
    assert_said(said, "1 process has more names");
    summarise(&(struct agent_counts){.samples = 2, .off_cpu = 0}, said);
    assert_said(said, "2 samples at 99 Hz");
    assert_said(said, "0 waits of threads\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(missing_parts_are_named),
        cmocka_unit_test(singular_and_plural_are_used),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
