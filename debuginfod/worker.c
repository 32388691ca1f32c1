#include "debuginfod/worker.h"

#include "debuginfod/build.h"
#include "debuginfod/sandbox.h"
#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/os.h"
#include "lib/symbols/symbol_pack.h"
#include "lib/symbols/symbol_table.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    INPUT_FD = 3,
    OUTPUT_FD,
    REPORT_FD,
    FIRST_OTHER_FD,
    ARGUMENT_COUNT = 7,
    REPORT_MAX_BYTES = 4096,
};

struct start {
    struct sandbox_limits limits;
    bool has_alternate;
    bool is_first_names;
    bool is_packed;
    uint32_t split_count;
    int parent;
};

static bool read_arguments(int count, char *const *arguments, struct start *start)
{
    uint64_t numbers[ARGUMENT_COUNT];
    if (count != ARGUMENT_COUNT)
        return false;
    for (int i = 0; i < ARGUMENT_COUNT; i++) {
        if (!span_parse_u64(span_text(arguments[i]), &numbers[i]))
            return false;
    }
    start->limits = (struct sandbox_limits){
        .memory_bytes = numbers[0], .output_bytes = numbers[1], .cpu_s = (unsigned)numbers[2]};
    start->has_alternate = numbers[3] != 0;
    start->split_count = (uint32_t)numbers[4];
    start->parent = (int)numbers[5];
    start->is_first_names = numbers[6] & 1;
    start->is_packed = numbers[6] & 2;
    return numbers[2] <= INT32_MAX && numbers[4] <= BUILD_MAX_SPLIT && numbers[5] <= INT32_MAX;
}

static enum err_code map_file(int fd, struct span *ret_bytes, struct err *err)
{
    struct stat status;
    if (fstat(fd, &status) != 0)
        return err_set_errno(err, ERR_IO, "cannot look at the file");
    if (!S_ISREG(status.st_mode))
        return err_set(err, ERR_INVALID, "the input is no regular file");
    if (status.st_size == 0)
        return err_set(err, ERR_INVALID, "the file is empty");
    void *data = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED)
        return err_set_errno(err, ERR_TOO_LARGE, "the file cannot be mapped");
    *ret_bytes = span_of(data, (size_t)status.st_size);
    return ERR_NONE;
}

/* Written at once, so that it is in the pipe if the process dies. */
static void report_phase(enum build_phase phase)
{
    static const char *const lines[] = {[BUILD_HEADERS] = "phase headers\n",
                                        [BUILD_GO] = "phase go\n",
                                        [BUILD_DWARF] = "phase dwarf\n",
                                        [BUILD_SYMBOLS] = "phase symbols\n",
                                        [BUILD_TABLE] = "phase table\n"};
    if (os_write_all(REPORT_FD, lines[phase], strlen(lines[phase])) != 0)
        return; /* the reader is gone; writing the report will fail too */
}

static enum err_code map_inputs(const struct start *start, struct span *splits,
                                struct build_inputs *inputs, struct err *err)
{
    int next_fd = FIRST_OTHER_FD;
    *inputs = (struct build_inputs){.split_files = splits,
                                    .is_mapped = true,
                                    .begin = report_phase,
                                    .is_first_names = start->is_first_names};
    enum err_code code = map_file(INPUT_FD, &inputs->file, err);
    if (!code && start->has_alternate)
        code = map_file(next_fd++, &inputs->alternate, err);
    for (uint32_t i = 0; !code && i < start->split_count; i++)
        code = map_file(next_fd++, &splits[inputs->split_file_count++], err);
    return code;
}

/* Replaces the table with its packed form, unless it cannot be packed. */
static enum err_code pack_table(struct buf *table, struct err *err)
{
    struct symbol_table *opened;
    buf_auto packed;
    buf_init(&packed, table->max_size);
    enum err_code code = symbol_table_open(buf_span(table), &opened, err);
    if (code)
        return code;
    code = symbol_pack(opened, &packed, err);
    symbol_table_close(opened);
    if (!code) {
        buf_clear(table);
        buf_append_span(table, buf_span(&packed));
    }
    return code == ERR_TOO_LARGE ? ERR_NONE : code;
}

/* Also for a file without names: it may be stored for debuggers. */
static void report_id(const struct symbol_table_facts *facts, struct buf *report)
{
    if (facts->id_bytes)
        buf_append_text(report, "id ");
    for (uint32_t i = 0; i < facts->id_bytes; i++)
        buf_printf(report, "%02x", facts->id[i]);
    if (facts->id_bytes)
        buf_append_byte(report, '\n');
}

static enum err_code build_and_report(const struct start *start, const struct build_inputs *inputs,
                                      struct buf *report, struct err *err)
{
    struct build_report result;
    buf_auto table;
    buf_init(&table, (size_t)start->limits.output_bytes);
    enum err_code code = build_table(inputs, &table, &result, err);
    report_id(&result.facts, report);
    if (result.debug_link[0])
        buf_printf(report, "debug_link %s\n", result.debug_link);
    if (!code && start->is_packed)
        code = pack_table(&table, err);
    if (!code && os_write_all(OUTPUT_FD, table.data, table.size) != 0)
        code = err_set_errno(err, ERR_IO, "writing the symbol table");
    if (code)
        return code;
    buf_printf(report, "quality %u\nbroken_units %u\nfunctions %u\nranges %u\ntable_bytes %zu\n",
               result.facts.quality, result.facts.broken_units, result.counts.functions,
               result.counts.ranges, table.size);
    if (result.problem[0])
        buf_printf(report, "problem %s\n", result.problem);
    if (result.alternate[0])
        buf_printf(report, "alternate %s\n", result.alternate);
    for (uint32_t i = 0; i < result.alternate_id_bytes; i++)
        buf_printf(report, "%s%02x%s", i ? "" : "alternate_id ", result.alternate_id[i],
                   i + 1 == result.alternate_id_bytes ? "\n" : "");
    return ERR_NONE;
}

/* Files are mapped before the sandbox is entered and read inside it. */
static enum err_code run_build(const struct start *start, struct buf *report, struct err *err)
{
    struct span splits[BUILD_MAX_SPLIT];
    struct build_inputs inputs;
    const char *warning = NULL;
    enum err_code code = map_inputs(start, splits, &inputs, err);
    if (!code)
        code = sandbox_enter(&start->limits, &warning, err);
    if (warning)
        buf_printf(report, "warning %s\n", warning);
    return code ? code : build_and_report(start, &inputs, report, err);
}

/* If memory runs out, the kernel ends this process before any other. */
static void prefer_to_be_ended(void)
{
    static const char score[] = "1000";
    const int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd >= 0)
        (void)!write(fd, score, sizeof(score) - 1);
    os_close(fd);
}

int worker_run(int argument_count, char *const *arguments)
{
    struct start start;
    struct err err;
    if (!read_arguments(argument_count, arguments, &start))
        return 2;
    /* The process that requested the table has ended. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != start.parent)
        return 2;
    prefer_to_be_ended();
    buf_auto report;
    buf_init(&report, REPORT_MAX_BYTES);
    enum err_code code = run_build(&start, &report, &err);
    if (code)
        buf_printf(&report, "failed %s %s\n", err_code_name(code), err.message);
    else
        buf_append_text(&report, "done\n");
    return os_write_all(REPORT_FD, report.data, report.size) != 0 ? 2 : code ? 1 : 0;
}
