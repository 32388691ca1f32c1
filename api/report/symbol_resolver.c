#include "api/report/symbol_resolver.h"

#include "api/debuginfo/build_id.h"
#include "api/debuginfo/missing_symbols.h"
#include "api/debuginfo/symbol_status.h"
#include "api/debuginfo/symbol_tables.h"
#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/flight_cache.h"
#include "lib/base/log.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/base/vec.h"
#include "lib/profile/symbolize.h"
#include "lib/symbols/symbol_address.h"
#include "lib/symbols/symbol_names.h"
#include "lib/symbols/symbol_table.h"
#include "store/store.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static const size_t names_bytes_default = 64 << 20;
/* Limit of the cached names of one table; when it is reached, the cache of the table is emptied. */
static const size_t table_names_bytes = 4 << 20;

/* Limit of the frames and names for the addresses of one struct symbolize_query. */
static const size_t query_max_bytes = 256 << 20;

enum {
    MODE_COUNT = SYMBOL_NAME_FORMAT_NONE + 1,
    SEEN_SLOTS = 4096,
    /* The most binaries without a table that a new profile, or one view of a share, notes. Real
     * profiles have fewer; an invented one with thousands would delay the look-ups for the next
     * profiles. */
    NOTED_OF_PROFILE = 128,
};

/* How long a binary that a new profile noted is not noted again: symbol_resolver_note. */
static const int64_t seen_ns = 600 * CLOCK_NS_PER_S;

/* A recently noted binary; another one may replace it. */
struct seen {
    uint64_t hash;
    int64_t at_ns; /* 0: none */
};

/* The store's resolver for one mode of names. */
struct store_resolver {
    struct symbol_resolver *symbol_resolver;
    enum symbol_name_format_mode mode;
    struct frame_resolver resolver;
};

struct symbol_resolver {
    struct server *server;
    struct flight_cache *names; /* struct table_names by table and mode */
    struct store_resolver modes[MODE_COUNT];
    pthread_mutex_t mutex; /* guards the members below */
    struct seen seen[SEEN_SLOTS];
};

struct text_pair {
    struct span shown;
    struct span system; /* of functions */
};

/* Texts of functions or files. `indexes` maps the number of a function or file in the table to an
 * index of texts. */
struct text_list {
    struct map_u64 indexes;
    struct text_pair *texts; /* on the heap */
    uint32_t count;
    uint32_t capacity;
};

static void text_list_fini(struct text_list *list)
{
    map_u64_fini(&list->indexes);
    mem_free(list->texts);
    *list = (struct text_list){0};
}

static const struct text_pair *text_list_find(const struct text_list *list, uint32_t number)
{
    const uint32_t index = map_u64_find(&list->indexes, number);
    return index == MAP_ABSENT ? NULL : &list->texts[index];
}

static struct span copy_text(struct arena *arena, struct span text)
{
    return text.size ? span_of(arena_strndup(arena, text.data, text.size), text.size)
                     : (struct span){0};
}

static struct text_pair copy_pair(struct arena *arena, const struct text_pair *text)
{
    return (struct text_pair){.shown = copy_text(arena, text->shown),
                              .system = copy_text(arena, text->system)};
}

static void text_list_add(struct text_list *list, uint32_t number, struct text_pair text)
{
    vec_reserve(list->texts, list->capacity, list->count + 1);
    list->texts[list->count] = text;
    map_u64_add(&list->indexes, number, list->count++);
}

/* ---- cached names of a table ---- */

struct table_names {
    pthread_mutex_t mutex;
    struct arena *arena;
    struct text_list functions;
    struct text_list files;
};

static void table_names_destroy(void *value)
{
    struct table_names *names = value;
    text_list_fini(&names->functions);
    text_list_fini(&names->files);
    arena_destroy(names->arena);
    pthread_mutex_destroy(&names->mutex);
    mem_free(names);
}

static enum err_code table_names_make(void *context, void **ret_value, size_t *ret_bytes,
                                      struct err *err)
{
    (void)context, (void)err;
    struct table_names *names = mem_new(struct table_names, 1);
    pthread_mutex_init(&names->mutex, NULL);
    names->arena = arena_create();
    *ret_value = names;
    *ret_bytes = table_names_bytes;
    return ERR_NONE;
}

/* Called with names->mutex held. */
static void table_names_empty_if_full(struct table_names *names)
{
    const size_t lists = ((size_t)names->functions.capacity + names->files.capacity) *
                         (sizeof(struct text_pair) + 2 * sizeof(struct map_u64_slot));
    if (arena_bytes(names->arena) + lists < table_names_bytes)
        return;
    text_list_fini(&names->functions);
    text_list_fini(&names->files);
    arena_destroy(names->arena);
    names->arena = arena_create();
}

