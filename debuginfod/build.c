#include "debuginfod/build.h"

#include "debuginfod/code_map.h"
#include "debuginfod/cursor.h"
#include "debuginfod/demangle.h"
#include "debuginfod/dwarf_build.h"
#include "debuginfod/elf_input.h"
#include "debuginfod/elf_relocate.h"
#include "debuginfod/elf_symbols.h"
#include "debuginfod/go_table.h"
#include "debuginfod/mini_debuginfo.h"
#include "lib/base/arena.h"
#include "lib/base/buf.h"
#include "lib/base/err.h"

#include <elf.h>
#include <stdio.h>

struct build {
    const struct build_inputs *inputs;
    struct arena *arena;
    struct elf_input *elf;
    struct elf_input *alternate;
    struct elf_input *split_elfs[BUILD_MAX_SPLIT];
    struct dwarf_file *dwarf;
    struct dwarf_file *dwarf_alternate;
    struct dwarf_file *split_files[BUILD_MAX_SPLIT];
    uint32_t split_count;
    struct elf_input *mini;
    struct buf mini_bytes; /* the content of .gnu_debugdata; names are borrowed from it */
    struct code_map code;
    struct symbol_table_writer *writer;
    enum demangle_names names;
    struct go_result go;
    enum err_code dwarf_code; /* the error that made DWARF unreadable */
    struct build_report *report;
};

static void begin_phase(const struct build *build, enum build_phase phase)
{
    if (build->inputs->begin)
        build->inputs->begin(phase);
}

/* Adds a text to the report, and marks the table as partial. */
static void add_problem(struct build *build, const char *text)
{
    size_t length = strlen(build->report->problem);
    snprintf(build->report->problem + length, sizeof(build->report->problem) - length, "%s%s",
             length ? "; " : "", text);
    build->report->facts.quality |= SYMBOL_IS_PARTIAL;
}

static void take_id(struct build *build)
{
    static const enum symbol_id_kind kinds[] = {[ELF_ID_NONE] = SYMBOL_ID_NONE,
                                                [ELF_ID_GNU] = SYMBOL_ID_GNU,
                                                [ELF_ID_GO] = SYMBOL_ID_GO,
                                                [ELF_ID_TEXT] = SYMBOL_ID_TEXT_HASH};
    struct symbol_table_facts *facts = &build->report->facts;
    facts->id_kind = kinds[build->elf->id.kind];
    facts->id_bytes = (uint32_t)build->elf->id.size;
    memcpy(facts->id, build->elf->id.bytes, build->elf->id.size);
    facts->machine = build->elf->machine;
    facts->builder_version = BUILD_VERSION;
}

/* Tools that remove the code of a Go program shorten its segment. Restores the segment to the
 * end of the code according to Go's table. */
static void extend_to_go_code(const struct go_result *go, struct symbol_segment *segment)
{
    uint64_t end = segment->address + segment->memory_bytes;
    if (!(segment->flags & PF_X) || segment->address > go->code_begin || end >= go->code_end)
        return;
    if (segment->file_bytes == segment->memory_bytes)
        segment->file_bytes = go->code_end - segment->address;
    segment->memory_bytes = go->code_end - segment->address;
}

static void take_segments(struct build *build)
{
    for (uint32_t i = 0; i < build->elf->program_header_count; i++) {
        const struct elf_program_header *header = &build->elf->program_headers[i];
        if (header->type != PT_LOAD)
            continue;
        struct symbol_segment segment = {.offset = header->file_offset,
                                         .address = header->address,
                                         .file_bytes = header->file_bytes,
                                         .memory_bytes = header->memory_bytes,
                                         .alignment = header->alignment,
                                         .flags = header->flags};
        extend_to_go_code(&build->go, &segment);
        symbol_table_writer_segment(build->writer, &segment);
    }
}

static enum err_code open_inputs(struct build *build, struct err *err)
{
    const struct build_inputs *inputs = build->inputs;
    enum err_code code =
        elf_input_open(build->arena, inputs->file, inputs->is_mapped, &build->elf, err);
    if (code)
        return code;
    if (inputs->alternate.size) {
        code = elf_input_open(build->arena, inputs->alternate, inputs->is_mapped, &build->alternate,
                              err);
        if (code)
            return err_add(err, "the shared file of dwz");
    }
    for (uint32_t i = 0; i < inputs->split_file_count && i < BUILD_MAX_SPLIT; i++) {
        code = elf_input_open(build->arena, inputs->split_files[i], inputs->is_mapped,
                              &build->split_elfs[i], err);
        if (code)
            return err_add(err, "split file %u", i + 1);
        build->split_count++;
    }
    return ERR_NONE;
}

/* Reads the name (which ends with NUL) and the build id of dwz's shared file. */
static bool read_alternate_link(struct build *build, struct span *ret_name, struct span *ret_id)
{
    struct span bytes;
    struct err ignored;
    if (elf_input_read_name(build->elf, ".gnu_debugaltlink", &bytes, &ignored) || !bytes.size)
        return false;
    struct cursor cursor = cursor_at(bytes, 0);
    *ret_name = cursor_text(&cursor);
    *ret_id = span_of(cursor.next, cursor_left(&cursor));
    return true;
}

