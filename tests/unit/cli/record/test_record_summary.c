#include "tests/unit/test.h"

#include "cli/record/record_summary.h"
#include "cli/terminal.h"

#include <stdio.h>
#include <unistd.h>

enum { OUTPUT_BYTES = 4096 };

/* The text for these counts. */
static void summarise(const struct agent_counts *counts, char output[OUTPUT_BYTES])
{
    struct terminal terminal = {0};
    FILE *file = tmpfile();
    assert_non_null(file);
    fflush(stderr);
    const int saved = dup(STDERR_FILENO);
    assert_true(saved >= 0 && dup2(fileno(file), STDERR_FILENO) >= 0);
    record_summary_print(&terminal, &(struct record_summary){
                                        .counts = counts, .frequency_hz = 99, .has_off_cpu = true});
    fflush(stderr);
    assert_true(dup2(saved, STDERR_FILENO) >= 0);
    close(saved);
    rewind(file);
    output[fread(output, 1, OUTPUT_BYTES - 1, file)] = 0;
    fclose(file);
}

static void assert_output(const char *output, const char *words)
{
    if (!strstr(output, words))
        fail_msg("'%s' is not in '%s'", words, output);
}

static void missing_parts_are_named(void **state)
{
    (void)state;
    char output[OUTPUT_BYTES];
    summarise(&(struct agent_counts){.refused_names = 2}, output);
    assert_output(output, "warning: 2 processes have more names of JIT-compiled code");
    assert_null(strstr(output, "too many"));
    assert_null(strstr(output, "mappings"));
    summarise(&(struct agent_counts){.refused_mappings = 3, .refused_tables = 2}, output);
    assert_output(output, "warning: 3 mappings were too many");
    assert_output(output, "warning: 2 unwind tables did not fit");
    assert_null(strstr(output, "process"));
    summarise(&(struct agent_counts){.restarted_cpus = 2, .unsampled_cpus = 1}, output);
    assert_output(output, "warning: 2 processors came online or returned");
    assert_output(output, "warning: 1 processor that came online or returned could not be sampled");
    summarise(&(struct agent_counts){.samples = 10}, output);
    assert_null(strstr(output, "warning"));
}

static void singular_and_plural_are_used(void **state)
{
    (void)state;
    char output[OUTPUT_BYTES];
    summarise(&(struct agent_counts){.samples = 1,
                                     .off_cpu = 1,
                                     .lost_samples = 1,
                                     .refused_processes = 1,
                                     .refused_names = 1},
              output);
    assert_output(output, "1 sample at 99 Hz");
    assert_output(output, "1 off-CPU interval\n");
    assert_output(output, "1 sample was lost");
    assert_output(output, "1 process was too many");
    assert_output(output, "1 process has more names");
    summarise(&(struct agent_counts){.samples = 2, .off_cpu = 0}, output);
    assert_output(output, "2 samples at 99 Hz");
    assert_output(output, "0 off-CPU intervals\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(missing_parts_are_named),
        cmocka_unit_test(singular_and_plural_are_used),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
