#include "cli/symbols.h"

#include "lib/base/digest.h"
#include "lib/base/err.h"
#include "lib/base/os.h"
#include "lib/symbols/symbol_builder.h"
#include "lib/symbols/symbol_pack.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The largest table that is unpacked from a packed one. */
#define TABLE_MAX_BYTES ((size_t)2 << 30)

/* ---- building ---- */

/* Opens with O_NONBLOCK, because opening a pipe would otherwise wait for a writer. */
static enum err_code open_file(const char *path, int *ret_fd, struct err *err)
{
    struct stat status;
    const int fd = os_openat(AT_FDCWD, path, O_RDONLY | O_NONBLOCK, 0);
    if (fd < 0)
        return err_set_errno(err, errno == ENOENT ? ERR_NOT_FOUND : ERR_IO, "%s", path);
    if (fstat(fd, &status) || !S_ISREG(status.st_mode)) {
        os_close(fd);
        return err_set(err, ERR_INVALID,
                       S_ISDIR(status.st_mode) ? "%s is a directory: give the files in it"
                                               : "%s is not a regular file",
                       path);
    }
    *ret_fd = fd;
    return ERR_NONE;
}

void symbols_warn(struct cli *cli, const char *path, const struct symbol_builder_report *report)
{
    if (report->problem[0])
        terminal_warn(&cli->terminal, "%s: %s", path, report->problem);
    if (report->warning[0])
        terminal_warn(&cli->terminal, "%s", report->warning);
}

/* Opens dwz's shared file, whose path is relative to the folder that contains the file after
 * resolving links; -1: it does not exist. */
static int open_shared_file(const char *path, const char *name)
{
    char real[PATH_MAX], shared[2 * PATH_MAX];
    if (!realpath(path, real))
        return -1;
    *(strrchr(real, '/') + 1) = '\0';
    snprintf(shared, sizeof(shared), "%s%s", *name == '/' ? "" : real, name);
    return os_openat(AT_FDCWD, shared, O_RDONLY | O_NONBLOCK, 0); /* the path may lead to a pipe */
}

/* A pipe cannot be truncated; its reader gets the partial output and the user the warning. */
static bool is_emptied(int fd)
{
    return ftruncate(fd, 0) == 0 && lseek(fd, 0, SEEK_SET) == 0;
}

/* Prints the warnings of a successful build, or passes its report to the caller. */
static void end_report(struct cli *cli, const char *path, enum err_code code,
                       const struct symbol_builder_report *report,
                       struct symbol_builder_report *ret_report)
{
    if (ret_report)
        *ret_report = *report;
    else if (!code)
        symbols_warn(cli, path, report);
}

enum err_code symbols_build(struct cli *cli, const char *path, const char *alternate, int output_fd,
                            struct symbol_builder_report *ret_report, struct err *err)
{
    fd_auto input_fd = -1;
    fd_auto alternate_fd = -1;
    if (ret_report)
        *ret_report = (struct symbol_builder_report){0};
    enum err_code code = open_file(path, &input_fd, err);
    if (code)
        return code;
    if (alternate)
        code = open_file(alternate, &alternate_fd, err);
    if (code)
        return code;
    struct symbol_builder_options options = {
        .input_fd = input_fd, .output_fd = output_fd, .alternate_fd = alternate_fd};
    struct symbol_builder_report report;
    code = symbol_builder_run(&options, &report, err);
    /* Only the sandboxed builder reads the file. The first run reports the shared file that it
     * needs, and the second run gets that file. */
    if (!code && !alternate && report.alternate[0])
        alternate_fd = open_shared_file(path, report.alternate);
    if (!code && !alternate && alternate_fd >= 0 && is_emptied(output_fd)) {
        options.alternate_fd = alternate_fd;
        code = symbol_builder_run(&options, &report, err);
    }
    end_report(cli, path, code, &report, ret_report);
    return code ? err_add(err, "%s", path) : ERR_NONE;
}

/* Reads the build id and the debug link, which takes milliseconds, also of a file without
 * symbols. */
