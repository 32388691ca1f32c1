/*
 * parquet: tables as Apache Parquet files, written from first to last byte with bounded memory.
 *
 * Source of the format: github.com/apache/parquet-format (README.md, Encodings.md,
 * LogicalTypes.md, src/main/thrift/parquet.thrift), version 2.
 *
 *   "PAR1"
 *   row groups: per leaf column a dictionary page where one pays and is not too large, then data
 *       pages (version 1), all zstd; levels and numbers of dictionary entries as runs and
 * bit-packed groups (RLE, RLE_DICTIONARY), else values as they are (PLAIN). A data page ends with a
 * row, unless that row alone has many times the size of a page FileMetaData in Thrift's compact
 * protocol, its size as u32, "PAR1"
 *
 * Every column of a row is a list of entries: exactly one, at most one, or any number. What an
 * entry holds is said once per row group (parquet_add gives it a number), rows refer to it by
 * number; so a value that many rows have costs them four bytes until the row group is written,
 * whatever its size. Columns without lists have statistics: nulls, smallest and largest value, by
 * which readers skip row groups. Texts are UTF-8 as the format wants it: bytes that are none become
 * U+FFFD.
 *
 * Memory: about 4 bytes per entry of a row, at most PARQUET_GROUP_ENTRIES of them, the distinct
 * values of a row group (PARQUET_GROUP_BYTES), a page of it twice, and about 100 bytes per leaf
 * column and row group for the end of the file. Threads: a writer belongs to one.
 */
#ifndef LIB_IO_PARQUET_H
#define LIB_IO_PARQUET_H

#include "lib/base/buf.h"
#include "lib/base/err.h"

enum {
    PARQUET_GROUP_ROWS = 1 << 17,
    PARQUET_GROUP_ENTRIES = 1 << 22, /* of all columns; a row group ends with the row that passes */
    PARQUET_GROUP_BYTES = 32 << 20,  /* of distinct values */
    PARQUET_FIELDS_MAX = 8
};

enum parquet_type {
    PARQUET_TEXT,
    PARQUET_I64,
    PARQUET_U64,
    PARQUET_TIME_NS /* since 1970 in UTC; readers get a time without a zone, exact to the ns */
};

enum parquet_shape {
    PARQUET_ONE,
    PARQUET_OPTIONAL,        /* one or null */
    PARQUET_LIST,            /* of values */
    PARQUET_LIST_OF_STRUCTS, /* of all fields */
    PARQUET_MAP              /* two fields: key and value */
};

struct parquet_field {
    const char *name; /* of those of structs */
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

/* Takes the next bytes of the file. */
struct parquet_sink {
    enum err_code (*append)(void *context, struct span bytes, struct err *err);
    void *context;
};

/* Sizes before compression; 0: the default. */
struct parquet_limits {
    uint64_t page_bytes;       /* a data page ends with the row that passes it; 8 MiB */
    uint64_t dictionary_bytes; /* a column chunk with a larger dictionary has none; 256 MiB */
};

struct parquet_writer;

/* Copies the columns, not their fields' names. */
struct parquet_writer *parquet_writer_create(const struct parquet_column *columns,
                                             uint32_t column_count, struct parquet_limits limits,
                                             struct parquet_sink sink);
void parquet_writer_destroy(struct parquet_writer *writer); /* NULL is a no-op */

/* Changes whenever the numbers of entries have lost their meaning. Never 0. */
uint32_t parquet_epoch(const struct parquet_writer *writer);
/* Bytes that it holds. */
size_t parquet_memory(const struct parquet_writer *writer);
/* The number of the entry with these values, one per field of the column; texts are copied. */
uint32_t parquet_add(struct parquet_writer *writer, uint32_t column,
                     const struct parquet_value *values);
/* Entries of the row in hand: once for every column, in any order. */
void parquet_append(struct parquet_writer *writer, uint32_t column, const uint32_t *entries,
                    uint32_t count);
/* Writes the row group when it is full. Handles: what the sink does, ERR_TOO_LARGE. */
enum err_code parquet_end_row(struct parquet_writer *writer, struct err *err) MUST_USE;

struct parquet_note {
    const char *key;
    struct span text;
};

/* The rest of the file, with notes for whoever asks for its metadata. Handles: as above. */
enum err_code parquet_finish(struct parquet_writer *writer, const struct parquet_note *notes,
                             uint32_t note_count, struct err *err) MUST_USE;

#endif
