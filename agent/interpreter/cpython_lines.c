#include "agent/interpreter/cpython_lines.h"

enum { NO_LINE = -128, UNIT_BYTES = 2 };

/* The table is untrusted: a sum that is no line number becomes 0. */
static uint32_t as_line(int64_t line)
{
    return line > 0 && line <= INT32_MAX ? (uint32_t)line : 0;
}

/* Pairs (bytes of code, increment of the line): an increment applies from the end of its bytes on.
 */
static uint32_t by_increments(struct span table, int64_t line, int64_t offset)
{
    int64_t address = 0;
    for (size_t i = 0; i + 1 < table.size; i += 2) {
        address += table.data[i];
        if (address > offset)
            break;
        line += (int8_t)table.data[i + 1];
    }
    return as_line(line);
}

/* Pairs (bytes of code, increment of the line): an increment applies to its bytes. */
static uint32_t by_ranges(struct span table, int64_t line, int64_t offset)
{
    int64_t end = 0;
    for (size_t i = 0; i + 1 < table.size; i += 2) {
        const int8_t step = (int8_t)table.data[i + 1];
        end += table.data[i];
        if (step != NO_LINE)
            line += step;
        if (offset < end)
            return step == NO_LINE ? 0 : as_line(line);
    }
    return 0;
}

struct reader {
    struct span table;
    size_t at;
};

/* Six bits per byte, the lowest first; bit 6 is set if another byte follows. */
static uint32_t take_varint(struct reader *reader)
{
    uint32_t value = 0;
    for (uint32_t shift = 0; reader->at < reader->table.size && shift < 32; shift += 6) {
        const uint8_t byte = reader->table.data[reader->at++];
        value |= (uint32_t)(byte & 63) << shift;
        if (!(byte & 64))
            break;
    }
    return value;
}

static int64_t take_signed(struct reader *reader)
{
    const uint32_t value = take_varint(reader);
    return value & 1 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
}

enum { KIND_ONE_LINE = 10, KIND_NO_COLUMNS = 13, KIND_LONG = 14, KIND_NONE = 15 };

/* Reads the rest of an entry and returns the increment from the previous line. */
static int64_t take_entry(struct reader *reader, uint8_t kind)
{
    int64_t step = 0;
    if (kind == KIND_NONE)
        return 0;
    if (kind < KIND_ONE_LINE) {
        reader->at += 1;
    } else if (kind < KIND_NO_COLUMNS) {
        step = kind - KIND_ONE_LINE;
        reader->at += 2;
    } else {
        step = take_signed(reader);
        for (int i = 0; kind == KIND_LONG && i < 3; i++)
            (void)take_varint(reader);
    }
    return step;
}

/* Entries of varying length: a byte with a kind and a number of units of code, then lines and
 * columns in the form of that kind. */
static uint32_t by_locations(struct span table, int64_t line, int64_t offset)
{
    struct reader reader = {.table = table};
    int64_t end = 0;
    while (reader.at < table.size) {
        const uint8_t head = table.data[reader.at++];
        const uint8_t kind = head >> 3 & 15;
        end += ((head & 7) + 1) * UNIT_BYTES;
        line += take_entry(&reader, kind);
        if (offset < end)
            return kind == KIND_NONE ? 0 : as_line(line);
    }
    return 0;
}

uint32_t cpython_lines_find(enum cpython_line_form form, struct span table, uint32_t first_line,
                            int64_t offset)
{
    if (offset < 0)
        return as_line(first_line);
    switch (form) {
    case CPYTHON_LINES_INCREMENTS:
        return by_increments(table, first_line, offset);
    case CPYTHON_LINES_RANGES:
        return by_ranges(table, first_line, offset);
    case CPYTHON_LINES_LOCATIONS:
        return by_locations(table, first_line, offset);
    }
    return 0;
}
