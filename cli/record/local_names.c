#include "cli/record/local_names.h"

#include "cli/record/delay_notice.h"
#include "cli/record/mapped_files.h"
#include "cli/symbols.h"
#include "lib/base/arena.h"
#include "lib/base/digest.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/base/os.h"
#include "lib/base/parallel.h"
#include "lib/profile/symbolize.h"
#include "lib/symbols/symbol_address.h"

#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FAILURES_SHOWN = 5 };
enum { ID_TEXT_BYTES = 2 * SYMBOL_ID_MAX_BYTES + 1, NAME_MAX_BYTES = 1 << 20 };
#define PROGRESS_TEXT "looking for names of functions"

/* Limit for all open tables; above it a table is closed once its mapping is symbolized. */
#define TABLES_MAX_BYTES (UINT64_C(96) << 20)

/* The table of a binary, or the failure to build it: built once, used for each mapping of the
 * binary. */
struct known_table {
    struct span build_id;
    struct span file;
    struct symbol_table *table; /* NULL: no names */
    bool is_built;              /* false: not built yet, or closed again */
    bool is_reported;           /* failure and warning were printed */
    struct err failure;         /* ERR_NONE: built */
    char *path;                 /* of the file with the table */
    struct symbol_builder_report report;
    struct known_table *next;
};

struct local_names {
    struct cli *cli;
    struct mapped_files *files; /* or NULL */
    enum local_names_use use;
    uint32_t failure_count;
    bool is_off; /* perfolio-symbolize is not installed */
    struct known_table *tables;
    atomic_uint_fast64_t table_bytes; /* of open tables */
};

