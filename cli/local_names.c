#include "cli/local_names.h"

#include "cli/kept_files.h"
#include "cli/symbols.h"
#include "lib/base/digest.h"
#include "lib/base/mem.h"
#include "lib/base/os.h"
#include "lib/profile/symbolize.h"
#include "lib/symbols/symbol_address.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FAILURES_TOLD = 5 };
enum { ID_TEXT_BYTES = 2 * SYMBOL_ID_MAX_BYTES + 1, NAME_MAX_BYTES = 1 << 20 };

/* A table that was built, or could not be: asked for once per binary, used once per mapping. */
struct known_table {
    struct span build_id;
    struct span file;
    struct symbol_table *table; /* NULL: none */
    struct known_table *next;
};

struct local_names {
    struct cli *cli;
    struct kept_files *files; /* or NULL */
    struct err failure;       /* of the binary at hand; ERR_NONE: none */
    uint32_t failure_count;
    bool is_off; /* the program that builds tables is not there */
    struct known_table *tables;
};

/* ---- tables ---- */

static struct span copy(struct arena *arena, struct span text)
{
    return text.size ? span_of(arena_strndup(arena, text.data, text.size), text.size)
                     : (struct span){0};
}

static bool has_id(const struct symbol_table *table, struct span build_id)
{
    const struct symbol_table_facts *facts = symbol_table_facts(table);
    char text[ID_TEXT_BYTES];
    if (facts->id_bytes > SYMBOL_ID_MAX_BYTES)
        return false;
    digest_hex(span_of(facts->id, facts->id_bytes), text);
    return span_equal_text(build_id, text);
}

/* A machine has hundreds of files without names: some of them tell enough. */
static void tell_failure(struct local_names *local, const struct err *err)
{
    if (local->failure_count++ < FAILURES_TOLD)
        terminal_note(&local->cli->terminal, "no names from %s", err->message);
}

static struct symbol_table *open_path(struct local_names *local, const char *path)
{
    struct symbol_table *table = NULL;
    struct err err;
    if (local->is_off || access(path, R_OK))
        return NULL;
    if (symbols_open(local->cli, path, NULL, &table, &err)) {
        local->failure = err;
        return NULL;
    }
    return table;
}

static struct symbol_table *try_file(struct local_names *local, const char *path,
                                     struct span build_id)
{
    struct symbol_table *table = open_path(local, path);
    if (!table || has_id(table, build_id))
        return table;
    symbol_table_close(table);
    return NULL;
}

static struct symbol_table *open_kept(struct local_names *local, int fd, const char *path)
{
    struct symbol_table *table = NULL;
    struct err err;
    if (symbols_open_program(local->cli, fd, path, &table, &err)) {
        local->failure = err;
        return NULL;
    }
    return table;
}

static void refuse(struct local_names *local, const char *path, const char *why)
{
    err_set(&local->failure, ERR_CONFLICT, "%s: %s", path, why);
}

/* Names of another file would be wrong ones, which nothing shows: rather none. */
static struct symbol_table *open_unchanged(struct local_names *local, const char *path,
                                           struct span build_id)
{
    fd_auto fd = -1;
    const enum kept_state state =
        local->files ? kept_files_find(local->files, build_id, span_text(path), &fd) : KEPT_NONE;
    if (local->is_off)
        return NULL;
    if (state == KEPT_OPEN)
        return open_kept(local, fd, path);
    if (build_id.size)
        return try_file(local, path, build_id);
    if (state == KEPT_AT_PATH)
        return open_path(local, path);
    if (state == KEPT_CHANGED)
        refuse(local, path, "it was changed while it was recorded");
    if (state == KEPT_SEVERAL)
        refuse(local, path,
               "it was replaced while it was recorded and has no build id to tell the files apart: "
               "link it with --build-id");
    return NULL;
}

static struct symbol_table *open_by_id(struct local_names *local, struct span id)
{
    if (id.size <= 2 || id.size >= ID_TEXT_BYTES)
        return NULL;
    const char *path =
        arena_printf(local->cli->arena, "/usr/lib/debug/.build-id/%.2s/%.*s.debug",
                     (const char *)id.data, (int)id.size - 2, (const char *)id.data + 2);
    return try_file(local, path, id);
}

/* The debug file that the binary names: beside it, in .debug, or in its folder below
 * /usr/lib/debug, as gdb has it; of the same build id alone. */
static struct symbol_table *open_linked(struct local_names *local, const char *path, struct span id)
{
    char own_id[SYMBOL_BUILDER_ID_BYTES], name[SYMBOL_BUILDER_LINK_BYTES], real[PATH_MAX];
    static const char *const places[][2] = {{"", ""}, {"", ".debug/"}, {"/usr/lib/debug", ""}};
    struct symbol_table *table = NULL;
    struct err ignored;
    if (local->is_off || !id.size || !realpath(path, real) ||
        symbols_read_link(real, own_id, name, &ignored) || !name[0] || !span_equal_text(id, own_id))
        return NULL;
    char *own_name = strrchr(real, '/') + 1;
    const bool is_itself = strcmp(own_name, name) == 0;
    *own_name = 0;
    for (size_t i = is_itself ? 1 : 0; !table && i < sizeof(places) / sizeof(*places); i++)
        table = try_file(
            local,
            arena_printf(local->cli->arena, "%s%s%s%s", places[i][0], real, places[i][1], name),
            id);
    return table;
}

static bool has_dwarf(const struct symbol_table *table)
{
    return table && symbol_table_facts(table)->quality & SYMBOL_HAS_DWARF;
}