/* Reads .gnu_debuglink: a name that ends with NUL, and a checksum, which is ignored in favour of
 * build ids. */
static void read_debug_link(struct build *build)
{
    struct span bytes;
    struct err ignored;
    if (elf_input_read_name(build->elf, ".gnu_debuglink", &bytes, &ignored) || !bytes.size)
        return;
    struct cursor cursor = cursor_at(bytes, 0);
    const struct span name = cursor_text(&cursor);
    /* The report consists of lines. */
    if (name.size && name.size < sizeof(build->report->debug_link) &&
        !memchr(name.data, '\n', name.size) && !memchr(name.data, '/', name.size))
        memcpy(build->report->debug_link, name.data, name.size);
}

/* Checks that the shared file is the right one: offsets into a wrong file would give wrong
 * names. A stripped file may still refer to a shared file without needing it. */
static void check_alternate(struct build *build)
{
    struct span name, id;
    if (!build->dwarf->sections[DWARF_INFO].size || !read_alternate_link(build, &name, &id))
        return;
    if (!build->alternate) {
        add_problem(build,
                    "names are in a shared file of dwz that was not given (.gnu_debugaltlink)");
        /* The report consists of lines. */
        if (name.size && name.size < sizeof(build->report->alternate) &&
            !memchr(name.data, '\n', name.size))
            memcpy(build->report->alternate, name.data, name.size);
        if (id.size && id.size <= sizeof(build->report->alternate_id)) {
            memcpy(build->report->alternate_id, id.data, id.size);
            build->report->alternate_id_bytes = (uint32_t)id.size;
        }
    } else if (!span_equal(span_of(build->alternate->id.bytes, build->alternate->id.size), id)) {
        add_problem(build,
                    "names are in another shared file of dwz than the one that was given, whose "
                    "build id is not that of .gnu_debugaltlink");
        elf_input_close(build->alternate);
        build->alternate = NULL;
    }
    if (!build->alternate)
        build->report->facts.quality |= SYMBOL_LACKS_SHARED;
}

static enum err_code open_dwarf(struct build *build, struct err *err)
{
    enum err_code code = dwarf_file_open(build->arena, build->elf, false, &build->dwarf, err);
    if (code)
        return code;
    check_alternate(build);
    if (build->alternate) {
        code = dwarf_file_open(build->arena, build->alternate, false, &build->dwarf_alternate, err);
        if (code)
            return code;
        build->dwarf->alternate = build->dwarf_alternate;
    }
    for (uint32_t i = 0; i < build->split_count; i++) {
        code =
            dwarf_file_open(build->arena, build->split_elfs[i], true, &build->split_files[i], err);
        if (code)
            return code;
        if (build->split_files[i]->has_broken_index)
            add_problem(build,
                        "the index of a package of split files (.debug_cu_index) is damaged");
    }
    return ERR_NONE;
}

static void add_dwarf_problems(struct build *build, const struct dwarf_result *result)
{
    char text[ERR_MESSAGE_BYTES];
    if (result->broken_units) {
        snprintf(text, sizeof(text), "%u of %u units of its DWARF %s broken", result->broken_units,
                 result->unit_count, result->broken_units == 1 ? "is" : "are");
        add_problem(build, text);
    }
    if (result->missing_split_units) {
        snprintf(text, sizeof(text),
                 result->missing_split_units == 1
                     ? "%u unit is in a split file that was not given, %.*s"
                     : "%u units are in split files that were not given, such as %.*s",
                 result->missing_split_units,
                 result->missing_split_name.size > 200 ? 200 : (int)result->missing_split_name.size,
                 (const char *)result->missing_split_name.data);
        add_problem(build, text);
    }
}

static enum err_code add_dwarf(struct build *build, struct err *err)
{
    struct symbol_table_facts *facts = &build->report->facts;
    enum err_code code = elf_relocate(build->elf, err);
    if (!code)
        code = open_dwarf(build, err);
    if (code)
        return code;
    struct dwarf_inputs inputs = {.file = build->dwarf,
                                  .split_files = build->split_files,
                                  .split_file_count = build->split_count};
    struct dwarf_result result;
    dwarf_build(&inputs, &build->code, build->writer, &result);
    facts->broken_units = result.broken_units;
    if (result.function_ranges)
        facts->quality |= SYMBOL_HAS_DWARF | SYMBOL_HAS_INLINES;
    if (result.line_ranges)
        facts->quality |= SYMBOL_HAS_LINES;
    add_dwarf_problems(build, &result);
    if ((build->dwarf->sections[DWARF_INFO].size || build->dwarf->sections[DWARF_LINE].size) &&
        !result.function_ranges && !result.line_ranges)
        add_problem(build, "it has DWARF, but nothing could be read of it");
    return ERR_NONE;
}

