/* export_columns: the columns of an export (store/query/export.h): the fixed ones, and one per
 * label name. Private to store/. */
#ifndef STORE_QUERY_EXPORT_COLUMNS_H
#define STORE_QUERY_EXPORT_COLUMNS_H

#include "lib/io/parquet.h"

struct scan;

/* The fixed columns, in order; those of labels follow EXPORT_SAMPLE_UNIT. */
enum export_column {
    EXPORT_TIME,
    EXPORT_DURATION,
    EXPORT_PERIOD,
    EXPORT_TYPE,
    EXPORT_SAMPLE_TYPE,
    EXPORT_SAMPLE_UNIT,
    EXPORT_VALUE,
    EXPORT_STACK,
    EXPORT_FRAMES,
    EXPORT_TRACE_ID,
    EXPORT_SPAN_ID,
    EXPORT_SAMPLE_LABELS,
    EXPORT_SEEN_AT,
    EXPORT_FIXED_COUNT
};

/* Fields of EXPORT_FRAMES. */
enum export_frame_field {
    EXPORT_FUNCTION,
    EXPORT_FILE,
    EXPORT_LINE,
    EXPORT_ADDRESS,
    EXPORT_BUILD_ID,
    EXPORT_BINARY,
    EXPORT_FRAME_FIELDS
};

struct export_columns {
    struct parquet_column *columns;
    uint32_t count;
    const struct span *label_names; /* sorted by bytes */
    uint32_t label_count;
};

/* Makes the columns in the scan's arena. Errors: ERR_TOO_LARGE (more than STORE_EXPORT_LABELS_MAX
 * names). */
enum err_code export_columns_make(const struct scan *scan, struct export_columns *ret_columns,
                                  struct err *err) MUST_USE;

static inline uint32_t export_column_number(const struct export_columns *columns,
                                            enum export_column column)
{
    return column + (column > EXPORT_SAMPLE_UNIT ? columns->label_count : 0);
}

static inline uint32_t export_label_column(uint32_t label)
{
    return EXPORT_SAMPLE_UNIT + 1 + label;
}

#endif
