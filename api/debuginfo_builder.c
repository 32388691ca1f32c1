#include "api/debuginfo_builder.h"

#include "api/debuginfo_table.h"
#include "api/metrics.h"
#include "api/server.h"
#include "lib/base/os.h"
#include "lib/symbols/symbol_builder.h"

#include <sys/mman.h>
#include <sys/stat.h>

/* Of processor time, where a tenth of one is usual; by the clock four times that. */
enum { FIRST_NAMES_S = 5 };

static enum err_code publish_fd(int fd, struct debuginfo_built *table, debuginfo_publish *publish,
                                void *context, struct err *err)
{
    struct stat status;
    if (fstat(fd, &status) != 0)
        return err_set_errno(err, ERR_IO, "looking at a new symbol table");
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

static enum err_code build(int input, bool is_first_names, const struct patience *patience,
                           debuginfo_publish *publish, void *context,
                           struct symbol_builder_report *ret_report, struct err *err)
{
    fd_auto output = memfd_create("symbol table", MFD_CLOEXEC);
    if (output < 0)
        return err_set_errno(err, ERR_IO, "memfd_create");
    const struct symbol_builder_options options = {.input_fd = input,
                                                   .output_fd = output,
                                                   .alternate_fd = -1,
                                                   .is_first_names = is_first_names,
                                                   .cpu_s = is_first_names ? FIRST_NAMES_S : 0,
                                                   .output_bytes = DEBUGINFO_TABLE_MAX_BYTES,
                                                   .patience = patience};
    enum err_code code = symbol_builder_run(&options, ret_report, err);
    if (code)
        return code;
    struct debuginfo_built table = {.problem = ret_report->problem,
                                    .is_first_names = is_first_names};
    return publish_fd(output, &table, publish, context, err);
}

enum err_code debuginfo_builder_run(struct server *server, int input,
                                    const struct patience *patience, debuginfo_publish *publish,
                                    void *context, struct symbol_builder_report *ret_report,
                                    struct err *err)
{
    struct stat status;
    if (fstat(input, &status) == 0 && status.st_size >= DEBUGINFO_FIRST_NAMES_MIN_BYTES &&
        !build(input, true, patience, publish, context, ret_report, err))
        metric_add(metrics_counter(server->metrics, "perfolio_symbol_first_names_total", "",
                                   "Symbol tables of names alone that were published while the "
                                   "whole ones were built."),
                   1);
    return build(input, false, patience, publish, context, ret_report, err);
}
