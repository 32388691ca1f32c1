#include "tests/unit/test.h"

#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/symbols/symbol_builder.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Shell scripts instead of perfolio-symbolize: descriptor 5 is the report. */
struct fixture {
    char folder[64];
    char program[96];
    char file[96];
};

static int create_folder(void **state)
{
    static struct fixture fixture;
    snprintf(fixture.folder, sizeof(fixture.folder), "/tmp/perfolio-builder-XXXXXX");
    if (!mkdtemp(fixture.folder))
        return -1;
    snprintf(fixture.program, sizeof(fixture.program), "%s/program", fixture.folder);
    snprintf(fixture.file, sizeof(fixture.file), "%s/file", fixture.folder);
    *state = &fixture;
    return 0;
}

static int remove_folder(void **state)
{
    struct fixture *fixture = *state;
    unlink(fixture->program);
    unlink(fixture->file);
    return rmdir(fixture->folder);
}

static void write_program(const struct fixture *fixture, const char *script)
{
    unlink(fixture->program);
    FILE *file = fopen(fixture->program, "w");
    assert_non_null(file);
    fprintf(file, "#!/bin/sh\n%s\n", script);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(fixture->program, 0755), 0);
}

static enum err_code run(const struct fixture *fixture, const char *script, int64_t wall_ms,
                         struct symbol_builder_report *report, struct err *err)
{
    write_program(fixture, script);
    int fd = open(fixture->file, O_RDWR | O_CREAT, 0600);
    assert_true(fd >= 0);
    struct symbol_builder_options options = {.program = fixture->program,
                                             .input_fd = fd,
                                             .output_fd = fd,
                                             .alternate_fd = -1,
                                             .wall_ms = wall_ms};
    *err = (struct err){0};
    enum err_code code = symbol_builder_run(&options, report, err);
    close(fd);
    return code;
}

