#include "cli/record/local_names.h"

#include "cli/record/delay_notice.h"
#include "cli/record/mapped_files.h"
#include "cli/symbols.h"
#include "lib/base/digest.h"
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

enum { FAILURES_TOLD = 5 };
enum { ID_TEXT_BYTES = 2 * SYMBOL_ID_MAX_BYTES + 1, NAME_MAX_BYTES = 1 << 20 };
#define WHAT "looking for names of functions"

/* Tables that are open take so much together; beyond it each is closed once its mapping has names.
 */
#define TABLES_MAX_BYTES (UINT64_C(96) << 20)

/* A table that was built, or could not be: asked for once per binary, used once per mapping. */
struct known_table {
    struct span build_id;
    struct span file;
    struct symbol_table *table; /* NULL: none */
    bool is_built;              /* false: not yet, or no more */
    bool is_reported;           /* failure and warning were printed */
    struct err failure;         /* ERR_NONE: none */
    char *path;                 /* of what was built; in the arena of the process */
    struct symbol_builder_report report;
    struct known_table *next;
};

struct local_names {
    struct cli *cli;
    struct mapped_files *files; /* or NULL */
    enum local_names_use use;
    uint32_t failure_count;
    bool is_off; /* the program that builds tables is not there */
    struct known_table *tables;
    atomic_uint_fast64_t table_bytes; /* of open ones */
};