/* The state of one thread that looks for the table of one binary. Only immutable data is shared. */
struct search {
    const struct local_names *local;
    struct span build_id;
    struct span file;
    struct arena *arena;
    struct err failure;
    const char *path; /* the file that report describes */
    struct symbol_builder_report report;
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

static struct symbol_table *open_path(struct search *search, const char *path)
{
    struct symbol_table *table = NULL;
    struct err err;
    if (access(path, R_OK))
        return NULL;
    search->path = path;
    if (symbols_open(search->local->cli, path, NULL, &search->report, &table, &err)) {
        search->failure = err;
        return NULL;
    }
    return table;
}

static struct symbol_table *try_file(struct search *search, const char *path)
{
    struct symbol_table *table = open_path(search, path);
    if (!table || has_id(table, search->build_id))
        return table;
    symbol_table_close(table);
    return NULL;
}

static struct symbol_table *open_descriptor(struct search *search, int fd, const char *path)
{
    struct symbol_table *table = NULL;
    struct err err;
    search->path = path;
    if (symbols_open_program(search->local->cli, fd, path, &search->report, &table, &err)) {
        search->failure = err;
        return NULL;
    }
    return table;
}

static void fail_search(struct search *search, const char *path, const char *why)
{
    err_set(&search->failure, ERR_CONFLICT, "%s: %s", path, why);
}

/* Opens the file only if it is the recorded one: wrong names would not be noticed. */
static struct symbol_table *open_unchanged(struct search *search, const char *path)
{
    fd_auto fd = -1;
    struct mapped_files *files = search->local->files;
    const enum mapped_file_state state =
        files ? mapped_files_find(files, search->build_id, span_text(path), &fd) : MAPPED_FILE_NONE;
    if (state == MAPPED_FILE_OPEN)
        return open_descriptor(search, fd, path);
    if (search->build_id.size)
        return try_file(search, path);
    if (state == MAPPED_FILE_AT_PATH)
        return open_path(search, path);
    if (state == MAPPED_FILE_CHANGED)
        fail_search(search, path, "it was changed while it was recorded");
    if (state == MAPPED_FILE_SEVERAL)
        fail_search(
            search, path,
            "it was replaced while it was recorded and has no build id to distinguish the files: "
            "link it with --build-id");
    return NULL;
}

static struct symbol_table *open_by_id(struct search *search)
{
    const struct span id = search->build_id;
    if (id.size <= 2 || id.size >= ID_TEXT_BYTES)
        return NULL;
    const char *path =
        arena_printf(search->arena, "/usr/lib/debug/.build-id/%.2s/%.*s.debug",
                     (const char *)id.data, (int)id.size - 2, (const char *)id.data + 2);
    return try_file(search, path);
}

/*
 * Opens the debug file that the debug link of the binary names, in the folders that gdb searches:
 * that of the binary, its subfolder .debug, and the same folder below /usr/lib/debug. Its build id
 * must be equal. The report of the binary's own table contains the name.
 */
static struct symbol_table *open_linked(struct search *search, const char *path)
{
    char real[PATH_MAX];
    static const char *const folders[][2] = {{"", ""}, {"", ".debug/"}, {"/usr/lib/debug", ""}};
    const struct symbol_builder_report of_binary = search->report;
    struct symbol_table *table = NULL;
    if (!search->build_id.size || !of_binary.debug_link[0] ||
        !span_equal_text(search->build_id, of_binary.id) || !realpath(path, real))
        return NULL;
    char *own_name = strrchr(real, '/') + 1;
    const bool is_itself = strcmp(own_name, of_binary.debug_link) == 0;
    *own_name = 0;
    for (size_t i = is_itself ? 1 : 0; !table && i < sizeof(folders) / sizeof(*folders); i++)
        table = try_file(search, arena_printf(search->arena, "%s%s%s%s", folders[i][0], real,
                                              folders[i][1], of_binary.debug_link));
    return table;
}

static bool has_dwarf(const struct symbol_table *table)
{
    return table && symbol_table_facts(table)->quality & SYMBOL_HAS_DWARF;
}

static struct symbol_table *build_table(struct search *search)
{
    if (search->local->is_off)
        return NULL;
    struct symbol_table *table = open_by_id(search);
    if (table || !search->file.size || search->file.data[0] != '/')
        return table;
    search->report = (struct symbol_builder_report){0};
    const char *path = arena_strndup(search->arena, search->file.data, search->file.size);
    table = open_unchanged(search, path);
    if (has_dwarf(table))
        return table;
    const struct symbol_builder_report of_binary = search->report;
    struct symbol_table *linked = open_linked(search, path);
    if (!linked) {
        search->report = of_binary;
        search->path = path;
        return table;
    }
    search->failure.code = ERR_NONE;
    symbol_table_close(table);
    return linked;
}

static uint64_t bytes_of(const struct symbol_table *table)
{
    return table ? symbol_table_sizes(table).bytes : 0;
}

/* May run in any thread, because it changes only *known and the atomic table_bytes. */
static void build_known(struct local_names *local, struct known_table *known)
{
    arena_auto arena = arena_create();
    struct search search = {
        .local = local, .build_id = known->build_id, .file = known->file, .arena = arena};
    known->table = build_table(&search);
    known->failure = search.failure;
    known->report = search.report;
    known->path = search.path ? mem_strdup(search.path) : NULL;
    known->is_built = true;
    atomic_fetch_add(&local->table_bytes, bytes_of(known->table));
}

/* Reports the first FAILURES_SHOWN failures; a host may have hundreds of files without names. */
static void report_failure(struct local_names *local, struct known_table *known)
{
    struct terminal *terminal = &local->cli->terminal;
    if (known->is_reported)
        return;
    known->is_reported = true;
    if (known->failure.code && local->failure_count++ < FAILURES_SHOWN)
        terminal_note(terminal, "no names from %s", known->failure.message);
    if (known->table && known->path)
        symbols_warn(local->cli, known->path, &known->report);
}

static void close_known(struct local_names *local, struct known_table *known)
{
    atomic_fetch_sub(&local->table_bytes, bytes_of(known->table));
    symbol_table_close(known->table);
    mem_free(known->path);
    known->table = NULL;
    known->path = NULL;
    known->is_built = false;
}

static struct known_table *find_known(struct local_names *local, struct span build_id,
                                      struct span file)
{
    for (struct known_table *known = local->tables; known; known = known->next) {
        if (span_equal(known->build_id, build_id) && span_equal(known->file, file))
            return known;
    }
    struct known_table *known = arena_new(local->cli->arena, struct known_table, 1);
    *known = (struct known_table){.build_id = copy(local->cli->arena, build_id),
                                  .file = copy(local->cli->arena, file),
                                  .next = local->tables};
    local->tables = known;
    return known;
}

static struct known_table *find_table(struct local_names *local,
                                      const struct symbolize_query *query)
{
    struct known_table *known = find_known(local, query->build_id, query->file);
    if (!known->is_built) {
        struct delay_notice *slow = delay_notice_begin(&local->cli->terminal, PROGRESS_TEXT);
        build_known(local, known);
        delay_notice_end(slow);
    }
    report_failure(local, known);
    return known;
}

/* ---- several tables in parallel ---- */

struct job {
    struct known_table *known;
    uint32_t address_count;
};

struct jobs {
    struct local_names *local;
    struct job *jobs;
    size_t count;
    pthread_mutex_t lock; /* protects done and the terminal */
    size_t done;
};

/* Orders by number of addresses: the largest take longest and matter most. */
static int compare_jobs(const void *a, const void *b)
{
    const uint32_t left = ((const struct job *)a)->address_count;
    const uint32_t right = ((const struct job *)b)->address_count;
    return (left < right) - (left > right);
}

static void do_job(void *context, size_t i)
{
    struct jobs *jobs = context;
    struct local_names *local = jobs->local;
    /* Above the limit, tables are built when their mapping is queried. */
    if (atomic_load(&local->table_bytes) < TABLES_MAX_BYTES)
        build_known(local, jobs->jobs[i].known);
    pthread_mutex_lock(&jobs->lock);
    terminal_progress_count(&local->cli->terminal, PROGRESS_TEXT, "files", ++jobs->done,
                            jobs->count);
    pthread_mutex_unlock(&jobs->lock);
}

static enum err_code prepare_binaries(void *context, const struct symbolize_binary *binaries,
                                      uint32_t count, struct err *err)
{
    (void)err;
    arena_auto arena = arena_create();
    struct local_names *local = context;
    struct jobs jobs = {.local = local, .jobs = arena_new(arena, struct job, count)};
    for (uint32_t i = 0; i < count; i++) {
        struct known_table *known = find_known(local, binaries[i].build_id, binaries[i].file);
        size_t at = 0; /* a binary may have several mappings */
        while (at < jobs.count && jobs.jobs[at].known != known)
            at++;
        if (known->is_built)
            continue;
        jobs.jobs[at].known = known;
        jobs.jobs[at].address_count += binaries[i].address_count;
        jobs.count += at == jobs.count;
    }
    if (!jobs.count)
        return ERR_NONE;
    if (local->use == LOCAL_NAMES_REPORTED)
        fprintf(stderr, PROGRESS_TEXT " in %zu files\n", jobs.count);
    qsort(jobs.jobs, jobs.count, sizeof(*jobs.jobs), compare_jobs);
    pthread_mutex_init(&jobs.lock, NULL);
    terminal_progress_count(&local->cli->terminal, PROGRESS_TEXT, "files", 0, jobs.count);
    parallel_for(jobs.count, do_job, &jobs);
    terminal_progress_end(&local->cli->terminal);
    pthread_mutex_destroy(&jobs.lock);
    return ERR_NONE;
}

/* During a recording (record --top), several files may have been at one path. */
static bool is_still_one(struct local_names *local, const struct symbolize_query *query)
{
    fd_auto fd = -1;
    return query->build_id.size || !local->files ||
           mapped_files_find(local->files, query->build_id, query->file, &fd) !=
               MAPPED_FILE_SEVERAL;
}

/* ---- results ---- */

/* Returns false for a frame without a name. */
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
    symbol_name_format_append(&name, SYMBOL_NAME_FORMAT_SIMPLE, &shown);
    frame->function = copy(arena, buf_span(&shown));
    frame->system_name = copy(arena, name.linkage);
    if (found->file != SYMBOL_NONE && !symbol_names_file(names, found->file, &file, &ignored))
        frame->file = copy(arena, file);
    frame->line = found->line;
    return frame->function.size;
}