/* ---- one request ---- */

struct resolver_context {
    struct symbol_resolver *symbol_resolver;
    int64_t tenant_id;
    enum symbol_name_format_mode mode;
    bool has_process_mappings; /* queries contain the mapping of a process (shares) */
    uint64_t max_bytes;        /* the limit of memory for the names of a share */
    atomic_uint noted;         /* binaries of a share without a table that were noted */
    bool is_incomplete;        /* a table was refused */
};

struct resolution {
    const struct resolver_context *resolver_context;
    struct symbol_tables_ref ref;
    struct flight_entry *entry;
    struct symbol_names *expanded; /* NULL until a text is not cached */
    struct arena *arena;           /* for results */
    struct text_list functions;    /* of this request, in arena */
    struct text_list files;
    struct symbol_cursor cursor;
};

static enum err_code read_function(struct resolution *resolution, uint32_t function,
                                   struct buf *shown, struct text_pair *ret_text, struct err *err)
{
    struct symbol_name name;
    enum err_code code = symbol_names_function(resolution->expanded, function, &name, err);
    if (code)
        return code;
    symbol_name_format_append(&name, resolution->resolver_context->mode, shown);
    *ret_text = (struct text_pair){.shown = buf_span(shown), .system = name.linkage};
    return ERR_NONE;
}

/* Reads a text from the cache, or from the table. Called with names->mutex held. */
static enum err_code read_text(struct resolution *resolution, struct table_names *names,
                               bool is_function, uint32_t number, struct text_pair *ret_text,
                               struct err *err)
{
    struct text_list *cached = is_function ? &names->functions : &names->files;
    const struct text_pair *known = text_list_find(cached, number);
    if (known) {
        *ret_text = copy_pair(resolution->arena, known);
        return ERR_NONE;
    }
    if (!resolution->expanded)
        resolution->expanded = symbol_names_create(resolution->ref.table);
    buf_auto shown;
    buf_init(&shown, 1 << 20);
    struct text_pair text = {0};
    enum err_code code = is_function
                             ? read_function(resolution, number, &shown, &text, err)
                             : symbol_names_file(resolution->expanded, number, &text.shown, err);
    if (code)
        return code;
    *ret_text = copy_pair(resolution->arena, &text);
    table_names_empty_if_full(names);
    text_list_add(cached, number, copy_pair(names->arena, &text));
    return ERR_NONE;
}

/* Returns the text of a function or file, or an empty one if it cannot be read, since the rest of
 * the table may be valid. */
static struct text_pair find_text(struct resolution *resolution, bool is_function, uint32_t number)
{
    struct text_list *list = is_function ? &resolution->functions : &resolution->files;
    struct text_pair text = {0};
    struct err ignored;
    if (number == SYMBOL_NONE)
        return text;
    const struct text_pair *known = text_list_find(list, number);
    if (known)
        return *known;
    struct table_names *names = flight_cache_get(resolution->entry);
    pthread_mutex_lock(&names->mutex);
    if (read_text(resolution, names, is_function, number, &text, &ignored))
        text = (struct text_pair){0};
    pthread_mutex_unlock(&names->mutex);
    text_list_add(list, number, text);
    return text;
}

/* Names a frame without a function FILE:LINE; empty: the file is not known either. */
static struct span name_of_line(struct arena *arena, const struct symbolize_frame *frame)
{
    if (!frame->file.size)
        return (struct span){0};
    return span_text(arena_printf(arena, "%.*s:%" PRId64, SPAN_PRINT(frame->file), frame->line));
}

static void resolve_address(struct resolution *resolution, uint32_t count,
                            struct symbolize_frames *ret_frames)
{
    struct symbolize_frame *frames = arena_new(resolution->arena, struct symbolize_frame, count);
    uint32_t made = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct symbol_frame *found = &resolution->cursor.frames[i];
        const struct text_pair function = find_text(resolution, true, found->function);
        struct symbolize_frame frame = {
            .function = function.shown,
            .system_name = function.system,
            .file = find_text(resolution, false, found->file).shown,
            .line = found->line,
        };
        if (!frame.function.size)
            frame.function = name_of_line(resolution->arena, &frame);
        if (frame.function.size)
            frames[made++] = frame;
    }
    *ret_frames = (struct symbolize_frames){.frames = frames, .count = made};
}

