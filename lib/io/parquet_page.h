/*
 * parquet_page: writes one leaf column of a row group as pages, and its metadata.
 *
 * Private to parquet*.c; lib/io/parquet.h describes the format.
 */
#ifndef LIB_IO_PARQUET_PAGE_H
#define LIB_IO_PARQUET_PAGE_H

#include "lib/io/parquet.h"
#include "lib/io/parquet_thrift.h"

/* Each array has a level, 0 or 1, per value or null; NULL if the column has no such levels. */
struct parquet_levels {
    const uint32_t *repetition; /* 0: the first of a row */
    const uint32_t *definition; /* 0: null, or an empty list */
    uint32_t count;
};

struct parquet_leaf {
    enum parquet_type type;
    bool has_statistics;
    struct parquet_levels levels;
    /* The distinct entries; entry i is entries[i * stride], since a struct of the column has its
     * fields side by side. */
    const struct parquet_value *entries;
    uint32_t stride;
    uint32_t entry_count;
    const uint32_t *numbers; /* per value of the leaf: the number of its entry */
    uint32_t number_count;
};

/* Position and sizes, for ColumnMetaData. */
struct parquet_chunk {
    uint64_t offset; /* of the first page */
    uint64_t data_offset;
    uint64_t flat_bytes;
    uint64_t stored_bytes;
    bool has_dictionary;
    bool has_range; /* smallest and largest are set */
    uint32_t value_count;
    uint32_t null_count;
    struct parquet_value smallest;
    struct parquet_value largest;
};

/* Writes the pages one by one to the sink; the first is at offset in the file. Errors:
 * ERR_TOO_LARGE, the errors of the sink. */
enum err_code parquet_page_write(const struct parquet_leaf *leaf,
                                 const struct parquet_limits *limits, uint64_t offset,
                                 const struct parquet_sink *sink, struct parquet_chunk *ret_chunk,
                                 struct err *err) MUST_USE;

/* Writes the Statistics of a ColumnMetaData, its field 12. */
void parquet_page_describe(enum parquet_type type, const struct parquet_chunk *chunk,
                           struct thrift *thrift);

#endif
