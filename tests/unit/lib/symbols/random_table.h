/*
 * random_table: random symbol tables, written as a table with symbol_table_writer, and the expected
 * frames of an address as lines of text. random_table_describe finds them by a linear search of all
 * ranges, symbols_describe with the reader of the written table.
 */
#ifndef TESTS_UNIT_LIB_SYMBOLS_RANDOM_TABLE_H
#define TESTS_UNIT_LIB_SYMBOLS_RANDOM_TABLE_H

#include "lib/base/arena.h"
#include "lib/base/buf.h"
#include "lib/base/crc32c.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/symbols/symbol_names.h"
#include "lib/symbols/symbol_table.h"
#include "lib/symbols/symbol_table_format.h"
#include "lib/symbols/symbol_table_writer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* xorshift64*: the same numbers on every machine. */
static inline uint64_t random_next(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(2685821657736338717);
}
static inline uint32_t random_below(uint64_t *state, uint32_t limit)
{
    return (uint32_t)(random_next(state) >> 33) % limit;
}

struct random_shape {
    uint64_t first_address;
    uint32_t span; /* of addresses */
    uint32_t range_bytes_max;
    uint32_t files;
    uint32_t functions;
    uint32_t nodes;
    uint32_t ranges;
    uint32_t symbols;
    uint32_t line_max;
    bool is_ascending; /* ranges do not overlap, as in most binaries */
};

struct random_function {
    char linkage_name[80];
    char name[80];
    uint32_t file; /* SYMBOL_NONE: unknown, here and below */
    uint32_t line;
};

/* A function, or the inlined call of one in its parent. */
struct random_node {
    uint32_t parent;
    uint32_t function;
    uint32_t call_file;
    uint32_t call_line;
};

struct random_range {
    uint64_t begin;
    uint64_t end;
    uint32_t node;
    uint32_t file;
    uint32_t line;
};

struct random_table {
    struct random_shape shape;
    struct random_function *functions;
    struct random_node *nodes;
    struct random_range *ranges;
    struct random_range *symbols; /* node is the index of a function; no file and line */
};

static inline uint32_t random_file(uint64_t *state, const struct random_shape *shape)
{
    return random_below(state, 8) && shape->files ? random_below(state, shape->files) : SYMBOL_NONE;
}

static inline void random_functions(struct arena *arena, uint64_t *state,
                                    struct random_table *table)
{
    const struct random_shape *shape = &table->shape;
    table->functions = arena_new(arena, struct random_function, shape->functions);
    for (uint32_t i = 0; i < shape->functions; i++) {
        struct random_function *function = &table->functions[i];
        const bool is_mangled = random_below(state, 3) > 0;
        snprintf(function->name, sizeof(function->name), "space%u::function%u(int)", i % 7, i);
        snprintf(function->linkage_name, sizeof(function->linkage_name), "%s%u",
                 is_mangled ? "_ZN" : "plain", i);
        if (!is_mangled)
            snprintf(function->name, sizeof(function->name), "%s", function->linkage_name);
        function->file = random_file(state, shape);
        function->line = random_below(state, shape->line_max);
    }
}

static inline void random_nodes(struct arena *arena, uint64_t *state, struct random_table *table)
{
    const struct random_shape *shape = &table->shape;
    table->nodes = arena_new(arena, struct random_node, shape->nodes);
    uint32_t *depths = arena_new(arena, uint32_t, shape->nodes);
    for (uint32_t i = 0; i < shape->nodes; i++) {
        struct random_node *node = &table->nodes[i];
        *node = (struct random_node){.parent = SYMBOL_NONE, .call_file = SYMBOL_NONE};
        node->function = random_below(state, shape->functions);
        if (i && random_below(state, 4)) {
            const uint32_t near = i < 20 ? i : 20;
            node->parent = i - 1 - random_below(state, near);
            depths[i] = depths[node->parent] + 1;
        }
        if (depths[i] >= 30) {
            node->parent = SYMBOL_NONE;
            depths[i] = 0;
        }
        if (node->parent == SYMBOL_NONE)
            continue;
        const struct random_function *caller =
            &table->functions[table->nodes[node->parent].function];
        const bool is_usual = random_below(state, 10) > 0;
        node->call_file = is_usual ? caller->file : random_file(state, shape);
        node->call_line = is_usual ? caller->line + random_below(state, 100)
                                   : random_below(state, shape->line_max);
    }
}

