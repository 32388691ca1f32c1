#include "debuginfod/dwarf_scopes.h"

#include "debuginfod/dwarf_entry.h"
#include "debuginfod/dwarf_line.h"
#include "debuginfod/dwarf_names.h"
#include "lib/base/mem.h"
#include "lib/base/vec.h"
#include "lib/symbols/symbol_table_writer.h"

#include <stdlib.h>

/* ---- scanning the entries ---- */

struct entry_scan {
    struct dwarf_unit *unit;
    const struct code_map *code;
    struct symbol_table_writer *writer;
    struct dwarf_scopes *scopes;
    struct cursor cursor;
    unsigned depth;
    unsigned function_depth; /* of the outermost open function; 0: none */
    /* the node that entries of each depth are inlined into */
    uint32_t nodes[DWARF_MAX_NESTING + 1];
};

static void paint_ranges(struct dwarf_scopes *scopes, uint32_t node)
{
    for (uint32_t i = 0; i < scopes->ranges.count; i++) {
        vec_reserve(scopes->painted, scopes->painted_capacity, scopes->painted_count + 1);
        scopes->painted[scopes->painted_count] =
            (struct dwarf_scope){.begin = scopes->ranges.ranges[i].begin,
                                 .end = scopes->ranges.ranges[i].end,
                                 .order = (uint32_t)scopes->painted_count,
                                 .node = node};
        scopes->painted_count++;
    }
}

static bool read_function(struct entry_scan *entry_scan, const struct dwarf_abbrev *abbrev,
                          uint32_t *ret_node)
{
    struct dwarf_entry entry;
    *ret_node = SYMBOL_NONE;
    if (!dwarf_entry_read(entry_scan->unit, abbrev, &entry_scan->cursor, &entry) ||
        !dwarf_ranges_read(entry_scan->unit, &entry.extent, entry_scan->code,
                           &entry_scan->scopes->ranges))
        return false;
    if (!entry_scan->scopes->ranges.count)
        return true; /* a declaration, an abstract function, or discarded code */
    uint32_t function = dwarf_entry_function(entry_scan->unit, &entry, entry_scan->writer);
    *ret_node = symbol_table_writer_node(entry_scan->writer, SYMBOL_NONE, function, SYMBOL_NONE, 0);
    paint_ranges(entry_scan->scopes, *ret_node);
    return true;
}

static bool read_call(struct entry_scan *entry_scan, const struct dwarf_abbrev *abbrev,
                      uint32_t *ret_node)
{
    struct dwarf_entry entry;
    uint32_t parent = entry_scan->nodes[entry_scan->depth];
    *ret_node = parent;
    if (parent == SYMBOL_NONE)
        return dwarf_entry_skip(entry_scan->unit, abbrev, &entry_scan->cursor);
    if (!dwarf_entry_read(entry_scan->unit, abbrev, &entry_scan->cursor, &entry) ||
        !dwarf_ranges_read(entry_scan->unit, &entry.extent, entry_scan->code,
                           &entry_scan->scopes->ranges))
        return false;
    if (!entry_scan->scopes->ranges.count && !abbrev->has_children)
        return true;
    uint32_t function = dwarf_entry_function(entry_scan->unit, &entry, entry_scan->writer);
    uint32_t file = dwarf_lines_file(entry_scan->unit, entry.call_file, entry_scan->writer);
    uint32_t node =
        symbol_table_writer_node(entry_scan->writer, parent, function, file, entry.call_line);
    if (node == SYMBOL_NONE)
        return true; /* without a name, or too deep: the code counts for its caller */
    *ret_node = node;
    paint_ranges(entry_scan->scopes, node);
    return true;
}

static bool is_type(uint16_t tag)
{
    return tag == DW_TAG_class_type || tag == DW_TAG_structure_type || tag == DW_TAG_union_type ||
           tag == DW_TAG_enumeration_type || tag == DW_TAG_subroutine_type ||
           tag == DW_TAG_array_type;
}