/*
 * Converts an offset of struct symbolize_query to an address in the binary.
 *
 * - In a share whose mapping has a range, the offset is converted to the address in the process,
 *   and that with the mapping to the address in the binary. Returns false if the table has no such
 *   address.
 * - In the store, the offset is one in the file, as if the file were mapped from 0.
 * - In a share whose mapping has no range, and for an offset of the store that the table does not
 *   have, the offset is taken as the address in the binary, as in programs that are not relocated.
 */
static bool find_address(const struct resolution *resolution, const struct profile_mapping *mapping,
                         uint64_t offset, uint64_t *ret_address)
{
    const struct symbol_table *table = resolution->ref.table;
    struct symbol_mapping from = {.limit = UINT64_MAX};
    const bool has_range = mapping && mapping->limit > mapping->start;
    if (has_range && resolution->resolver_context->has_process_mappings) {
        from = (struct symbol_mapping){
            .start = mapping->start, .limit = mapping->limit, .offset = mapping->offset};
        offset += mapping->start - mapping->offset;
    }
    if ((has_range || !resolution->resolver_context->has_process_mappings) &&
        symbol_address_find(table, &from, offset, ret_address) != SYMBOL_ADDRESS_NONE)
        return true;
    *ret_address = offset;
    return !has_range;
}

/* An address of a table may have hundreds of frames with names of 16 KiB. */
static enum err_code resolve_addresses(struct resolution *resolution,
                                       const struct symbolize_query *query,
                                       struct symbolize_frames *ret_frames, struct err *err)
{
    const size_t max_bytes = arena_bytes(resolution->arena) + query_max_bytes;
    symbol_cursor_init(&resolution->cursor, resolution->ref.table);
    for (uint32_t i = 0; i < query->address_count; i++) {
        uint64_t address;
        if (arena_bytes(resolution->arena) > max_bytes)
            return err_set(err, ERR_TOO_LARGE,
                           "the names of %u addresses in a symbol table have more than %zu MiB",
                           query->address_count, query_max_bytes >> 20);
        if (!find_address(resolution, query->mapping, query->addresses[i], &address))
            continue;
        const uint32_t count = symbol_cursor_find(&resolution->cursor, address);
        if (count)
            resolve_address(resolution, count, &ret_frames[i]);
    }
    return ERR_NONE;
}

/* If a page of the table could not be read during the lookups, the names may be wrong. The binary
 * then gets no names in this result, and its names are removed from the caches. */
static void discard_if_unreadable(struct resolution *resolution,
                                  const struct symbolize_query *query, const char *names_key,
                                  struct symbolize_frames *ret_frames)
{
    struct symbol_resolver *symbol_resolver = resolution->resolver_context->symbol_resolver;
    struct err err;
    if (!symbol_table_check(resolution->ref.table, &err))
        return;
    log_event(LOG_ERROR, "the names of a symbol table are left out", "key=%s err=\"%s\"",
              resolution->ref.key, err.message);
    memset(ret_frames, 0, query->address_count * sizeof(*ret_frames));
    flight_cache_forget(symbol_resolver->names, names_key);
    symbol_tables_forget_opened(symbol_resolver->server, &resolution->ref);
}

static enum err_code resolve_from_table(struct resolution *resolution,
                                        const struct symbolize_query *query,
                                        struct symbolize_frames *ret_frames, struct err *err)
{
    struct symbol_resolver *symbol_resolver = resolution->resolver_context->symbol_resolver;
    char key[SYMBOL_TABLES_KEY_BYTES + 16];
    snprintf(key, sizeof(key), "%s %d", resolution->ref.key,
             (int)resolution->resolver_context->mode);
    enum err_code code = flight_cache_ref(symbol_resolver->names, key, table_names_make, NULL,
                                          &resolution->entry, err);
    if (code)
        return code;
    code = resolve_addresses(resolution, query, ret_frames, err);
    discard_if_unreadable(resolution, query, key, ret_frames);
    symbol_names_destroy(resolution->expanded);
    text_list_fini(&resolution->functions);
    text_list_fini(&resolution->files);
    flight_cache_unref(resolution->entry);
    return code;
}