/* If DWARF cannot be read, the table has only symbols, and the report the reason. */
static void add_dwarf_or_problem(struct build *build)
{
    struct err err;
    build->dwarf_code = add_dwarf(build, &err);
    if (build->dwarf_code)
        add_problem(build, err.message);
}

/* If Go's table cannot be read, DWARF and symbols are used. */
static void add_go(struct build *build)
{
    struct symbol_table_facts *facts = &build->report->facts;
    struct go_result *result = &build->go;
    struct err err;
    char text[ERR_MESSAGE_BYTES];
    enum err_code code = go_table_add(build->elf, build->writer, result, &err);
    if (code)
        add_problem(build, err.message);
    if (code || !result->function_count)
        return;
    build->names = DEMANGLE_GO;
    facts->quality |= SYMBOL_HAS_GO | SYMBOL_HAS_LINES;
    if (!result->has_unknown_calls)
        facts->quality |= SYMBOL_HAS_INLINES;
    else
        add_problem(build, "what is inlined is not in the file: its data was taken out");
    if (result->broken_functions) {
        snprintf(text, sizeof(text),
                 result->broken_functions == 1 ? "%u function of Go's table is broken"
                                               : "%u functions of Go's table are broken",
                 result->broken_functions);
        add_problem(build, text);
    }
}

/* An ELF file within the file, with symbols of the same addresses. */
static enum err_code add_mini_debuginfo(struct build *build, struct err *err)
{
    struct span packed;
    uint32_t count;
    enum err_code code = elf_input_read_name(build->elf, ".gnu_debugdata", &packed, err);
    if (code || !packed.size)
        return code;
    code = mini_debuginfo_expand(packed, &build->mini_bytes, err);
    if (code)
        return code;
    code = elf_input_open(build->arena, buf_span(&build->mini_bytes), false, &build->mini, err);
    if (code)
        return code;
    code = elf_symbols_add(build->mini, ".symtab", &build->code, build->writer, &count, err);
    if (!code && count)
        build->report->facts.quality |= SYMBOL_HAS_MINI;
    return code;
}

static enum err_code add_symbols(struct build *build, struct err *err)
{
    struct err mini_err;
    uint32_t count;
    enum err_code code =
        elf_symbols_add(build->elf, ".symtab", &build->code, build->writer, &count, err);
    if (code)
        return code;
    if (count)
        build->report->facts.quality |= SYMBOL_HAS_SYMTAB;
    if (add_mini_debuginfo(build, &mini_err))
        add_problem(build, mini_err.message);
    code = elf_symbols_add(build->elf, ".dynsym", &build->code, build->writer, &count, err);
    if (!code && count)
        build->report->facts.quality |= SYMBOL_HAS_DYNSYM;
    return code;
}

static enum err_code add_all(struct build *build, struct err *err)
{
    begin_phase(build, BUILD_HEADERS);
    enum err_code code = open_inputs(build, err);
    if (code)
        return code;
    code_map_init(&build->code, build->elf);
    take_id(build);
    read_debug_link(build);
    begin_phase(build, BUILD_GO);
    add_go(build);
    take_segments(build);
    begin_phase(build, BUILD_DWARF);
    if (!build->inputs->is_first_names)
        add_dwarf_or_problem(build);
    begin_phase(build, BUILD_SYMBOLS);
    code = add_symbols(build, err);
    if (code)
        return code;
    if (!(build->report->facts.quality & ~(uint32_t)(SYMBOL_IS_PARTIAL | SYMBOL_LACKS_SHARED))) {
        if (build->report->problem[0])
            return err_set(err, build->dwarf_code ? build->dwarf_code : ERR_INVALID, "%s",
                           build->report->problem);
        return err_set(err, ERR_NOT_FOUND, "the file names no function: it is stripped");
    }
    return ERR_NONE;
}

static void close_all(struct build *build)
{
    dwarf_file_close(build->dwarf);
    dwarf_file_close(build->dwarf_alternate);
    for (uint32_t i = 0; i < build->split_count; i++) {
        dwarf_file_close(build->split_files[i]);
        elf_input_close(build->split_elfs[i]);
    }
    elf_input_close(build->alternate);
    elf_input_close(build->mini);
    elf_input_close(build->elf);
    symbol_table_writer_destroy(build->writer);
    buf_fini(&build->mini_bytes);
}

enum err_code build_table(const struct build_inputs *inputs, struct buf *output,
                          struct build_report *ret_report, struct err *err)
{
    arena_auto arena = arena_create();
    *ret_report = (struct build_report){0};
    struct build build = {.inputs = inputs, .arena = arena, .report = ret_report};
    buf_init(&build.mini_bytes, MINI_DEBUGINFO_MAX_BYTES);
    build.writer = symbol_table_writer_create(&(struct symbol_table_writer_options){
        .demangle = demangle_name, .context = &build.names, .is_quick = inputs->is_first_names});
    enum err_code code = add_all(&build, err);
    begin_phase(&build, BUILD_TABLE);
    if (!code)
        code = symbol_table_writer_finish(build.writer, &ret_report->facts, output, err);
    ret_report->counts = symbol_table_writer_counts(build.writer);
    close_all(&build);
    return code;
}
