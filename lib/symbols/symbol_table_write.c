#include "lib/symbols/symbol_table_writer.h"

#include "lib/base/digest.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/symbols/symbol_table_format.h"
#include "lib/symbols/symbol_table_writer_internal.h"

#include <xxhash.h>

enum { FIRST_CAPACITY = 256, RECENT_NODES = 1 << 15 };

/* ---- creation and destruction ---- */

struct symbol_table_writer *
symbol_table_writer_create(const struct symbol_table_writer_options *options)
{
    struct symbol_table_writer *writer = mem_new(struct symbol_table_writer, 1);
    if (options)
        writer->options = *options;
    digest_random(&writer->seed, sizeof(writer->seed));
    const enum symbol_strings_level level =
        writer->options.is_quick ? SYMBOL_STRINGS_QUICK : SYMBOL_STRINGS_SMALL;
    symbol_strings_writer_init(&writer->paths, level);
    symbol_strings_writer_init(&writer->names, level);
    writer->recent_nodes = mem_new(uint32_t, RECENT_NODES);
    /* longer names are truncated later */
    buf_init(&writer->demangled, (size_t)4 * SYMBOL_NAME_MAX_BYTES);
    return writer;
}

void symbol_table_writer_destroy(struct symbol_table_writer *writer)
{
    if (!writer)
        return;
    symbol_strings_writer_fini(&writer->paths);
    symbol_strings_writer_fini(&writer->names);
    buf_fini(&writer->demangled);
    mem_free(writer->file_slots.numbers);
    mem_free(writer->function_slots.numbers);
    mem_free(writer->recent_nodes);
    mem_free(writer->files);
    mem_free(writer->functions);
    mem_free(writer->nodes);
    mem_free(writer->node_depths);
    mem_free(writer->ranges);
    mem_free(writer->symbols);
    mem_free(writer->symbol_names);
    mem_free(writer->segments);
    mem_free(writer);
}

struct symbol_table_writer_counts
symbol_table_writer_counts(const struct symbol_table_writer *writer)
{
    return (struct symbol_table_writer_counts){.files = writer->file_count,
                                               .functions = writer->function_count,
                                               .nodes = writer->node_count,
                                               .ranges = writer->range_count,
                                               .symbols = writer->symbol_count};
}

/* ---- growing arrays ---- */

/* Makes space for one more element. Grows by half, not twofold as lib/base/vec.h does, so that
 * little memory stays unused. */
static void *grow_array(void *array, uint32_t count, uint32_t *capacity, size_t size)
{
    if (count < *capacity)
        return array;
    *capacity = *capacity < FIRST_CAPACITY ? FIRST_CAPACITY : *capacity + *capacity / 2;
    return mem_resize(array, *capacity, size);
}

/* Returns false, and stores the error, when the limit is reached. */
static bool check_limit(struct symbol_table_writer *writer, uint32_t count, uint32_t limit,
                        const char *what)
{
    if (writer->failure.code)
        return false;
    if (count >= limit)
        err_set(&writer->failure, ERR_TOO_LARGE, "more than %u %s in one binary", limit, what);
    return count < limit;
}

/* ---- finding equal items ---- */

typedef uint64_t hash_of_function(const struct symbol_table_writer *writer, uint32_t number);

static uint64_t file_hash(const struct symbol_table_writer *writer, uint32_t number)
{
    return writer->files[number].hash.low;
}

static uint64_t function_hash(const struct symbol_table_writer *writer, uint32_t number)
{
    return writer->functions[number].hash.low;
}

/* Makes space for one more than count items, keeping the table at most half full: items are
 * small and searches frequent. */
static void grow_slots(struct symbol_slots *slots, const struct symbol_table_writer *writer,
                       uint32_t count, hash_of_function *hash_of)
{
    if (slots->capacity / 2 > count)
        return;
    slots->capacity = slots->capacity ? slots->capacity * 2 : FIRST_CAPACITY;
    slots->numbers = mem_resize(slots->numbers, slots->capacity, sizeof(*slots->numbers));
    memset(slots->numbers, 0xff, slots->capacity * sizeof(*slots->numbers));
    const uint32_t mask = slots->capacity - 1;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = (uint32_t)hash_of(writer, i) & mask;
        while (slots->numbers[at] != SYMBOL_NONE)
            at = (at + 1) & mask;
        slots->numbers[at] = i;
    }
}

static bool hash_equal(struct symbol_hash a, struct symbol_hash b)
{
    return a.low == b.low && a.high == b.high;
}

/*
 * A 128-bit hash with a random seed identifies a string: an attacker cannot construct a collision,
 * and the bytes need not be kept.
 */
static struct symbol_hash hash_bytes(const struct symbol_table_writer *writer, struct span bytes)
{
    const XXH128_hash_t hash = XXH3_128bits_withSeed(bytes.data, bytes.size, writer->seed);
    return (struct symbol_hash){.low = hash.low64, .high = hash.high64};
}