static void find_frames(struct symbol_cursor *cursor, struct symbol_names *names, uint64_t address,
                        struct arena *arena, struct symbolize_frames *ret_frames)
{
    const uint32_t count = symbol_cursor_find(cursor, address);
    struct symbolize_frame *frames = arena_new(arena, struct symbolize_frame, count);
    uint32_t made = 0;
    for (uint32_t i = 0; i < count; i++)
        made += read_frame(&cursor->frames[i], names, arena, &frames[made]);
    *ret_frames = (struct symbolize_frames){.frames = frames, .count = made};
}

static enum err_code resolve_addresses(void *context, const struct symbolize_query *query,
                                       struct arena *arena, struct symbolize_frames *results,
                                       struct err *err)
{
    (void)err;
    struct local_names *local = context;
    struct known_table *known = find_table(local, query);
    const struct symbol_table *table = known->table;
    if (!table || !is_still_one(local, query))
        return ERR_NONE;
    const struct profile_mapping *from = query->mapping;
    const struct symbol_mapping mapping = {
        .start = from->start, .limit = from->limit, .offset = from->offset};
    struct symbol_names *names = symbol_names_create(table);
    struct symbol_cursor cursor;
    symbol_cursor_init(&cursor, table);
    for (uint32_t i = 0; i < query->address_count; i++) {
        /* The query has offsets in the file. */
        const uint64_t mapped = query->addresses[i] + mapping.start - mapping.offset;
        uint64_t address;
        if (symbol_address_find(table, &mapping, mapped, &address) != SYMBOL_ADDRESS_NONE)
            find_frames(&cursor, names, address, arena, &results[i]);
    }
    symbol_names_destroy(names);
    if (local->use != LOCAL_NAMES_LIVE && atomic_load(&local->table_bytes) > TABLES_MAX_BYTES)
        close_known(local, known);
    return ERR_NONE;
}