static struct symbol_table *build_table(struct local_names *local,
                                        const struct symbolize_question *question)
{
    struct symbol_table *table = open_by_id(local, question->build_id);
    if (table || !question->file.size || question->file.data[0] != '/')
        return table;
    const char *path = arena_strndup(local->cli->arena, question->file.data, question->file.size);
    table = open_unchanged(local, path, question->build_id);
    if (has_dwarf(table))
        return table;
    struct symbol_table *linked = open_linked(local, path, question->build_id);
    if (!linked)
        return table;
    local->failure.code = ERR_NONE;
    symbol_table_close(table);
    return linked;
}

static struct symbol_table *build(struct local_names *local,
                                  const struct symbolize_question *question)
{
    local->failure.code = ERR_NONE;
    struct symbol_table *table = build_table(local, question);
    if (local->failure.code)
        tell_failure(local, &local->failure);
    return table;
}

static struct symbol_table *find_table(struct local_names *local,
                                       const struct symbolize_question *question)
{
    for (struct known_table *known = local->tables; known; known = known->next) {
        if (span_equal(known->build_id, question->build_id) &&
            span_equal(known->file, question->file))
            return known->table;
    }
    struct known_table *known = arena_new(local->cli->arena, struct known_table, 1);
    *known = (struct known_table){.build_id = copy(local->cli->arena, question->build_id),
                                  .file = copy(local->cli->arena, question->file),
                                  .table = build(local, question),
                                  .next = local->tables};
    local->tables = known;
    return known->table;
}

/* What was known as one file may be several by now, while a recording goes on (record --top). */
static bool is_still_one(struct local_names *local, const struct symbolize_question *question)
{
    fd_auto fd = -1;
    return question->build_id.size || !local->files ||
           kept_files_find(local->files, question->build_id, question->file, &fd) != KEPT_SEVERAL;
}

/* ---- answers ---- */

/* False for a frame without a name. */
static bool read_frame(const struct symbol_frame *found, struct symbol_names *names,
                       struct arena *arena, struct symbolize_frame *frame)
{
    struct err ignored;
    struct symbol_name name;
    struct span file = {0};
    buf_auto shown;
    buf_init(&shown, NAME_MAX_BYTES);
    if (symbol_names_function(names, found->function, &name, &ignored))
        return false;
    symbol_name_append(&name, SYMBOL_NAME_SIMPLE, &shown);
    frame->function = copy(arena, buf_span(&shown));
    frame->system_name = copy(arena, name.linkage);
    if (found->file != SYMBOL_NONE && !symbol_names_file(names, found->file, &file, &ignored))
        frame->file = copy(arena, file);
    frame->line = found->line;
    return frame->function.size;
}

static void answer(struct symbol_cursor *cursor, struct symbol_names *names, uint64_t address,
                   struct arena *arena, struct symbolize_frames *ret_frames)
{
    const uint32_t count = symbol_cursor_find(cursor, address);
    struct symbolize_frame *frames = arena_new(arena, struct symbolize_frame, count);
    uint32_t made = 0;
    for (uint32_t i = 0; i < count; i++)
        made += read_frame(&cursor->frames[i], names, arena, &frames[made]);
    *ret_frames = (struct symbolize_frames){.frames = frames, .count = made};
}

static enum err_code resolve(void *context, const struct symbolize_question *question,
                             struct arena *arena, struct symbolize_frames *answers, struct err *err)
{
    (void)err;
    const struct symbol_table *table = find_table(context, question);
    if (!table || !is_still_one(context, question))
        return ERR_NONE;
    const struct profile_mapping *from = question->mapping;
    const struct symbol_mapping mapping = {
        .start = from->start, .limit = from->limit, .offset = from->offset};
    struct symbol_names *names = symbol_names_create(table);
    struct symbol_cursor cursor;
    symbol_cursor_init(&cursor, table);
    for (uint32_t i = 0; i < question->address_count; i++) {
        const uint64_t placed = question->addresses[i] + mapping.start - mapping.offset;
        uint64_t address;
        if (symbol_address_find(table, &mapping, placed, &address) != SYMBOL_ADDRESS_NONE)
            answer(&cursor, names, address, arena, &answers[i]);
    }
    symbol_names_destroy(names);
    return ERR_NONE;
}

struct local_names *local_names_create(struct cli *cli, struct kept_files *files)
{
    struct local_names *names = mem_new(struct local_names, 1);
    struct err err;
    names->cli = cli;
    names->files = files;
    names->is_off = symbol_builder_check(NULL, &err) != ERR_NONE;
    if (names->is_off)
        terminal_warn(&cli->terminal, "native functions get no names here: %s", err.message);
    return names;
}

void local_names_destroy(struct local_names *names)
{
    if (!names)
        return;
    if (names->failure_count > FAILURES_TOLD)
        terminal_note(&names->cli->terminal, "no names from %u more files",
                      names->failure_count - FAILURES_TOLD);
    for (struct known_table *known = names->tables; known; known = known->next)
        symbol_table_close(known->table);
    mem_free(names);
}

enum err_code local_names_give(struct local_names *names, const struct profile *profile,
                               struct arena *arena, struct profile *ret_named,
                               struct local_names_counts *ret_counts, struct err *err)
{
    const struct symbolize_resolver resolver = {.context = names, .resolve = resolve};
    struct symbolize_counts counts = {0};
    const enum err_code code =
        symbolize_profile(&resolver, SYMBOLIZE_UNNAMED, profile, arena, ret_named, &counts, err);
    ret_counts->address_count = counts.address_count;
    ret_counts->unknown_count = counts.unknown_count;
    return code;
}