/* Truncates text to limit bytes and marks the cut with an ellipsis. Returns text itself if it
 * fits. */
static struct span truncate_text(struct span text, size_t limit, struct buf *buf)
{
    if (text.size <= limit)
        return text;
    size_t size = limit - 3;
    while (size && (text.data[size] & 0xc0) == 0x80)
        size--;
    buf_clear(buf);
    buf_append(buf, text.data, size);
    buf_append_text(buf, "\u2026");
    return buf_span(buf);
}

/* ---- files ---- */

uint32_t symbol_table_writer_file(struct symbol_table_writer *writer, struct span path)
{
    if (path.size == 0 || writer->failure.code)
        return SYMBOL_NONE;
    const struct symbol_hash hash = hash_bytes(writer, path);
    grow_slots(&writer->file_slots, writer, writer->file_count, file_hash);
    const uint32_t mask = writer->file_slots.capacity - 1;
    uint32_t at = (uint32_t)hash.low & mask;
    for (uint32_t number; (number = writer->file_slots.numbers[at]) != SYMBOL_NONE;
         at = (at + 1) & mask) {
        if (hash_equal(writer->files[number].hash, hash))
            return number;
    }
    if (!check_limit(writer, writer->file_count, SYMBOL_FILE_MAX_COUNT, "files"))
        return SYMBOL_NONE;
    buf_auto cut;
    buf_init(&cut, SYMBOL_PATH_MAX_BYTES);
    symbol_strings_writer_add(&writer->paths, truncate_text(path, SYMBOL_PATH_MAX_BYTES, &cut),
                              SPAN_LITERAL(""));
    writer->files = grow_array(writer->files, writer->file_count, &writer->file_capacity,
                               sizeof(*writer->files));
    writer->files[writer->file_count] = (struct symbol_writer_file){.hash = hash};
    writer->file_slots.numbers[at] = writer->file_count;
    return writer->file_count++;
}

/* File numbers from 1; 0 for SYMBOL_NONE and for numbers that were never returned. */
static uint32_t stored_file(const struct symbol_table_writer *writer, uint32_t file)
{
    return file < writer->file_count ? file + 1 : 0;
}

static uint32_t stored_line(uint32_t line)
{
    return line <= SYMBOL_LINE_MAX ? line : 0;
}

/* ---- functions ---- */

static void add_names(struct symbol_table_writer *writer, struct span linkage_name,
                      struct span name)
{
    buf_auto cut_name, cut_linkage_name;
    buf_init(&cut_name, SYMBOL_NAME_MAX_BYTES);
    buf_init(&cut_linkage_name, SYMBOL_NAME_MAX_BYTES);
    buf_clear(&writer->demangled);
    if (name.size == 0 && writer->options.demangle && linkage_name.size) {
        writer->options.demangle(writer->options.context, linkage_name, &writer->demangled);
        name = buf_span(&writer->demangled);
    }
    if (name.size == 0)
        name = linkage_name;
    symbol_strings_writer_add(
        &writer->names, truncate_text(name, SYMBOL_NAME_MAX_BYTES, &cut_name),
        truncate_text(linkage_name, SYMBOL_NAME_MAX_BYTES, &cut_linkage_name));
}

static uint32_t add_function(struct symbol_table_writer *writer,
                             const struct symbol_function *function)
{
    const uint32_t file = stored_file(writer, function->file), line = stored_line(function->line);
    struct {
        struct symbol_hash linkage_name, name;
        uint64_t file_and_line;
    } key = {.linkage_name = hash_bytes(writer, function->linkage_name),
             .name = hash_bytes(writer, function->name),
             .file_and_line = (uint64_t)file << 32 | line};
    const struct symbol_hash hash = hash_bytes(writer, span_of(&key, sizeof(key)));
    grow_slots(&writer->function_slots, writer, writer->function_count, function_hash);
    const uint32_t mask = writer->function_slots.capacity - 1;
    uint32_t at = (uint32_t)hash.low & mask;
    for (uint32_t number; (number = writer->function_slots.numbers[at]) != SYMBOL_NONE;
         at = (at + 1) & mask) {
        if (hash_equal(writer->functions[number].hash, hash))
            return number;
    }
    if (!check_limit(writer, writer->function_count, SYMBOL_FUNCTION_MAX_COUNT, "functions"))
        return SYMBOL_NONE;
    add_names(writer, function->linkage_name, function->name);
    writer->functions = grow_array(writer->functions, writer->function_count,
                                   &writer->function_capacity, sizeof(*writer->functions));
    writer->functions[writer->function_count] =
        (struct symbol_writer_function){.hash = hash, .file = file, .line = line};
    writer->function_slots.numbers[at] = writer->function_count;
    return writer->function_count++;
}

uint32_t symbol_table_writer_function(struct symbol_table_writer *writer,
                                      const struct symbol_function *function)
{
    if (writer->failure.code || function->linkage_name.size + function->name.size == 0)
        return SYMBOL_NONE;
    return add_function(writer, function);
}

