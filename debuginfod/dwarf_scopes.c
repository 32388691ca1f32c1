#include "debuginfod/dwarf_scopes.h"

#include "debuginfod/dwarf_entry.h"
#include "debuginfod/dwarf_line.h"
#include "debuginfod/dwarf_names.h"
#include "lib/base/mem.h"
#include "lib/symbols/symbol_table_write.h"

#include <stdlib.h>

/* ---- the walk ---- */

struct walk {
    struct dwarf_unit *unit;
    const struct code_map *code;
    struct symbol_table_writer *writer;
    struct dwarf_scopes *scopes;
    struct cursor cursor;
    unsigned depth;
    unsigned function_depth;               /* of the outermost function that is open; 0: none */
    uint32_t nodes[DWARF_MAX_NESTING + 1]; /* what entries of each depth are inlined into */
};

static void paint(struct dwarf_scopes *scopes, uint32_t node)
{
    for (uint32_t i = 0; i < scopes->ranges.count; i++) {
        if (scopes->painted_count == scopes->painted_capacity) {
            scopes->painted_capacity =
                scopes->painted_capacity ? 2 * scopes->painted_capacity : 1024;
            scopes->painted =
                mem_resize(scopes->painted, scopes->painted_capacity, sizeof(struct dwarf_scope));
        }
        scopes->painted[scopes->painted_count] =
            (struct dwarf_scope){.begin = scopes->ranges.ranges[i].begin,
                                 .end = scopes->ranges.ranges[i].end,
                                 .order = (uint32_t)scopes->painted_count,
                                 .node = node};
        scopes->painted_count++;
    }
}

static bool read_function(struct walk *walk, const struct dwarf_abbrev *abbrev, uint32_t *ret_node)
{
    struct dwarf_entry entry;
    *ret_node = SYMBOL_NONE;
    if (!dwarf_entry_read(walk->unit, abbrev, &walk->cursor, &entry) ||
        !dwarf_ranges_read(walk->unit, &entry.extent, walk->code, &walk->scopes->ranges))
        return false;
    if (!walk->scopes->ranges.count)
        return true; /* a declaration, the pattern of inlined calls, or thrown away */
    uint32_t function = dwarf_entry_function(walk->unit, &entry, walk->writer);
    *ret_node = symbol_table_writer_node(walk->writer, SYMBOL_NONE, function, SYMBOL_NONE, 0);
    paint(walk->scopes, *ret_node);
    return true;
}

static bool read_call(struct walk *walk, const struct dwarf_abbrev *abbrev, uint32_t *ret_node)
{
    struct dwarf_entry entry;
    uint32_t parent = walk->nodes[walk->depth];
    *ret_node = parent;
    if (parent == SYMBOL_NONE)
        return dwarf_entry_skip(walk->unit, abbrev, &walk->cursor);
    if (!dwarf_entry_read(walk->unit, abbrev, &walk->cursor, &entry) ||
        !dwarf_ranges_read(walk->unit, &entry.extent, walk->code, &walk->scopes->ranges))
        return false;
    if (!walk->scopes->ranges.count && !abbrev->has_children)
        return true;
    uint32_t function = dwarf_entry_function(walk->unit, &entry, walk->writer);
    uint32_t file = dwarf_lines_file(walk->unit, entry.call_file, walk->writer);
    uint32_t node = symbol_table_writer_node(walk->writer, parent, function, file, entry.call_line);
    if (node == SYMBOL_NONE)
        return true; /* without a name, or too deep: its code is its caller's */
    *ret_node = node;
    paint(walk->scopes, node);
    return true;
}

static bool is_type(uint16_t tag)
{
    return tag == DW_TAG_class_type || tag == DW_TAG_structure_type || tag == DW_TAG_union_type ||
           tag == DW_TAG_enumeration_type || tag == DW_TAG_subroutine_type ||
           tag == DW_TAG_array_type;
}

/* Moves over an entry with all below it, where it says where the next one begins. C++ has most of
 * its entries in types; those outside of functions have no code, and are a fifth of the work. */