/* Skips a type with all its children if it has a sibling attribute. In C++ most entries are in
 * types; those outside of functions contain no code, and reading them would be a fifth of the
 * work. */
static bool skip_type(struct entry_scan *entry_scan, const struct dwarf_abbrev *abbrev,
                      bool *ret_is_skipped)
{
    const struct dwarf_unit *unit = entry_scan->unit;
    const struct dwarf_attribute *attribute = dwarf_attributes(unit, abbrev);
    const uint8_t *info = unit->file->sections[DWARF_INFO].data;
    struct dwarf_value value;
    *ret_is_skipped = false;
    for (uint32_t i = 0; i < abbrev->attribute_count; i++) {
        if (!dwarf_value_read(unit, &attribute[i], &entry_scan->cursor, &value))
            return false;
        if (attribute[i].name != DW_AT_sibling || value.kind != DWARF_VALUE_REFERENCE)
            continue;
        *ret_is_skipped =
            value.number > (uint64_t)(entry_scan->cursor.next - info) && value.number < unit->end;
        if (*ret_is_skipped) {
            entry_scan->cursor.next = info + value.number;
            return true;
        }
    }
    return true;
}

static bool read_entry(struct entry_scan *entry_scan, const struct dwarf_abbrev *abbrev)
{
    uint32_t node = entry_scan->nodes[entry_scan->depth];
    bool is_good, is_skipped = false;
    if (abbrev->has_children && is_type(abbrev->tag) && !entry_scan->function_depth &&
        !entry_scan->unit->has_code_in_types)
        is_good = skip_type(entry_scan, abbrev, &is_skipped);
    else if (abbrev->tag == DW_TAG_subprogram)
        is_good = read_function(entry_scan, abbrev, &node);
    else if (abbrev->tag == DW_TAG_inlined_subroutine)
        is_good = read_call(entry_scan, abbrev, &node);
    else
        is_good = dwarf_entry_skip(entry_scan->unit, abbrev, &entry_scan->cursor);
    if (!is_good)
        return false;
    if (abbrev->has_children && !is_skipped) {
        if (entry_scan->depth == DWARF_MAX_NESTING)
            return false;
        entry_scan->nodes[++entry_scan->depth] = node;
        if (abbrev->tag == DW_TAG_subprogram && !entry_scan->function_depth)
            entry_scan->function_depth = entry_scan->depth;
    }
    return true;
}

static bool scan_entries(struct entry_scan *entry_scan)
{
    while (entry_scan->cursor.next < entry_scan->cursor.end) {
        uint64_t code = cursor_uleb(&entry_scan->cursor);
        if (!code) {
            if (entry_scan->depth == 0 || --entry_scan->depth == 0)
                break; /* the end of the unit; only padding follows */
            if (entry_scan->depth < entry_scan->function_depth)
                entry_scan->function_depth = 0;
            continue;
        }
        const struct dwarf_abbrev *abbrev = dwarf_abbrev_find(entry_scan->unit->abbrevs, code);
        if (!abbrev || !read_entry(entry_scan, abbrev))
            return false;
        if (entry_scan->depth == 0)
            break; /* a unit without children */
    }
    return !entry_scan->cursor.has_failed;
}

/* ---- painting ---- */

static int compare_begins(const void *a, const void *b)
{
    const struct dwarf_scope *left = a, *right = b;
    if (left->begin != right->begin)
        return left->begin < right->begin ? -1 : 1;
    return (left->order > right->order) - (left->order < right->order);
}

static bool is_above(const struct dwarf_scopes *scopes, uint32_t a, uint32_t b)
{
    return scopes->painted[a].order > scopes->painted[b].order;
}

static void heap_push(struct dwarf_scopes *scopes, size_t *count, uint32_t index)
{
    size_t index_in_heap = (*count)++;
    while (index_in_heap && is_above(scopes, index, scopes->heap[(index_in_heap - 1) / 2])) {
        scopes->heap[index_in_heap] = scopes->heap[(index_in_heap - 1) / 2];
        index_in_heap = (index_in_heap - 1) / 2;
    }
    scopes->heap[index_in_heap] = index;
}