static inline void random_ranges(struct arena *arena, uint64_t *state, struct random_table *table)
{
    const struct random_shape *shape = &table->shape;
    table->ranges = arena_new(arena, struct random_range, shape->ranges);
    uint64_t at = shape->first_address;
    for (uint32_t i = 0; i < shape->ranges; i++) {
        struct random_range *range = &table->ranges[i];
        at = shape->is_ascending ? at + (random_below(state, 10) ? 0 : random_below(state, 40))
                                 : shape->first_address + random_below(state, shape->span);
        range->begin = at;
        at += 1 + random_below(state, shape->range_bytes_max);
        range->end = at;
        range->node = random_below(state, 20) ? random_below(state, shape->nodes) : SYMBOL_NONE;
        range->file = random_file(state, shape);
        if (range->node != SYMBOL_NONE && random_below(state, 10))
            range->file = table->functions[table->nodes[range->node].function].file;
        range->line = random_below(state, shape->line_max);
    }
    table->symbols = arena_new(arena, struct random_range, shape->symbols);
    for (uint32_t i = 0; i < shape->symbols; i++) {
        struct random_range *symbol = &table->symbols[i];
        symbol->begin = shape->first_address + random_below(state, shape->span);
        symbol->end = symbol->begin + 1 + random_below(state, shape->range_bytes_max * 4);
        symbol->node = random_below(state, shape->functions);
    }
}

static inline void random_table_make(struct arena *arena, uint64_t *state,
                                     const struct random_shape *shape,
                                     struct random_table *ret_table)
{
    *ret_table = (struct random_table){.shape = *shape};
    random_functions(arena, state, ret_table);
    random_nodes(arena, state, ret_table);
    random_ranges(arena, state, ret_table);
}

/* ---- to a table ---- */

/* "_ZN12" is "space5::function12(int)"; the model uses the same rule. */
static inline void random_demangle(void *context, struct span linkage_name, struct buf *output)
{
    (void)context;
    if (!span_starts_with(linkage_name, "_ZN"))
        return;
    const unsigned long number = strtoul((const char *)linkage_name.data + 3, NULL, 10);
    buf_printf(output, "space%lu::function%lu(int)", number % 7, number);
}

static inline uint32_t random_write_file(struct symbol_table_writer *writer, uint32_t file)
{
    char path[64];
    if (file == SYMBOL_NONE)
        return SYMBOL_NONE;
    snprintf(path, sizeof(path), "/src/folder%u/file%u.cc", file % 5, file);
    return symbol_table_writer_file(writer, span_text(path));
}

static inline uint32_t random_write_function(struct symbol_table_writer *writer,
                                             const struct random_table *table, uint32_t number)
{
    const struct random_function *function = &table->functions[number];
    const struct symbol_function given = {.linkage_name = span_text(function->linkage_name),
                                          .name = number % 2 ? span_text(function->name)
                                                             : (struct span){0},
                                          .file = random_write_file(writer, function->file),
                                          .line = function->line};
    return symbol_table_writer_function(writer, &given);
}

static inline void random_write_all(struct symbol_table_writer *writer,
                                    const struct random_table *table)
{
    uint32_t *nodes = mem_new(uint32_t, table->shape.nodes);
    for (uint32_t i = 0; i < table->shape.nodes; i++) {
        const struct random_node *node = &table->nodes[i];
        nodes[i] = symbol_table_writer_node(
            writer, node->parent == SYMBOL_NONE ? SYMBOL_NONE : nodes[node->parent],
            random_write_function(writer, table, node->function),
            random_write_file(writer, node->call_file), node->call_line);
    }
    for (uint32_t i = 0; i < table->shape.ranges; i++) {
        const struct random_range *range = &table->ranges[i];
        symbol_table_writer_range(writer, range->begin, range->end,
                                  range->node == SYMBOL_NONE ? SYMBOL_NONE : nodes[range->node],
                                  random_write_file(writer, range->file), range->line);
    }
    for (uint32_t i = 0; i < table->shape.symbols; i++) {
        const struct random_range *symbol = &table->symbols[i];
        symbol_table_writer_symbol(writer, symbol->begin, symbol->end,
                                   span_text(table->functions[symbol->node].linkage_name));
    }
    mem_free(nodes);
}

/* Appends the bytes of the table, which depend only on the random numbers. */
static inline void random_table_write(const struct random_table *table, struct buf *output)
{
    const struct symbol_table_writer_options options = {.demangle = random_demangle};
    const struct symbol_table_facts facts = {.id_kind = SYMBOL_ID_GNU,
                                             .id_bytes = 20,
                                             .id = {1, 2, 3},
                                             .machine = 62,
                                             .quality = SYMBOL_HAS_DWARF | SYMBOL_HAS_LINES,
                                             .builder_version = 7};
    struct symbol_table_writer *writer = symbol_table_writer_create(&options);
    struct err err = {0};
    random_write_all(writer, table);
    if (symbol_table_writer_finish(writer, &facts, output, &err)) {
        fprintf(stderr, "%s\n", err.message);
        abort();
    }
    symbol_table_writer_destroy(writer);
}