static enum err_code resolve(void *context, const struct symbolize_query *query,
                             struct arena *arena, struct symbolize_frames *ret_frames,
                             struct err *err)
{
    struct resolver_context *resolver_context = context;
    struct server *server = resolver_context->symbol_resolver->server;
    struct resolution *resolution = mem_new(struct resolution, 1);
    resolution->resolver_context = resolver_context;
    resolution->arena = arena;
    enum err_code code = ERR_NONE;
    if (query->build_id.size)
        code = symbol_tables_ref(server, resolver_context->tenant_id, query->build_id,
                                 &resolution->ref, err);
    /* Ignores a table that cannot be read. ERR_DATABASE and ERR_BUSY may be temporary and are
     * returned. */
    if (resolution->ref.is_refused)
        resolver_context->is_incomplete = true;
    else if (code && code != ERR_DATABASE && code != ERR_BUSY)
        code = ERR_NONE;
    else if (!code && resolution->ref.table)
        code = resolve_from_table(resolution, query, ret_frames, err);
    else if (!code && atomic_load(&resolver_context->noted) < NOTED_OF_PROFILE) {
        const struct build_id_binary binary = {.build_id = query->build_id, .file = query->file};
        atomic_fetch_add(&resolver_context->noted,
                         missing_symbols_note(server, resolver_context->tenant_id, &binary, 1));
    }
    symbol_tables_unref(&resolution->ref);
    mem_free(resolution);
    return code;
}

static enum err_code prepare(void *context, const struct symbolize_binary *binaries, uint32_t count,
                             struct err *err)
{
    const struct resolver_context *resolver_context = context;
    struct build_id_binary *query = mem_new(struct build_id_binary, count);
    for (uint32_t i = 0; i < count; i++)
        query[i] = (struct build_id_binary){.build_id = binaries[i].build_id};
    const enum err_code code = symbol_tables_prepare(
        resolver_context->symbol_resolver->server, resolver_context->tenant_id, query, count, err);
    mem_free(query);
    return code;
}

/* ---- the store and shares ---- */

static uint64_t store_generation(void *context, int64_t tenant_id)
{
    const struct store_resolver *store_resolver = context;
    return symbol_tables_version(store_resolver->symbol_resolver->server, tenant_id) * MODE_COUNT +
           store_resolver->mode;
}

static enum err_code store_prepare(void *context, int64_t tenant_id,
                                   const struct symbolize_binary *binaries, uint32_t count,
                                   struct err *err)
{
    const struct store_resolver *store_resolver = context;
    struct resolver_context resolver_context = {.symbol_resolver = store_resolver->symbol_resolver,
                                                .tenant_id = tenant_id};
    return prepare(&resolver_context, binaries, count, err);
}

static enum err_code store_resolve(void *context, const struct frame_query *query,
                                   struct arena *arena, struct symbolize_frames *ret_frames,
                                   struct err *err)
{
    const struct store_resolver *store_resolver = context;
    struct resolver_context resolver_context = {.symbol_resolver = store_resolver->symbol_resolver,
                                                .tenant_id = query->tenant_id,
                                                .mode = store_resolver->mode};
    const struct symbolize_query unmapped_query = {.build_id = query->build_id,
                                                   .file = query->file,
                                                   .addresses = query->addresses,
                                                   .address_count = query->address_count};
    const enum err_code code = resolve(&resolver_context, &unmapped_query, arena, ret_frames, err);
    *query->is_incomplete |= resolver_context.is_incomplete;
    return code;
}

struct symbol_resolver *symbol_resolver_create(struct server *server, size_t max_bytes)
{
    struct symbol_resolver *symbol_resolver = mem_new(struct symbol_resolver, 1);
    symbol_resolver->server = server;
    pthread_mutex_init(&symbol_resolver->mutex, NULL);
    symbol_resolver->names =
        flight_cache_create(max_bytes ? max_bytes : names_bytes_default, table_names_destroy);
    for (int mode = 0; mode < MODE_COUNT; mode++) {
        struct store_resolver *store_resolver = &symbol_resolver->modes[mode];
        *store_resolver = (struct store_resolver){.symbol_resolver = symbol_resolver,
                                                  .mode = (enum symbol_name_format_mode)mode};
        store_resolver->resolver = (struct frame_resolver){.context = store_resolver,
                                                           .generation = store_generation,
                                                           .prepare = store_prepare,
                                                           .resolve = store_resolve};
    }
    return symbol_resolver;
}

void symbol_resolver_destroy(struct symbol_resolver *symbol_resolver)
{
    if (!symbol_resolver)
        return;
    flight_cache_destroy(symbol_resolver->names);
    pthread_mutex_destroy(&symbol_resolver->mutex);
    mem_free(symbol_resolver);
}

const struct frame_resolver *symbol_resolver_resolver(const struct symbol_resolver *symbol_resolver,
                                                      enum symbol_name_format_mode mode)
{
    return &symbol_resolver->modes[mode].resolver;
}

