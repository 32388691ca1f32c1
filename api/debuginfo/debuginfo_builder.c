#include "api/debuginfo/debuginfo_builder.h"

#include "api/core/memory_info.h"
#include "api/core/metrics.h"
#include "api/core/server.h"
#include "api/core/settings.h"
#include "api/debuginfo/builder_queue.h"
#include "api/debuginfo/debuginfo_table.h"
#include "lib/base/err.h"
#include "lib/base/os.h"
#include "lib/base/wait_limit.h"
#include "lib/symbols/symbol_builder.h"

#include <sys/mman.h>
#include <sys/stat.h>

/* CPU time, where a tenth of a second is usual; the limit of elapsed time is four times that. */
enum { FIRST_NAMES_S = 5, CPU_MIN_S = 10, CPU_MAX_S = 60, BYTES_PER_CPU_S = 2 << 20 };

static uint64_t file_bytes(int fd)
{
    struct stat status;
    return fd >= 0 && fstat(fd, &status) == 0 ? (uint64_t)status.st_size : 0;
}

/* The uploaded files of all teams are built one after the other (debuginfo_jobs.c), so a small file
 * must not take as long as a large one may. Real files take one second for 10 MiB or more. */
static uint32_t max_cpu_s(int input, int shared)
{
    const uint64_t seconds = CPU_MIN_S + (file_bytes(input) + file_bytes(shared)) / BYTES_PER_CPU_S;
    return seconds < CPU_MAX_S ? (uint32_t)seconds : CPU_MAX_S;
}

/* The memory that a builder may use beside its inputs, which it maps: large debug files of
 * libraries need half a gigabyte. */
static uint64_t builder_memory(const struct server *server)
{
    enum { PART = 8 };
    const uint64_t gib = UINT64_C(1) << 30;
    const uint64_t own = server->settings->max_builder_memory;
    return own ? own : memory_info_part_bytes(PART, gib, 4 * gib);
}

/* ---- builders at once ---- */

static struct builder_queue queue = BUILDER_QUEUE_EMPTY;

static bool may_wait(const struct debuginfo_reader *reader, const struct wait_limit *wait_limit)
{
    return !wait_limit_is_over(wait_limit) &&
           (!reader->may_wait || reader->may_wait(reader->context));
}

/* Builders together may use half of the memory of the host; one may always run. */
static enum err_code run_builder(const struct symbol_builder_options *options,
                                 const struct debuginfo_reader *reader,
                                 struct symbol_builder_report *ret_report, struct err *err)
{
    enum { LOOK_MS = 200 };
    struct builder_ticket ticket;
    builder_queue_join(&queue, &ticket, options->memory_bytes);
    while (!builder_queue_enter(&queue, &ticket, memory_info_total_bytes() / 2)) {
        if (!may_wait(reader, options->wait_limit)) {
            builder_queue_cancel(&queue, &ticket);
            return err_set(err, ERR_CANCELLED, "other symbol tables are being built");
        }
        wait_limit_sleep_ms(options->wait_limit, LOOK_MS);
    }
    enum err_code code = symbol_builder_run(options, ret_report, err);
    builder_queue_leave(&queue, options->memory_bytes);
    return code;
}

static enum err_code publish_fd(int fd, struct debuginfo_built *table, debuginfo_publish *publish,
                                void *context, struct err *err)
{
    struct stat status;
    if (fstat(fd, &status) != 0)
        return err_set_errno(err, ERR_IO, "reading the size of a new symbol table");
    if (status.st_size == 0)
        return err_set(err, ERR_INTERNAL, "the builder of symbol tables wrote nothing");
    const size_t size = (size_t)status.st_size;
    void *memory = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED)
        return err_set_errno(err, ERR_IO, "mapping a new symbol table");
    table->bytes = span_of(memory, size);
    enum err_code code = publish(context, table, err);
    munmap(memory, size);
    return code;
}

/* Writes into a new file at *ret_output, which the caller closes. */
static enum err_code build_into(const struct server *server, int input, int shared,
                                bool is_first_names, const struct wait_limit *wait_limit,
                                const struct debuginfo_reader *reader, int *ret_output,
                                struct symbol_builder_report *ret_report, struct err *err)
{
    *ret_output = memfd_create("symbol table", MFD_CLOEXEC);
    if (*ret_output < 0)
        return err_set_errno(err, ERR_IO, "memfd_create");
    const struct symbol_builder_options options = {
        .input_fd = input,
        .output_fd = *ret_output,
        .alternate_fd = shared,
        .is_first_names = is_first_names,
        .cpu_s = is_first_names ? FIRST_NAMES_S : max_cpu_s(input, shared),
        .memory_bytes = builder_memory(server) + file_bytes(input) + file_bytes(shared),
        .output_bytes = DEBUGINFO_TABLE_MAX_BYTES,
        .wait_limit = wait_limit};
    return run_builder(&options, reader, ret_report, err);
}

/* If the table cannot be made with the shared file, the one made without it is kept. */
static enum err_code build_with_shared(const struct server *server, int input,
                                       const struct wait_limit *wait_limit,
                                       const struct debuginfo_reader *reader, int *output,
                                       struct symbol_builder_report *report, struct err *err)
{
    struct symbol_builder_report better;
    fd_auto shared = -1, better_output = -1;
    enum err_code code = reader->find_shared(reader->context, report->alternate_id, &shared, err);
    if (code || shared < 0)
        return code;
    code =
        build_into(server, input, shared, false, wait_limit, reader, &better_output, &better, err);
    if (code)
        return code == ERR_CANCELLED ? code : ERR_NONE;
    const int old_output = *output;
    *output = better_output;
    better_output = old_output;
    *report = better;
    return ERR_NONE;
}

static enum err_code build_without_shared(const struct server *server, int input,
                                          bool is_first_names, const struct wait_limit *wait_limit,
                                          const struct debuginfo_reader *reader,
                                          struct symbol_builder_report *ret_report, struct err *err)
{
    fd_auto output = -1;
    enum err_code code =
        build_into(server, input, -1, is_first_names, wait_limit, reader, &output, ret_report, err);
    if (code)
        return code;
    if (ret_report->alternate_id[0] && reader->find_shared)
        code = build_with_shared(server, input, wait_limit, reader, &output, ret_report, err);
    if (code)
        return code;
    struct debuginfo_built table = {.problem = ret_report->problem,
                                    .is_first_names = is_first_names};
    return publish_fd(output, &table, reader->publish, reader->context, err);
}

enum err_code debuginfo_builder_run(struct server *server, int input,
                                    const struct wait_limit *wait_limit,
                                    const struct debuginfo_reader *reader,
                                    struct symbol_builder_report *ret_report, struct err *err)
{
    struct stat status;
    if (fstat(input, &status) == 0 && status.st_size >= DEBUGINFO_FIRST_NAMES_MIN_BYTES &&
        !build_without_shared(server, input, true, wait_limit, reader, ret_report, err))
        metric_add(
            metrics_counter(
                server->metrics, "perfolio_symbol_first_names_total", "",
                "Symbol tables with names only, published while the complete ones were built."),
            1);
    return build_without_shared(server, input, false, wait_limit, reader, ret_report, err);
}