/* ---- nodes ---- */

/*
 * Equal nodes have the same parent, so they arrive close together, from one function. Only recent
 * nodes are compared, in a table that stays in the processor's cache: a table of all nodes took a
 * tenth of a whole build. The hash has no seed, so that the same input gives the same table; an
 * input with many collisions only gets a larger table.
 */
static uint32_t add_node(struct symbol_table_writer *writer, const struct symbol_writer_node *node)
{
    const uint64_t hash = XXH3_64bits(node, sizeof(*node));
    uint32_t *recent = &writer->recent_nodes[hash % RECENT_NODES];
    if (*recent < writer->node_count && !memcmp(&writer->nodes[*recent], node, sizeof(*node)))
        return *recent;
    const uint32_t depth = node->parent == SYMBOL_NONE ? 1 : writer->node_depths[node->parent] + 1u;
    if (depth > SYMBOL_DEPTH_MAX ||
        !check_limit(writer, writer->node_count, SYMBOL_NODE_MAX_COUNT, "inlined calls"))
        return SYMBOL_NONE;
    writer->nodes =
        grow_array(writer->nodes, writer->node_count, &writer->node_capacity, sizeof(*node));
    writer->node_depths = grow_array(writer->node_depths, writer->node_count,
                                     &writer->node_depth_capacity, sizeof(*writer->node_depths));
    writer->nodes[writer->node_count] = *node;
    writer->node_depths[writer->node_count] = (uint16_t)depth;
    *recent = writer->node_count;
    return writer->node_count++;
}

uint32_t symbol_table_writer_node(struct symbol_table_writer *writer, uint32_t parent,
                                  uint32_t function, uint32_t call_file, uint32_t call_line)
{
    if (writer->failure.code || function >= writer->function_count ||
        (parent != SYMBOL_NONE && parent >= writer->node_count))
        return SYMBOL_NONE;
    const bool is_root = parent == SYMBOL_NONE;
    const struct symbol_writer_node node = {.parent = parent,
                                            .function = function,
                                            .call_file =
                                                is_root ? 0 : stored_file(writer, call_file),
                                            .call_line = is_root ? 0 : stored_line(call_line)};
    return add_node(writer, &node);
}

uint32_t symbol_table_writer_root(struct symbol_table_writer *writer, struct span linkage_name)
{
    const struct symbol_function function = {.linkage_name = linkage_name, .file = SYMBOL_NONE};
    const uint32_t number = add_function(writer, &function);
    return symbol_table_writer_node(writer, SYMBOL_NONE, number, SYMBOL_NONE, 0);
}

/* ---- ranges ---- */

/* No code is 4 GiB long: such a range is an error of the file, like an empty one. */
static bool is_code(uint64_t begin, uint64_t end)
{
    return begin < end && end - begin <= UINT32_MAX;
}

void symbol_table_writer_range(struct symbol_table_writer *writer, uint64_t begin, uint64_t end,
                               uint32_t node, uint32_t file, uint32_t line)
{
    if (!is_code(begin, end) ||
        !check_limit(writer, writer->range_count, SYMBOL_RANGE_MAX_COUNT, "ranges of addresses"))
        return;
    writer->ranges = grow_array(writer->ranges, writer->range_count, &writer->range_capacity,
                                sizeof(*writer->ranges));
    writer->ranges[writer->range_count++] =
        (struct symbol_range){.begin = begin,
                              .bytes = (uint32_t)(end - begin),
                              .node = node < writer->node_count ? node : SYMBOL_NONE,
                              .file = stored_file(writer, file),
                              .line = stored_line(line)};
}

void symbol_table_writer_symbol(struct symbol_table_writer *writer, uint64_t begin, uint64_t end,
                                struct span linkage_name)
{
    if (!is_code(begin, end) || linkage_name.size == 0 ||
        !check_limit(writer, writer->symbol_count, SYMBOL_FUNCTION_MAX_COUNT, "symbols"))
        return;
    writer->symbols = grow_array(writer->symbols, writer->symbol_count, &writer->symbol_capacity,
                                 sizeof(*writer->symbols));
    writer->symbol_names = grow_array(writer->symbol_names, writer->symbol_count,
                                      &writer->symbol_name_capacity, sizeof(*writer->symbol_names));
    writer->symbol_names[writer->symbol_count] = linkage_name;
    writer->symbols[writer->symbol_count] = (struct symbol_range){
        .begin = begin, .bytes = (uint32_t)(end - begin), .node = writer->symbol_count};
    writer->symbol_count++;
}

void symbol_table_writer_segment(struct symbol_table_writer *writer,
                                 const struct symbol_segment *segment)
{
    if (!check_limit(writer, writer->segment_count, SYMBOL_SEGMENT_MAX_COUNT, "program headers"))
        return;
    writer->segments = grow_array(writer->segments, writer->segment_count,
                                  &writer->segment_capacity, sizeof(*writer->segments));
    writer->segments[writer->segment_count++] = *segment;
}