static enum err_code check_memory(void *context, size_t bytes, struct err *err)
{
    const struct resolver_context *resolver_context = context;
    return bytes <= resolver_context->max_bytes
               ? ERR_NONE
               : err_set(err, ERR_TOO_LARGE,
                         "the names of the profile need more than %" PRIu64 " MiB of memory",
                         resolver_context->max_bytes >> 20);
}

enum err_code symbol_resolver_profile(struct symbol_resolver *symbol_resolver, int64_t tenant_id,
                                      enum symbol_name_format_mode mode,
                                      const struct profile *profile, uint64_t max_bytes,
                                      struct arena *arena, struct profile *ret_named,
                                      bool *ret_is_incomplete, struct err *err)
{
    struct resolver_context resolver_context = {.symbol_resolver = symbol_resolver,
                                                .tenant_id = tenant_id,
                                                .mode = mode,
                                                .has_process_mappings = true,
                                                .max_bytes = max_bytes};
    const struct symbolize_resolver resolver = {.context = &resolver_context,
                                                .prepare = prepare,
                                                .resolve = resolve,
                                                .check_memory = check_memory};
    struct symbolize_counts counts = {0};
    const enum err_code code = symbolize_profile(&resolver, SYMBOLIZE_WITHOUT_LINES, profile, arena,
                                                 ret_named, &counts, err);
    *ret_is_incomplete = resolver_context.is_incomplete;
    return code;
}

static bool was_seen(struct symbol_resolver *symbol_resolver, int64_t tenant_id,
                     struct span build_id)
{
    uint64_t hash = UINT64_C(14695981039346656037) ^ (uint64_t)tenant_id; /* FNV-1a */
    for (size_t i = 0; i < build_id.size; i++)
        hash = (hash ^ build_id.data[i]) * UINT64_C(1099511628211);
    const int64_t now_ns = clock_monotonic_ns();
    struct seen *slot = &symbol_resolver->seen[hash % SEEN_SLOTS];
    pthread_mutex_lock(&symbol_resolver->mutex);
    const bool is_known = slot->at_ns && slot->hash == hash && now_ns - slot->at_ns < seen_ns;
    if (!is_known)
        *slot = (struct seen){.hash = hash, .at_ns = now_ns};
    pthread_mutex_unlock(&symbol_resolver->mutex);
    return is_known;
}

void symbol_resolver_note(struct symbol_resolver *symbol_resolver, int64_t tenant_id,
                          const struct profile *profile)
{
    arena_auto scratch = arena_create();
    const struct symbolize_binary *binaries;
    const uint32_t count = symbolize_find_binaries(profile, scratch, &binaries);
    struct build_id_binary *unseen = arena_new(scratch, struct build_id_binary, count);
    struct err ignored;
    uint32_t unseen_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (binaries[i].build_id.size &&
            !was_seen(symbol_resolver, tenant_id, binaries[i].build_id))
            unseen[unseen_count++] = (struct build_id_binary){.build_id = binaries[i].build_id,
                                                              .file = binaries[i].file};
    }
    if (unseen_count > SYMBOLIZE_MAX_MAPPINGS)
        unseen_count = SYMBOLIZE_MAX_MAPPINGS;
    if (symbol_tables_prepare(symbol_resolver->server, tenant_id, unseen, unseen_count, &ignored))
        return;
    uint32_t noted = 0;
    for (uint32_t i = 0; i < unseen_count && noted < NOTED_OF_PROFILE; i++) {
        bool has_table;
        if (!symbol_tables_has(symbol_resolver->server, tenant_id, unseen[i].build_id, &has_table,
                               &ignored) &&
            !has_table)
            noted += missing_symbols_note(symbol_resolver->server, tenant_id, &unseen[i], 1);
    }
}

enum err_code symbol_resolver_find_states(struct server *server, int64_t tenant_id,
                                          const struct symbolize_binary *binaries, uint32_t count,
                                          struct arena *arena,
                                          const struct symbol_status **ret_states,
                                          uint32_t *ret_count, struct err *err)
{
    if (count > SYMBOL_STATUS_MAX)
        count = SYMBOL_STATUS_MAX;
    *ret_count = count;
    *ret_states = NULL;
    if (!count)
        return ERR_NONE;
    struct build_id_binary *query = arena_new(arena, struct build_id_binary, count);
    for (uint32_t i = 0; i < count; i++)
        query[i] =
            (struct build_id_binary){.build_id = binaries[i].build_id, .file = binaries[i].file};
    return symbol_status_get(server, tenant_id, query, count, arena, ret_states, err);
}