static void every_end_of_the_builder_has_a_reason(void **state)
{
    static const struct {
        const char *script;
        enum err_code code;
        const char *text;
    } cases[] = {
        {"kill -SEGV $$", ERR_INVALID, "crashed on this file"},
        {"kill -SYS $$", ERR_INVALID, "a system call that its sandbox forbids"},
        {"echo 'level=error msg=\"out of memory\" bytes=9' >&2; kill -ABRT $$", ERR_TOO_LARGE,
         "more than the limit of 4096 MiB of memory"},
        {"echo \"main.c:1: main: Assertion \\`false' failed.\" >&2; kill -ABRT $$", ERR_INVALID,
         "an assertion failed"},
        {"echo '*** stack smashing detected ***' >&2; kill -ABRT $$", ERR_INVALID,
         "its own memory damaged"},
        {"kill -ABRT $$", ERR_INVALID, "without a reason"},
        {"kill -XCPU $$", ERR_TOO_LARGE, "of CPU time"},
        {"kill -KILL $$", ERR_INTERNAL,
         "killed by another process: the machine may be short of memory"},
        {"exit 7", ERR_INTERNAL, "status 7"},
        {"exit 0", ERR_INTERNAL, "is incomplete"},
        {"echo rubbish >&5", ERR_INTERNAL, "is incomplete"},
        {"echo quality many >&5; echo done >&5", ERR_INTERNAL, "is incomplete"},
        {"echo ranges 3 >&5", ERR_INTERNAL, "is incomplete"},
        {"yes quality 3 | head -c 100000 >&5", ERR_INTERNAL, "is too long"},
        {"echo failed invalid no ELF file >&5; exit 1", ERR_INVALID, "no ELF file"},
        {"echo failed not-found stripped >&5; exit 1", ERR_NOT_FOUND, "stripped"},
        {"echo failed forbidden come in >&5; exit 1", ERR_INTERNAL, "come in"},
        {"printf 'failed invalid a\\033[31mb\\377\\n' >&5; exit 1", ERR_INVALID, "a?[31mb?"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct symbol_builder_report report;
        struct err err;
        assert_int_equal(run(*state, cases[i].script, 60000, &report, &err), cases[i].code);
        if (!strstr(err.message, cases[i].text))
            fail_msg("%s: %s", cases[i].script, err.message);
    }
}

static void a_file_that_failed_has_its_id_and_nothing_else(void **state)
{
    static const struct {
        const char *script;
        enum err_code code;
        size_t id_characters;
    } cases[] = {
        {"echo id 0aff >&5; echo functions 3 >&5; echo failed not-found stripped >&5; exit 1",
         ERR_NOT_FOUND, 4},
        {"echo failed not-found stripped >&5; exit 1", ERR_NOT_FOUND, 0},
        {"printf 'id %0256d\ndone\n' 7 >&5", ERR_NONE, 256},
        {"printf 'id %0258d\ndone\n' 7 >&5", ERR_INTERNAL, 0},
        {"printf 'id 0af\ndone\n' >&5", ERR_INTERNAL, 0},
        {"printf 'id ../x\ndone\n' >&5", ERR_INTERNAL, 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct symbol_builder_report report;
        struct err err;
        assert_int_equal(run(*state, cases[i].script, 60000, &report, &err), cases[i].code);
        assert_int_equal(strlen(report.id), cases[i].id_characters);
        assert_int_equal(report.functions, 0);
    }
}

static void each_ended_worker_names_its_phase(void **state)
{
    static const char *const phases[][2] = {{"headers", "while reading its headers"},
                                            {"go", "while reading Go's table"},
                                            {"dwarf", "while reading its DWARF"},
                                            {"symbols", "while reading its symbols"},
                                            {"table", "while writing the table"}};
    static const struct {
        const char *death;
        enum err_code code;
    } deaths[] = {{"kill -SEGV $$", ERR_INVALID},
                  {"kill -BUS $$", ERR_INVALID},
                  {"kill -SYS $$", ERR_INVALID},
                  {"kill -ABRT $$", ERR_INVALID},
                  {"echo 'msg=\"out of memory\"' >&2; kill -ABRT $$", ERR_TOO_LARGE},
                  {"kill -XCPU $$", ERR_TOO_LARGE},
                  {"kill -KILL $$", ERR_INTERNAL},
                  {"exec sleep 1000", ERR_TIMEOUT}};
    for (size_t i = 0; i < sizeof(phases) / sizeof(phases[0]); i++) {
        for (size_t k = 0; k < sizeof(deaths) / sizeof(deaths[0]); k++) {
            char script[192];
            struct symbol_builder_report report;
            struct err err;
            bool is_slow = strncmp(deaths[k].death, "exec", 4) == 0;
            snprintf(script, sizeof(script), "echo phase headers >&5; echo phase %s >&5; %s",
                     phases[i][0], deaths[k].death);
            assert_int_equal(run(*state, script, is_slow ? 1500 : 60000, &report, &err),
                             deaths[k].code);
            if (!strstr(err.message, phases[i][1]))
                fail_msg("%s: %s", script, err.message);
        }
    }
}

static void a_builder_that_hangs_is_stopped(void **state)
{
    struct symbol_builder_report report;
    struct err err;
    assert_int_equal(run(*state, "exec sleep 1000", 50, &report, &err), ERR_TIMEOUT);
    assert_int_equal(run(*state, "exec 5>&-; exec sleep 1000", 50, &report, &err), ERR_TIMEOUT);
}

static void a_report_is_read(void **state)
{
    struct symbol_builder_report report;
    struct err err;
    assert_int_equal(run(*state,
                         "echo quality 7 >&5; echo broken_units 2 >&5; echo functions 11 >&5; "
                         "echo ranges 13 >&5; echo table_bytes 17 >&5; echo problem some text >&5; "
                         "echo alternate_id 0a0b >&5; echo warning none >&5; echo done >&5",
                         60000, &report, &err),
                     ERR_NONE);
    assert_int_equal(report.quality, 7);
    assert_int_equal(report.broken_units, 2);
    assert_int_equal(report.functions, 11);
    assert_int_equal(report.ranges, 13);
    assert_int_equal(report.table_bytes, 17);
    assert_string_equal(report.problem, "some text");
    assert_string_equal(report.alternate_id, "0a0b");
    assert_string_equal(report.warning, "none");
}

static void the_builder_inherits_only_its_files(void **state)
{
    struct symbol_builder_report report;
    struct err err;
    int other =
        open("/dev/null", O_RDONLY); /* must not be inherited, although it has no FD_CLOEXEC */
    assert_true(other >= 0);
    assert_int_equal(run(*state,
                         "for fd in 6 7 8 9; do [ -e /proc/$$/fd/$fd ] && exit 9; done; "
                         "[ -e /proc/$$/fd/3 ] && [ -e /proc/$$/fd/4 ] && [ -z \"$HOME\" ] && "
                         "echo done >&5",
                         60000, &report, &err),
                     ERR_NONE);
    close(other);
}

static void signals_to_our_process_group_do_not_reach_the_builder(void **state)
{
    struct symbol_builder_report report;
    struct err err;
    assert_int_equal(run(*state,
                         "kill -HUP $$; kill -INT $$; kill -QUIT $$; kill -TERM $$; echo done >&5",
                         60000, &report, &err),
                     ERR_NONE);
}

static void a_missing_program_is_reported(void **state)
{
    const struct fixture *fixture = *state;
    struct symbol_builder_options options = {.program = "/nonexistent/perfolio-symbolize",
                                             .input_fd = 0,
                                             .output_fd = 1,
                                             .alternate_fd = -1};
    struct symbol_builder_report report;
    struct err err;
    (void)fixture;
    assert_int_equal(symbol_builder_run(&options, &report, &err), ERR_INTERNAL);
    assert_non_null(strstr(err.message, "/nonexistent/perfolio-symbolize"));
    assert_int_equal(symbol_builder_check(options.program, &err), ERR_NOT_FOUND);
    assert_non_null(strstr(err.message, "/nonexistent/perfolio-symbolize"));
    assert_int_equal(symbol_builder_check("/bin/sh", &err), ERR_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_end_of_the_builder_has_a_reason, create_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(a_file_that_failed_has_its_id_and_nothing_else,
                                        create_folder, remove_folder),
        cmocka_unit_test_setup_teardown(each_ended_worker_names_its_phase, create_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(a_builder_that_hangs_is_stopped, create_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(a_report_is_read, create_folder, remove_folder),
        cmocka_unit_test_setup_teardown(the_builder_inherits_only_its_files, create_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(signals_to_our_process_group_do_not_reach_the_builder,
                                        create_folder, remove_folder),
        cmocka_unit_test(a_missing_program_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
