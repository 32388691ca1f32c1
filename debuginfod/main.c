/*
 * perfolio-symbolize FILE -o TABLE: builds a symbol table from a file with debug information.
 *
 * A second process of this program reads the file in a sandbox (worker.h). This process opens the
 * files, waits, and moves the finished table to its path.
 */
#include "debuginfod/worker.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/base/os.h"
#include "lib/base/version.h"
#include "lib/symbols/symbol_builder.h"

#include <argp.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *argp_program_version = "perfolio-symbolize " PERFOLIO_VERSION;

enum { EXIT_FAILED = 1, EXIT_USAGE = 2 };

struct settings {
    const char *file;
    const char *table;
    const char *alternate;
    const char *splits[SYMBOL_BUILDER_SPLIT_MAX];
    uint32_t split_count;
    uint64_t memory_mib;
    uint64_t cpu_s;
    bool is_first_names;
    bool is_packed;
    bool is_quiet;
};

static const struct argp_option options[] = {
    {"output", 'o', "TABLE", 0, "write the symbol table to TABLE (required)", 0},
    {"alternate", 'a', "FILE", 0, "the shared file of dwz that .gnu_debugaltlink names", 0},
    {"dwo", 'd', "FILE", 0, "a split file (.dwo) or a package of them (.dwp); may be repeated", 0},
    {"symbols-only", 's', NULL, 0, "read only functions, not DWARF; takes milliseconds", 0},
    {"packed", 'p', NULL, 0, "write the packed form, about half the size", 0},
    {"max-memory", 'm', "MIB", 0, "limit of memory (default 4096)", 0},
    {"max-cpu", 'c', "SECONDS", 0, "limit of CPU time (default 60)", 0},
    {"quiet", 'q', NULL, 0, "do not print a summary", 0},
    {0},
};

static uint64_t parse_number(struct argp_state *state, const char *text, uint64_t most)
{
    char *end;
    unsigned long long number = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || !number || number > most)
        argp_error(state, "%s must be a whole number from 1 to %llu", text,
                   (unsigned long long)most);
    return number;
}

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
    struct settings *settings = state->input;
    switch (key) {
    case 'o':
        settings->table = argument;
        return 0;
    case 'a':
        settings->alternate = argument;
        return 0;
    case 'd':
        if (settings->split_count == SYMBOL_BUILDER_SPLIT_MAX)
            argp_error(state, "at most %d split files are allowed", SYMBOL_BUILDER_SPLIT_MAX);
        settings->splits[settings->split_count++] = argument;
        return 0;
    case 'm':
        settings->memory_mib = parse_number(state, argument, 1 << 20);
        return 0;
    case 'c':
        settings->cpu_s = parse_number(state, argument, 86400);
        return 0;
    case 's':
        settings->is_first_names = true;
        return 0;
    case 'p':
        settings->is_packed = true;
        return 0;
    case 'q':
        settings->is_quiet = true;
        return 0;
    case ARGP_KEY_ARG:
        if (settings->file)
            argp_error(state, "only one file is allowed");
        settings->file = argument;
        return 0;
    case ARGP_KEY_END:
        if (!settings->file || !settings->table)
            argp_error(state, "FILE and -o TABLE are required");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static enum err_code open_file(const char *path, int *ret_fd, struct err *err)
{
    /* a pipe is rejected without waiting */
    *ret_fd = os_openat(AT_FDCWD, path, O_RDONLY | O_NONBLOCK, 0);
    return *ret_fd < 0 ? err_set_errno(err, ERR_IO, "%s", path) : ERR_NONE;
}

/* Writes a temporary file first, so that the table is either complete or absent. */
static enum err_code build_to(const struct settings *settings,
                              const struct symbol_builder_options *wanted, const char *part,
                              struct symbol_builder_report *report, struct err *err)
{
    struct symbol_builder_options run = *wanted;
    fd_auto output = os_openat(AT_FDCWD, part, O_RDWR | O_CREAT | O_EXCL, 0666);
    if (output < 0)
        return err_set_errno(err, ERR_IO, "%s", part);
    run.output_fd = output;
    enum err_code code = symbol_builder_run(&run, report, err);
    if (code)
        err_add(err, "%s", settings->file);
    else if (os_renameat(AT_FDCWD, part, AT_FDCWD, settings->table) != 0)
        code = err_set_errno(err, ERR_IO, "%s", settings->table);
    if (code)
        os_unlinkat(AT_FDCWD, part);
    return code;
}

static enum err_code build_table_file(const struct settings *settings, struct arena *arena,
                                      struct symbol_builder_report *report, struct err *err)
{
    struct symbol_builder_options run = {.program = "/proc/self/exe",
                                         .alternate_fd = -1,
                                         .split_fd_count = settings->split_count,
                                         .is_first_names = settings->is_first_names,
                                         .is_packed = settings->is_packed,
                                         .memory_bytes = settings->memory_mib << 20,
                                         .cpu_s = (uint32_t)settings->cpu_s};
    int *splits = arena_new(arena, int, settings->split_count);
    enum err_code code = open_file(settings->file, &run.input_fd, err);
    if (!code && settings->alternate)
        code = open_file(settings->alternate, &run.alternate_fd, err);
    for (uint32_t i = 0; !code && i < settings->split_count; i++)
        code = open_file(settings->splits[i], &splits[i], err);
    run.split_fds = splits;
    const char *part = arena_printf(arena, "%s.part-%d", settings->table, (int)getpid());
    return code ? code : build_to(settings, &run, part, report, err);
}

static void print_report(const struct settings *settings,
                         const struct symbol_builder_report *report)
{
    if (report->warning[0])
        fprintf(stderr, "perfolio-symbolize: %s\n", report->warning);
    if (report->problem[0])
        fprintf(stderr, "perfolio-symbolize: %s: %s\n", settings->file, report->problem);
    if (!settings->is_quiet)
        printf("%s: %u functions, %u ranges, %llu bytes; %.2f s of CPU time, %llu MiB\n",
               settings->table, report->functions, report->ranges,
               (unsigned long long)report->table_bytes, (double)report->cpu_us / 1e6,
               (unsigned long long)(report->memory_bytes >> 20));
}

int main(int argc, char **argv)
{
    static const struct argp argp = {
        .options = options,
        .parser = parse_option,
        .args_doc = "FILE",
        .doc = "Builds a symbol table from an ELF file: the functions, files, lines and inlined "
               "calls of its addresses, from DWARF, Go's own table or symbols.",
    };
    if (argc > 1 && strcmp(argv[1], "--worker") == 0)
        return worker_run(argc - 2, argv + 2);
    struct settings settings = {0};
    struct symbol_builder_report report;
    struct err err;
    argp_err_exit_status = EXIT_USAGE;
    if (argp_parse(&argp, argc, argv, 0, NULL, &settings) != 0)
        return EXIT_USAGE;
    arena_auto arena = arena_create();
    if (build_table_file(&settings, arena, &report, &err)) {
        fprintf(stderr, "perfolio-symbolize: %s\n", err.message);
        return EXIT_FAILED;
    }
    print_report(&settings, &report);
    return 0;
}