struct local_names *local_names_create(struct cli *cli, struct mapped_files *files,
                                       enum local_names_use use)
{
    struct local_names *names = mem_new(struct local_names, 1);
    struct err err;
    names->cli = cli;
    names->files = files;
    names->use = use;
    names->is_off = symbol_builder_check(NULL, &err) != ERR_NONE;
    if (names->is_off)
        terminal_warn(&cli->terminal, "native functions have no names: %s", err.message);
    return names;
}

void local_names_destroy(struct local_names *names)
{
    if (!names)
        return;
    if (names->failure_count > FAILURES_SHOWN)
        terminal_note(&names->cli->terminal, "no function names from %u more files",
                      names->failure_count - FAILURES_SHOWN);
    for (struct known_table *known = names->tables; known; known = known->next)
        close_known(names, known);
    mem_free(names);
}

enum err_code local_names_symbolize(struct local_names *names, const struct profile *profile,
                                    struct arena *arena, struct profile *ret_named,
                                    struct local_names_counts *ret_counts, struct err *err)
{
    const struct symbolize_resolver resolver = {
        .context = names, .prepare = prepare_binaries, .resolve = resolve_addresses};
    struct symbolize_counts counts = {0};
    const enum err_code code =
        symbolize_profile(&resolver, SYMBOLIZE_UNNAMED, profile, arena, ret_named, &counts, err);
    ret_counts->address_count = counts.address_count;
    ret_counts->unknown_count = counts.unknown_count;
    return code;
}
