/*
 * parquet: writes tables as Apache Parquet files from first to last byte with bounded memory.
 *
 * Source of the format: github.com/apache/parquet-format (README.md, Encodings.md, LogicalTypes.md,
 * src/main/thrift/parquet.thrift), version 2. The file consists of:
 *
 *   "PAR1"
 *   row groups     per leaf column: a dictionary page if it saves space and is not too large, then
 *                  data pages (version 1), all zstd
 *   FileMetaData   in Thrift's compact protocol
 *   u32            size of FileMetaData
 *   "PAR1"
 *
 * Levels and dictionary indexes are runs and bit-packed groups (RLE, RLE_DICTIONARY); without a
 * dictionary, values are PLAIN. A data page ends with a row, unless that row alone is many times
 * the size of a page.
 *
 * Every column of a row is a list of entries: exactly one, at most one, or any number. Each
 * distinct entry is added once per row group (parquet_add returns its number), and rows refer to it
 * by number. So a value that many rows have costs four bytes per row until the row group is
 * written, whatever its size. Columns without lists have statistics (nulls, smallest and largest
 * value), by which readers skip row groups. Texts must be UTF-8: invalid bytes become U+FFFD.
 *
 * Memory: about 4 bytes per entry of a row, at most PARQUET_GROUP_ENTRIES of them; the distinct
 * values of a row group (PARQUET_GROUP_BYTES); two copies of a page; and about 100 bytes per leaf
 * column and row group for the end of the file. Threads: a writer belongs to one thread.
 */
#ifndef LIB_IO_PARQUET_H
#define LIB_IO_PARQUET_H

#include "lib/base/err_code.h"
#include "lib/base/span.h"

enum {
    PARQUET_GROUP_ROWS = 1 << 17,
    /* entries of all columns; a row group ends with the row that exceeds this number */
    PARQUET_GROUP_ENTRIES = 1 << 22,
    PARQUET_GROUP_BYTES = 32 << 20, /* size of the distinct values of a row group */
    PARQUET_FIELDS_MAX = 8
};

enum parquet_type {
    PARQUET_TEXT,
    PARQUET_I64,
    PARQUET_U64,
    PARQUET_TIME_NS /* since 1970 in UTC; readers see a time without a zone, exact to the ns */
};

enum parquet_shape {
    PARQUET_ONE,
    PARQUET_OPTIONAL,        /* one or null */
    PARQUET_LIST,            /* any number of values */
    PARQUET_LIST_OF_STRUCTS, /* any number of structs with all fields of the column */
    PARQUET_MAP              /* two fields: key and value */
};

struct parquet_field {
    const char *name; /* used for structs */
    enum parquet_type type;
};

struct parquet_column {
    struct span name; /* distinct */
    enum parquet_shape shape;
    struct parquet_field fields[PARQUET_FIELDS_MAX];
    uint32_t field_count;
};

struct parquet_value {
    struct span text;
    int64_t number;
};

/* Receives the file in order. */
struct parquet_sink {
    enum err_code (*append)(void *context, struct span bytes, struct err *err);
    void *context;
};

/* Sizes before compression; 0: the default. */
struct parquet_limits {
    uint64_t page_bytes;       /* a data page ends with the row that exceeds this size; 8 MiB */
    uint64_t dictionary_bytes; /* larger dictionaries are not written; 256 MiB */
};

struct parquet_writer;

/* Copies the columns, but not the names of their fields. */
struct parquet_writer *parquet_writer_create(const struct parquet_column *columns,
                                             uint32_t column_count, struct parquet_limits limits,
                                             struct parquet_sink sink);
void parquet_writer_destroy(struct parquet_writer *writer); /* NULL is a no-op */

/* A number that changes whenever the numbers of entries become invalid, which is when a row group
 * was written. Never 0. */
uint32_t parquet_epoch(const struct parquet_writer *writer);
/* Bytes that the writer occupies. */
size_t parquet_memory(const struct parquet_writer *writer);
/* Returns the number of the entry with these values, one per field of the column; texts are
 * copied. */
uint32_t parquet_add(struct parquet_writer *writer, uint32_t column,
                     const struct parquet_value *values);
/* Sets the entries of a column in the current row; call it once for every column, in any order. */
void parquet_append(struct parquet_writer *writer, uint32_t column, const uint32_t *entries,
                    uint32_t count);
/* Ends the row, and writes the row group if it is full. Errors: those of the sink,
 * ERR_TOO_LARGE. */
enum err_code parquet_end_row(struct parquet_writer *writer, struct err *err) MUST_USE;

struct parquet_note {
    const char *key;
    struct span text;
};

/* Writes the rest of the file, with notes as key-value metadata. Errors: as above. */
enum err_code parquet_finish(struct parquet_writer *writer, const struct parquet_note *notes,
                             uint32_t note_count, struct err *err) MUST_USE;

#endif