/* ---- as text ---- */

static inline void random_describe_frame(struct buf *output, const char *name,
                                         const char *linkage_name, uint32_t file, uint32_t line)
{
    buf_printf(output, "%s [%s] ", name, linkage_name);
    if (file == SYMBOL_NONE)
        buf_printf(output, "?:%u\n", line);
    else
        buf_printf(output, "/src/folder%u/file%u.cc:%u\n", file % 5, file, line);
}

static inline const struct random_range *random_first_at(const struct random_range *ranges,
                                                         uint32_t count, uint64_t address)
{
    for (uint32_t i = 0; i < count; i++) {
        if (address >= ranges[i].begin && address < ranges[i].end)
            return &ranges[i];
    }
    return NULL;
}

/* One line per frame, leaf first; nothing for an unknown address. Where ranges overlap, the first
 * one counts. */
static inline void random_table_describe(const struct random_table *table, uint64_t address,
                                         struct buf *output)
{
    const struct random_range *range = random_first_at(table->ranges, table->shape.ranges, address);
    const struct random_range *symbol =
        random_first_at(table->symbols, table->shape.symbols, address);
    uint32_t file = range ? range->file : SYMBOL_NONE, line = range ? range->line : 0;
    if (range && range->node != SYMBOL_NONE) {
        for (uint32_t at = range->node; at != SYMBOL_NONE; at = table->nodes[at].parent) {
            const struct random_function *function = &table->functions[table->nodes[at].function];
            random_describe_frame(output, function->name, function->linkage_name, file, line);
            file = table->nodes[at].call_file;
            line = table->nodes[at].call_line;
        }
    } else if (symbol) {
        const struct random_function *function = &table->functions[symbol->node];
        random_describe_frame(output, function->name, function->linkage_name, file, line);
    } else if (range) {
        random_describe_frame(output, "", "", file, line);
    }
}

/* The lines of random_table_describe, found with the reader; false if a name cannot be read. */
static inline bool symbols_describe(struct symbol_cursor *cursor, struct symbol_names *names,
                                    uint64_t address, struct buf *output)
{
    const uint32_t count = symbol_cursor_find(cursor, address);
    for (uint32_t i = 0; i < count; i++) {
        const struct symbol_frame *frame = &cursor->frames[i];
        struct symbol_name name;
        struct span path = SPAN_LITERAL("?");
        struct err err;
        if (symbol_names_function(names, frame->function, &name, &err) ||
            (frame->file != SYMBOL_NONE && symbol_names_file(names, frame->file, &path, &err)))
            return false;
        buf_printf(output, "%.*s [%.*s] %.*s:%u\n", SPAN_PRINT(name.full), SPAN_PRINT(name.linkage),
                   SPAN_PRINT(path), frame->line);
    }
    return true;
}

/* Corrects the checksums of a changed table, so that readers reach the checks after them. */
static inline void symbols_seal(uint8_t *bytes, size_t size)
{
    struct symbol_table_header header;
    if (size < sizeof(header))
        return;
    memcpy(&header, bytes, sizeof(header));
    const size_t entries_offset = sizeof(header);
    if (header.section_count > (size - entries_offset) / sizeof(struct symbol_table_section_entry))
        return;
    for (uint32_t i = 0; i < header.section_count; i++) {
        struct symbol_table_section_entry entry;
        memcpy(&entry, bytes + entries_offset + i * sizeof(entry), sizeof(entry));
        const uint64_t padded = (entry.bytes + 63) / 64 * 64;
        if (entry.offset > size || padded > size - entry.offset)
            continue;
        entry.crc = crc32c(span_of(bytes + entry.offset, (size_t)padded));
        memcpy(bytes + entries_offset + i * sizeof(entry), &entry, sizeof(entry));
    }
    header.crc = 0;
    memcpy(bytes, &header, sizeof(header));
    const size_t head =
        (entries_offset + header.section_count * sizeof(struct symbol_table_section_entry) + 63) /
        64 * 64;
    if (head > size)
        return;
    header.crc = crc32c(span_of(bytes, head));
    memcpy(bytes, &header, sizeof(header));
}

#endif