static void heap_pop(struct dwarf_scopes *scopes, size_t *count)
{
    uint32_t last = scopes->heap[--*count];
    size_t index_in_heap = 0;
    for (;;) {
        size_t child = 2 * index_in_heap + 1;
        if (child >= *count)
            break;
        if (child + 1 < *count && is_above(scopes, scopes->heap[child + 1], scopes->heap[child]))
            child++;
        if (!is_above(scopes, scopes->heap[child], last))
            break;
        scopes->heap[index_in_heap] = scopes->heap[child];
        index_in_heap = child;
    }
    if (*count)
        scopes->heap[index_in_heap] = last;
}

static void add_scope(struct dwarf_scopes *scopes, uint64_t begin, uint64_t end, uint32_t node)
{
    struct dwarf_scope *last = scopes->count ? &scopes->scopes[scopes->count - 1] : NULL;
    if (last && last->end == begin && last->node == node) {
        last->end = end;
        return;
    }
    vec_reserve(scopes->scopes, scopes->capacity, scopes->count + 1);
    scopes->scopes[scopes->count++] =
        (struct dwarf_scope){.begin = begin, .end = end, .node = node};
}

/*
 * Computes the topmost scope of each address. The painted scopes are sorted by start. `at` moves
 * upwards from boundary to boundary; a heap holds the scopes that cover it, the last painted on
 * top. Each step emits the top scope up to its end or the next start, whichever comes first.
 *
 * Example: f covers 0..100, and g, inlined into f, covers 20..40. The result is f 0..20, g 20..40,
 * f 40..100.
 */
static void flatten_painted(struct dwarf_scopes *scopes)
{
    size_t next = 0, open = 0, count = scopes->painted_count;
    uint64_t at = 0;
    qsort(scopes->painted, count, sizeof(struct dwarf_scope), compare_begins);
    if (scopes->heap_capacity < count) {
        scopes->heap_capacity = count;
        scopes->heap = mem_resize(scopes->heap, count, sizeof(uint32_t));
    }
    while (next < count || open) {
        while (open && scopes->painted[scopes->heap[0]].end <= at)
            heap_pop(scopes, &open);
        if (!open && next < count && scopes->painted[next].begin > at)
            at = scopes->painted[next].begin;
        while (next < count && scopes->painted[next].begin <= at)
            heap_push(scopes, &open, (uint32_t)next++);
        while (open && scopes->painted[scopes->heap[0]].end <= at)
            heap_pop(scopes, &open);
        if (!open)
            continue;
        const struct dwarf_scope *top = &scopes->painted[scopes->heap[0]];
        uint64_t end = top->end;
        if (next < count && scopes->painted[next].begin < end)
            end = scopes->painted[next].begin;
        add_scope(scopes, at, end, top->node);
        at = end;
    }
}

bool dwarf_scopes_read(struct dwarf_unit *unit, const struct code_map *code,
                       struct symbol_table_writer *writer, struct dwarf_scopes *scopes)
{
    scopes->painted_count = scopes->count = 0;
    struct entry_scan entry_scan = {.unit = unit, .code = code, .writer = writer, .scopes = scopes};
    entry_scan.nodes[0] = SYMBOL_NONE;
    entry_scan.cursor = cursor_at(span_of(unit->file->sections[DWARF_INFO].data, (size_t)unit->end),
                                  unit->first_die);
    if (!scan_entries(&entry_scan))
        return false;
    if (scopes->painted_count)
        flatten_painted(scopes);
    return true;
}

void dwarf_scopes_fini(struct dwarf_scopes *scopes)
{
    mem_free(scopes->painted);
    mem_free(scopes->scopes);
    mem_free(scopes->heap);
    dwarf_range_list_fini(&scopes->ranges);
    *scopes = (struct dwarf_scopes){0};
}