static bool skip_type(struct walk *walk, const struct dwarf_abbrev *abbrev, bool *ret_is_skipped)
{
    const struct dwarf_unit *unit = walk->unit;
    const struct dwarf_attribute *attribute = dwarf_attributes(unit, abbrev);
    const uint8_t *info = unit->file->sections[DWARF_INFO].data;
    struct dwarf_value value;
    *ret_is_skipped = false;
    for (uint32_t i = 0; i < abbrev->attribute_count; i++) {
        if (!dwarf_value_read(unit, &attribute[i], &walk->cursor, &value))
            return false;
        if (attribute[i].name != DW_AT_sibling || value.kind != DWARF_VALUE_REFERENCE)
            continue;
        *ret_is_skipped =
            value.number > (uint64_t)(walk->cursor.next - info) && value.number < unit->end;
        if (*ret_is_skipped) {
            walk->cursor.next = info + value.number;
            return true;
        }
    }
    return true;
}

static bool read_entry(struct walk *walk, const struct dwarf_abbrev *abbrev)
{
    uint32_t node = walk->nodes[walk->depth];
    bool is_good, is_skipped = false;
    if (abbrev->has_children && is_type(abbrev->tag) && !walk->function_depth &&
        !walk->unit->has_code_in_types)
        is_good = skip_type(walk, abbrev, &is_skipped);
    else if (abbrev->tag == DW_TAG_subprogram)
        is_good = read_function(walk, abbrev, &node);
    else if (abbrev->tag == DW_TAG_inlined_subroutine)
        is_good = read_call(walk, abbrev, &node);
    else
        is_good = dwarf_entry_skip(walk->unit, abbrev, &walk->cursor);
    if (!is_good)
        return false;
    if (abbrev->has_children && !is_skipped) {
        if (walk->depth == DWARF_MAX_NESTING)
            return false;
        walk->nodes[++walk->depth] = node;
        if (abbrev->tag == DW_TAG_subprogram && !walk->function_depth)
            walk->function_depth = walk->depth;
    }
    return true;
}

static bool walk_entries(struct walk *walk)
{
    while (walk->cursor.next < walk->cursor.end) {
        uint64_t code = cursor_uleb(&walk->cursor);
        if (!code) {
            if (walk->depth == 0 || --walk->depth == 0)
                break; /* the end of the unit; what follows is padding */
            if (walk->depth < walk->function_depth)
                walk->function_depth = 0;
            continue;
        }
        const struct dwarf_abbrev *abbrev = dwarf_abbrev_find(walk->unit->abbrevs, code);
        if (!abbrev || !read_entry(walk, abbrev))
            return false;
        if (walk->depth == 0)
            break; /* a unit without children */
    }
    return !walk->cursor.has_failed;
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
    size_t place = (*count)++;
    while (place && is_above(scopes, index, scopes->heap[(place - 1) / 2])) {
        scopes->heap[place] = scopes->heap[(place - 1) / 2];
        place = (place - 1) / 2;
    }
    scopes->heap[place] = index;
}

static void heap_pop(struct dwarf_scopes *scopes, size_t *count)
{
    uint32_t last = scopes->heap[--*count];
    size_t place = 0;
    for (;;) {
        size_t child = 2 * place + 1;
        if (child >= *count)
            break;
        if (child + 1 < *count && is_above(scopes, scopes->heap[child + 1], scopes->heap[child]))
            child++;
        if (!is_above(scopes, scopes->heap[child], last))
            break;
        scopes->heap[place] = scopes->heap[child];
        place = child;
    }
    if (*count)
        scopes->heap[place] = last;
}

static void add_scope(struct dwarf_scopes *scopes, uint64_t begin, uint64_t end, uint32_t node)
{
    struct dwarf_scope *last = scopes->count ? &scopes->scopes[scopes->count - 1] : NULL;
    if (last && last->end == begin && last->node == node) {
        last->end = end;
        return;
    }
    if (scopes->count == scopes->capacity) {
        scopes->capacity = scopes->capacity ? 2 * scopes->capacity : 1024;
        scopes->scopes = mem_resize(scopes->scopes, scopes->capacity, sizeof(struct dwarf_scope));
    }
    scopes->scopes[scopes->count++] =
        (struct dwarf_scope){.begin = begin, .end = end, .node = node};
}

/* Goes through the addresses upwards; the heap has what covers the place, the last painted on top.
 */
static void flatten(struct dwarf_scopes *scopes)
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
    struct walk walk = {.unit = unit, .code = code, .writer = writer, .scopes = scopes};
    walk.nodes[0] = SYMBOL_NONE;
    walk.cursor = cursor_at(span_of(unit->file->sections[DWARF_INFO].data, (size_t)unit->end),
                            unit->first_die);
    if (!walk_entries(&walk))
        return false;
    if (scopes->painted_count)
        flatten(scopes);
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