/* One binary's table is looked for by one thread, which shares nothing but what does not change. */
struct search {
    const struct local_names *local;
    struct span build_id;
    struct span file;
    struct arena *arena;
    struct err failure;
    const char *path; /* of the file that report is of */
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

static struct symbol_table *open_kept(struct search *search, int fd, const char *path)
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

static void refuse(struct search *search, const char *path, const char *why)
{
    err_set(&search->failure, ERR_CONFLICT, "%s: %s", path, why);
}

/* Names of another file would be wrong ones, which nothing shows: rather none. */
static struct symbol_table *open_unchanged(struct search *search, const char *path)
{
    fd_auto fd = -1;
    struct mapped_files *files = search->local->files;
    const enum mapped_file_state state =
        files ? mapped_files_find(files, search->build_id, span_text(path), &fd) : MAPPED_FILE_NONE;
    if (state == MAPPED_FILE_OPEN)
        return open_kept(search, fd, path);
    if (search->build_id.size)
        return try_file(search, path);
    if (state == MAPPED_FILE_AT_PATH)
        return open_path(search, path);
    if (state == MAPPED_FILE_CHANGED)
        refuse(search, path, "it was changed while it was recorded");
    if (state == MAPPED_FILE_SEVERAL)
        refuse(search, path,
               "it was replaced while it was recorded and has no build id to tell the files apart: "
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

/* The debug file that the binary names: beside it, in .debug, or in its folder below
 * /usr/lib/debug, as gdb has it; of the same build id alone. The builder has read its name when it
 * built the binary's own table. */
static struct symbol_table *open_linked(struct search *search, const char *path)
{
    char real[PATH_MAX];
    static const char *const places[][2] = {{"", ""}, {"", ".debug/"}, {"/usr/lib/debug", ""}};
    const struct symbol_builder_report of_binary = search->report;
    struct symbol_table *table = NULL;
    if (!search->build_id.size || !of_binary.debug_link[0] ||
        !span_equal_text(search->build_id, of_binary.id) || !realpath(path, real))
        return NULL;
    char *own_name = strrchr(real, '/') + 1;
    const bool is_itself = strcmp(own_name, of_binary.debug_link) == 0;
    *own_name = 0;
    for (size_t i = is_itself ? 1 : 0; !table && i < sizeof(places) / sizeof(*places); i++)
        table = try_file(search, arena_printf(search->arena, "%s%s%s%s", places[i][0], real,
                                              places[i][1], of_binary.debug_link));
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

/* By any thread: of local->tables it changes known alone. */
static void build(struct local_names *local, struct known_table *known)
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

/* A machine has hundreds of files without names: some of them tell enough. */
static void report(struct local_names *local, struct known_table *known)
{
    struct terminal *terminal = &local->cli->terminal;
    if (known->is_reported)
        return;
    known->is_reported = true;
    if (known->failure.code && local->failure_count++ < FAILURES_TOLD)
        terminal_note(terminal, "no names from %s", known->failure.message);
    if (known->table && known->path)
        symbols_warn(local->cli, known->path, &known->report);
}

static void drop(struct local_names *local, struct known_table *known)
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
                                      const struct symbolize_query *question)
{
    struct known_table *known = find_known(local, question->build_id, question->file);
    if (!known->is_built) {
        struct delay_notice *slow = delay_notice_begin(&local->cli->terminal, WHAT);
        build(local, known);
        delay_notice_end(slow);
    }
    report(local, known);
    return known;
}

/* ---- several at once ---- */

struct job {
    struct known_table *known;
    uint32_t address_count;
};

struct jobs {
    struct local_names *local;
    struct job *jobs;
    size_t count;
    pthread_mutex_t lock; /* of the next, and of the terminal meanwhile */
    size_t done;
};

/* What has most addresses first: it takes longest, and is most of what is looked at. */
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
    /* What is beyond the bound is built when its mapping is asked about. */
    if (atomic_load(&local->table_bytes) < TABLES_MAX_BYTES)
        build(local, jobs->jobs[i].known);
    pthread_mutex_lock(&jobs->lock);
    terminal_progress_count(&local->cli->terminal, WHAT, "files", ++jobs->done, jobs->count);
    pthread_mutex_unlock(&jobs->lock);
}

static enum err_code prepare(void *context, const struct symbolize_binary *binaries, uint32_t count,
                             struct err *err)
{
    (void)err;
    arena_auto arena = arena_create();
    struct local_names *local = context;
    struct jobs jobs = {.local = local, .jobs = arena_new(arena, struct job, count)};
    for (uint32_t i = 0; i < count; i++) {
        struct known_table *known = find_known(local, binaries[i].build_id, binaries[i].file);
        size_t at = 0; /* mappings of one binary are asked about one after the other */
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
        fprintf(stderr, WHAT " in %zu files\n", jobs.count);
    qsort(jobs.jobs, jobs.count, sizeof(*jobs.jobs), compare_jobs);
    pthread_mutex_init(&jobs.lock, NULL);
    terminal_progress_count(&local->cli->terminal, WHAT, "files", 0, jobs.count);
    parallel_for(jobs.count, do_job, &jobs);
    terminal_progress_end(&local->cli->terminal);
    pthread_mutex_destroy(&jobs.lock);
    return ERR_NONE;
}

/* What was known as one file may be several by now, while a recording goes on (record --top). */
static bool is_still_one(struct local_names *local, const struct symbolize_query *question)
{
    fd_auto fd = -1;
    return question->build_id.size || !local->files ||
           mapped_files_find(local->files, question->build_id, question->file, &fd) !=
               MAPPED_FILE_SEVERAL;
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

static enum err_code resolve(void *context, const struct symbolize_query *question,
                             struct arena *arena, struct symbolize_frames *answers, struct err *err)
{
    (void)err;
    struct local_names *local = context;
    struct known_table *known = find_table(local, question);
    const struct symbol_table *table = known->table;
    if (!table || !is_still_one(local, question))
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
    if (local->use != LOCAL_NAMES_LIVE && atomic_load(&local->table_bytes) > TABLES_MAX_BYTES)
        drop(local, known);
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
    if (names->failure_count > FAILURES_TOLD)
        terminal_note(&names->cli->terminal, "no function names from %u more files",
                      names->failure_count - FAILURES_TOLD);
    for (struct known_table *known = names->tables; known; known = known->next)
        drop(names, known);
    mem_free(names);
}

enum err_code local_names_give(struct local_names *names, const struct profile *profile,
                               struct arena *arena, struct profile *ret_named,
                               struct local_names_counts *ret_counts, struct err *err)
{
    const struct symbolize_resolver resolver = {
        .context = names, .prepare = prepare, .resolve = resolve};
    struct symbolize_counts counts = {0};
    const enum err_code code =
        symbolize_profile(&resolver, SYMBOLIZE_UNNAMED, profile, arena, ret_named, &counts, err);
    ret_counts->address_count = counts.address_count;
    ret_counts->unknown_count = counts.unknown_count;
    return code;
}