static enum err_code read_facts(const char *path, struct symbol_builder_report *ret_report,
                                struct err *err)
{
    fd_auto input_fd = -1;
    fd_auto memory_fd = memfd_create("symbols", MFD_CLOEXEC);
    if (memory_fd < 0)
        return err_set_errno(err, ERR_IO, "no memory for a symbol table");
    enum err_code code = open_file(path, &input_fd, err);
    if (code)
        return code;
    const struct symbol_builder_options options = {
        .input_fd = input_fd, .output_fd = memory_fd, .alternate_fd = -1, .is_first_names = true};
    code = symbol_builder_run(&options, ret_report, err);
    return code && !ret_report->id[0] ? err_add(err, "%s", path) : ERR_NONE;
}

enum err_code symbols_read_id(const char *path, char ret_id[SYMBOL_BUILDER_ID_BYTES],
                              struct err *err)
{
    struct symbol_builder_report report;
    const enum err_code code = read_facts(path, &report, err);
    if (code)
        return code;
    if (!report.id[0])
        return err_set(err, ERR_INVALID, "%s has no build id", path);
    memcpy(ret_id, report.id, sizeof(report.id));
    return ERR_NONE;
}

static enum err_code build_and_open(struct cli *cli, const char *path, const char *alternate,
                                    struct symbol_builder_report *ret_report,
                                    struct symbol_table **ret_table, struct err *err)
{
    fd_auto memory_fd = memfd_create("symbols", MFD_CLOEXEC);
    if (memory_fd < 0)
        return err_set_errno(err, ERR_IO, "no memory for a symbol table");
    enum err_code code = symbols_build(cli, path, alternate, memory_fd, ret_report, err);
    return code ? code : symbol_table_open_fd(memory_fd, ret_table, err);
}

static enum err_code unpack_and_open(int packed_fd, struct symbol_table **ret_table,
                                     struct err *err)
{
    fd_auto memory_fd = memfd_create("symbols", MFD_CLOEXEC);
    if (memory_fd < 0)
        return err_set_errno(err, ERR_IO, "no memory for a symbol table");
    buf_auto table;
    buf_init(&table, TABLE_MAX_BYTES);
    const enum err_code code = symbol_unpack_fd(packed_fd, &table, err);
    if (code)
        return code;
    if (os_write_all(memory_fd, table.data, table.size) != 0)
        return err_set_errno(err, ERR_IO, "no memory for a symbol table");
    return symbol_table_open_fd(memory_fd, ret_table, err);
}

enum err_code symbols_open_fd(int fd, struct symbol_table **ret_table, struct err *err)
{
    const enum err_code code = symbol_table_open_fd(fd, ret_table, err);
    return code == ERR_INVALID ? unpack_and_open(fd, ret_table, err) : code;
}

enum err_code symbols_open(struct cli *cli, const char *path, const char *alternate,
                           struct symbol_builder_report *ret_report,
                           struct symbol_table **ret_table, struct err *err)
{
    fd_auto fd = -1;
    if (ret_report)
        *ret_report = (struct symbol_builder_report){0};
    struct symbol_table *table = NULL;
    enum err_code code = open_file(path, &fd, err);
    if (code)
        return code;
    code = symbols_open_fd(fd, &table, err);
    if (code == ERR_INVALID) {
        code = build_and_open(cli, path, alternate, ret_report, &table, err);
        if (code)
            return code;
    }
    if (!code)
        code = symbol_table_verify(table, err);
    if (code) {
        symbol_table_close(table);
        return err_add(err, "%s", path);
    }
    *ret_table = table;
    return ERR_NONE;
}

enum err_code symbols_open_program(struct cli *cli, int fd, const char *name,
                                   struct symbol_builder_report *ret_report,
                                   struct symbol_table **ret_table, struct err *err)
{
    fd_auto memory_fd = memfd_create("symbols", MFD_CLOEXEC);
    struct symbol_builder_report report = {0};
    if (ret_report)
        *ret_report = report;
    if (memory_fd < 0)
        return err_set_errno(err, ERR_IO, "no memory for a symbol table");
    const struct symbol_builder_options options = {
        .input_fd = fd, .output_fd = memory_fd, .alternate_fd = -1};
    enum err_code code = symbol_builder_run(&options, &report, err);
    if (!code)
        code = symbol_table_open_fd(memory_fd, ret_table, err);
    end_report(cli, name, code, &report, ret_report);
    return code ? err_add(err, "%s", name) : ERR_NONE;
}

