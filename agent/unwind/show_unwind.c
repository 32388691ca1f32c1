#include "agent/unwind/show_unwind.h"

#include "agent/unwind/unwind_names.h"
#include "agent/unwind/unwind_table.h"
#include "lib/base/err.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

struct printer {
    FILE *out;
    const struct unwind_table *table;
    bool is_arm64;
    bool as_json;
    bool has_row;
};

static const char *machine_name(const struct unwind_table *table)
{
    return table->machine == EM_AARCH64 ? "arm64" : "x86-64";
}

static const char *section_name(const struct unwind_table *table)
{
    if (!table->facts.frames.function_count)
        return ".gopclntab";
    return table->facts.frames.is_debug_frame ? ".debug_frame" : ".eh_frame";
}

/* File names are any bytes: those that are not printable ASCII are written as \u00XX. */
static void print_json_text(FILE *out, const char *text)
{
    fputc('"', out);
    for (; *text; text++) {
        unsigned char byte = (unsigned char)*text;
        if (byte < 0x20 || byte >= 0x7f)
            fprintf(out, "\\u%04x", byte);
        else if (byte == '"' || byte == '\\')
            fprintf(out, "\\%c", byte);
        else
            fputc(byte, out);
    }
    fputc('"', out);
}

static void print_row(void *context, uint64_t address, const struct cfi_rule *rule)
{
    struct printer *printer = context;
    char text[UNWIND_RULE_TEXT_BYTES];
    unwind_rule_text(rule, printer->is_arm64, text);
    if (printer->as_json)
        fprintf(printer->out, "%s\n[\"%" PRIx64 "\",\"%s\"]", printer->has_row ? "," : "", address,
                text);
    else
        fprintf(printer->out, "%16" PRIx64 "  %s\n", address, text);
    printer->has_row = true;
}

/* Prints a count that is not 0. */
static void print_count(const struct printer *printer, const char *name, uint32_t count,
                        bool *is_first)
{
    if (!count)
        return;
    if (printer->as_json)
        fprintf(printer->out, "%s\"%s\":%u", *is_first ? "" : ",", name, count);
    else
        fprintf(printer->out, "%s%s %u", *is_first ? "" : ", ", name, count);
    *is_first = false;
}

static void print_problems(const struct printer *printer)
{
    bool is_first = true;
    for (unsigned i = 0; i < EH_FRAME_PROBLEM_COUNT; i++)
        print_count(printer, eh_frame_problem_name((enum eh_frame_problem)i),
                    printer->table->facts.frames.problems[i], &is_first);
    if (is_first && !printer->as_json)
        fputs("none", printer->out);
}

static void print_stops(const struct printer *printer)
{
    bool is_first = true;
    for (unsigned i = 0; i < UNWIND_STOP_COUNT; i++)
        print_count(printer, unwind_stop_name((enum unwind_stop)i),
                    printer->table->facts.stop_rows[i], &is_first);
    if (is_first && !printer->as_json)
        fputs("none", printer->out);
}

static void print_json(struct printer *printer, const char *path)
{
    const struct unwind_table_facts *facts = &printer->table->facts;
    fputs("{\"path\":", printer->out);
    print_json_text(printer->out, path);
    fprintf(printer->out,
            ",\"machine\":\"%s\",\"section\":\"%s\",\"section_bytes\":%" PRIu64
            ",\"functions\":%u,\"go_functions\":%u,\"rules\":%u,\"table_bytes\":%" PRIu64
            ",\"left_out\":%u",
            machine_name(printer->table), section_name(printer->table), facts->frames.section_bytes,
            facts->frames.function_count, facts->go_function_count, facts->rule_count, facts->bytes,
            facts->left_out_count);
    fputs(",\"problems\":{", printer->out);
    print_problems(printer);
    fputs("},\"stops\":{", printer->out);
    print_stops(printer);
    fputs("},\"rows\":[", printer->out);
    unwind_table_each(printer->table, print_row, printer);
    fputs("\n]}\n", printer->out);
}

static void print_text(struct printer *printer, const char *path)
{
    const struct unwind_table_facts *facts = &printer->table->facts;
    fprintf(printer->out, "%s: %s, %" PRIu64 " bytes of %s, %u functions", path,
            machine_name(printer->table), facts->frames.section_bytes, section_name(printer->table),
            facts->frames.function_count);
    if (facts->go_function_count)
        fprintf(printer->out, ", %u of Go", facts->go_function_count);
    fputs("\n", printer->out);
    fprintf(printer->out, "table: %u rows, %u rules, %" PRIu64 " bytes", facts->row_count,
            facts->rule_count, facts->bytes);
    if (facts->left_out_count)
        fprintf(printer->out, ", %u left out for want of space", facts->left_out_count);
    fputs("\nproblems: ", printer->out);
    print_problems(printer);
    fputs("\nrows that stop: ", printer->out);
    print_stops(printer);
    fputs("\n", printer->out);
    unwind_table_each(printer->table, print_row, printer);
}

/* Opens a regular file without blocking; -1: it is none. */
static int open_file(const char *path, struct err *err)
{
    struct stat status;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        err_set_errno(err, errno == ENOENT ? ERR_NOT_FOUND : ERR_IO, "%s cannot be read", path);
        return -1;
    }
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode))
        return fd;
    close(fd);
    err_set(err, ERR_INVALID, "%s is not a regular file", path);
    return -1;
}

enum err_code show_unwind(const char *path, bool as_json, FILE *out, struct err *err)
{
    struct unwind_table *table;
    const int fd = open_file(path, err);
    if (fd < 0)
        return err->code;
    enum err_code code = unwind_table_build(fd, path, NULL, &table, err);
    close(fd);
    if (code)
        return code;
    struct printer printer = {out, table, table->machine == EM_AARCH64, as_json, false};
    if (as_json)
        print_json(&printer, path);
    else
        print_text(&printer, path);
    unwind_table_destroy(table);
    if (fflush(out) != 0 || ferror(out))
        return err_set_errno(err, ERR_IO, "the rows cannot be written");
    return ERR_NONE;
}
