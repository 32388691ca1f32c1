#include "lib/symbols/symbol_address.h"

#include "lib/symbols/symbol_table.h"

#include <stdbool.h>

enum { PAGE_BYTES = 4096, IS_CODE = 1 };

static const uint64_t kernel_half = UINT64_C(1) << 63;

static uint64_t page_start(uint64_t address)
{
    return address / PAGE_BYTES * PAGE_BYTES;
}

static bool is_in_range(uint64_t number, uint64_t begin, uint64_t bytes)
{
    return number >= begin && number - begin < bytes;
}

static bool is_code(const struct symbol_segment *segment)
{
    return (segment->flags & IS_CODE) && segment->memory_bytes;
}

/* Bytes of the whole pages that the segment occupies when mapped. */
static uint64_t mapped_bytes(const struct symbol_segment *segment)
{
    return page_start(segment->address + segment->memory_bytes + PAGE_BYTES - 1) -
           page_start(segment->address);
}

/* Finds the segment whose bytes in the file contain the offset. */
static bool find_by_offset(const struct symbol_table *table, uint64_t offset, uint64_t *ret_address)
{
    const uint32_t count = symbol_table_sizes(table).segments;
    for (uint32_t i = 0; i < count; i++) {
        const struct symbol_segment segment = symbol_table_segment(table, i);
        if (!is_code(&segment) || !is_in_range(offset, segment.offset, segment.file_bytes))
            continue;
        *ret_address = offset - segment.offset + segment.address;
        return true;
    }
    return false;
}

/* Whether a code segment has no bytes in the file, as in the output of "objcopy
 * --only-keep-debug". */
static bool has_moved(const struct symbol_table *table)
{
    const uint32_t count = symbol_table_sizes(table).segments;
    for (uint32_t i = 0; i < count; i++) {
        const struct symbol_segment segment = symbol_table_segment(table, i);
        if (is_code(&segment) && segment.file_bytes == 0)
            return true;
    }
    return false;
}

/* Converts an address, assuming that the mapping begins where the segment does. */
static bool find_in_segment(const struct symbol_segment *segment,
                            const struct symbol_mapping *mapping, uint64_t address,
                            uint64_t *ret_address)
{
    const uint64_t found = address - mapping->start + page_start(segment->address);
    if (!is_in_range(found, segment->address, segment->memory_bytes))
        return false;
    *ret_address = found;
    return true;
}

/* Finds the code segment that is as long as the mapping; false unless there is exactly one. */
static bool find_by_length(const struct symbol_table *table, const struct symbol_mapping *mapping,
                           struct symbol_segment *ret_segment)
{
    const uint32_t count = symbol_table_sizes(table).segments;
    uint32_t found_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct symbol_segment segment = symbol_table_segment(table, i);
        if (!is_code(&segment) || mapped_bytes(&segment) != mapping->limit - mapping->start)
            continue;
        *ret_segment = segment;
        found_count++;
    }
    return found_count == 1;
}

/* Converts an address for GNU ld's layout, in which offsets in the file equal offsets in memory. */
static bool find_by_layout(const struct symbol_table *table, const struct symbol_mapping *mapping,
                           uint64_t address, uint64_t *ret_address)
{
    const uint32_t count = symbol_table_sizes(table).segments;
    const uint64_t first = symbol_table_segment(table, 0).address;
    const uint64_t found = address - mapping->start + mapping->offset + page_start(first);
    for (uint32_t i = 0; i < count; i++) {
        const struct symbol_segment segment = symbol_table_segment(table, i);
        if (!is_code(&segment) || !is_in_range(found, segment.address, segment.memory_bytes))
            continue;
        *ret_address = found;
        return true;
    }
    return false;
}

static bool find_moved(const struct symbol_table *table, const struct symbol_mapping *mapping,
                       uint64_t address, uint64_t *ret_address)
{
    struct symbol_segment segment;
    if (!has_moved(table))
        return false;
    return find_by_length(table, mapping, &segment)
               ? find_in_segment(&segment, mapping, address, ret_address)
               : find_by_layout(table, mapping, address, ret_address);
}

/*
 * A kernel mapping has no offset in a file. Either the kernel runs at its link address, or KASLR
 * has moved it as a whole; then the mapping begins with its first code segment.
 */
static enum symbol_address_result find_in_kernel(const struct symbol_table *table,
                                                 const struct symbol_mapping *mapping,
                                                 uint64_t address, uint64_t *ret_address)
{
    const uint32_t count = symbol_table_sizes(table).segments;
    for (uint32_t i = 0; i < count; i++) {
        const struct symbol_segment segment = symbol_table_segment(table, i);
        if (!is_code(&segment) || segment.address < kernel_half)
            continue;
        if (mapping->start != page_start(segment.address))
            return find_in_segment(&segment, mapping, address, ret_address) ? SYMBOL_ADDRESS_GUESSED
                                                                            : SYMBOL_ADDRESS_NONE;
        *ret_address = address;
        return SYMBOL_ADDRESS_EXACT;
    }
    return SYMBOL_ADDRESS_NONE;
}

enum symbol_address_result symbol_address_find(const struct symbol_table *table,
                                               const struct symbol_mapping *mapping,
                                               uint64_t address, uint64_t *ret_address)
{
    if (symbol_table_sizes(table).segments == 0 || address < mapping->start ||
        address >= mapping->limit)
        return SYMBOL_ADDRESS_NONE;
    if (mapping->start >= kernel_half)
        return find_in_kernel(table, mapping, address, ret_address);
    if (find_by_offset(table, address - mapping->start + mapping->offset, ret_address))
        return SYMBOL_ADDRESS_EXACT;
    return find_moved(table, mapping, address, ret_address) ? SYMBOL_ADDRESS_GUESSED
                                                            : SYMBOL_ADDRESS_NONE;
}