/* ---- facts ---- */

static void print_id(const struct symbol_table_facts *facts)
{
    char hex[2 * SYMBOL_ID_MAX_BYTES + 1];
    digest_hex(span_of(facts->id, facts->id_bytes), hex);
    switch (facts->id_kind) {
    case SYMBOL_ID_GNU:
    case SYMBOL_ID_TEXT_HASH:
        printf("  id         %s%s\n", hex,
               facts->id_kind == SYMBOL_ID_GNU ? "" : " (hash of .text: it has no build id)");
        break;
    case SYMBOL_ID_GO:
        printf("  id         %s\n  Go's id    ",
               hex); /* the same id as text, as go tool buildid prints it */
        terminal_print_clean(stdout, span_of(facts->id, facts->id_bytes));
        putchar('\n');
        break;
    case SYMBOL_ID_NONE:
        puts("  id         none");
        break;
    }
}

static void print_quality(const struct symbol_table_facts *facts)
{
    static const struct {
        enum symbol_quality quality;
        const char *word;
    } words[] = {{SYMBOL_HAS_DWARF, "DWARF"},    {SYMBOL_HAS_GO, "Go's own table"},
                 {SYMBOL_HAS_LINES, "lines"},    {SYMBOL_HAS_INLINES, "inlined calls"},
                 {SYMBOL_HAS_SYMTAB, ".symtab"}, {SYMBOL_HAS_MINI, ".gnu_debugdata"},
                 {SYMBOL_HAS_DYNSYM, ".dynsym"}, {SYMBOL_IS_PARTIAL, "incomplete"}};
    const char *separator = "  has        ";
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (!(facts->quality & words[i].quality))
            continue;
        printf("%s%s", separator, words[i].word);
        separator = ", ";
    }
    putchar('\n');
}

void symbols_print_facts(const char *path, const struct symbol_table *table)
{
    const struct symbol_table_facts *facts = symbol_table_facts(table);
    const struct symbol_table_sizes sizes = symbol_table_sizes(table);
    terminal_print_clean(stdout, span_text(path));
    putchar('\n');
    print_id(facts);
    print_quality(facts);
    printf("  functions  %u\n  files      %u\n  addresses  0x%" PRIx64 " to 0x%" PRIx64
           ", %u records\n  table      %" PRIu64 " bytes\n",
           sizes.functions, sizes.files, sizes.first_address, sizes.end_address, sizes.records,
           sizes.bytes);
}

/* ---- addresses ---- */

static enum err_code print_frame(const struct symbol_frame *frame, struct symbol_names *names,
                                 enum symbol_name_format_mode mode, struct err *err)
{
    struct symbol_name name;
    struct span path = SPAN_LITERAL("??");
    buf_auto text;
    buf_init(&text, 2 * SYMBOL_NAME_MAX_BYTES);
    enum err_code code = symbol_names_function(names, frame->function, &name, err);
    if (code)
        return code;
    symbol_name_format_append(&name, mode, &text);
    if (text.size == 0)
        buf_append_text(&text, "??");
    if (frame->file != SYMBOL_NONE)
        code = symbol_names_file(names, frame->file, &path, err);
    if (code)
        return code;
    terminal_print_clean(stdout, buf_span(&text));
    fputs(" at ", stdout);
    terminal_print_clean(stdout, path);
    printf(":%u\n", frame->line);
    return ERR_NONE;
}

enum err_code symbols_print_address(struct symbol_cursor *cursor, struct symbol_names *names,
                                    enum symbol_name_format_mode mode, uint64_t address,
                                    struct err *err)
{
    const uint32_t count = symbol_cursor_find(cursor, address);
    printf("0x%" PRIx64 ": ", address);
    if (count == 0)
        puts("?? at ??:0");
    for (uint32_t i = 0; i < count; i++) {
        if (i)
            fputs(" (inlined by) ", stdout);
        const enum err_code code = print_frame(&cursor->frames[i], names, mode, err);
        if (code)
            return code;
    }
    return ERR_NONE;
}
