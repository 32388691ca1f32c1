/*
 * batch_labels: the labels of a series as a sender writes them, checked and put in order; and the
 * limits of what one batch may hold.
 *
 * A name is [a-zA-Z_][a-zA-Z0-9_.]*: Prometheus' letters, and the dots that attributes of
 * OpenTelemetry have. Names of other letters are refused, as Pyroscope refuses them unless told
 * otherwise. Names that begin with "__" are none of a series: the readers of the protocols take
 * them out and say what they mean. A value is any UTF-8 text; a label without a value is no label.
 * Threads: any.
 */
#ifndef LIB_PROFILE_BATCH_LABELS_H
#define LIB_PROFILE_BATCH_LABELS_H

#include "lib/base/buf.h"
#include "lib/base/err.h"

/* 0 in any field means its default. */
struct batch_limits {
    uint32_t series_labels; /* of one series; default 64 */
    uint32_t name_bytes;    /* of a label; default 1,024 */
    uint32_t value_bytes;   /* default 2,048 */
    uint32_t types;         /* value types of one profile; default 64 */
    uint32_t series;        /* of one batch; default 10,000 */
    uint32_t profiles;      /* of one request; default 10,000 */
};

/* limits with every 0 replaced by its default; NULL: all defaults. */
struct batch_limits batch_limits_resolve(const struct batch_limits *limits);

struct batch_text_label {
    struct span name;
    struct span value;
};

bool batch_labels_is_name(struct span name);

/*
 * Takes labels without a value out, checks the others and sorts them by name. limits are resolved
 * ones. Handles: ERR_INVALID (a name or value that is none, a name given twice), ERR_TOO_LARGE
 * (limits); messages name the label.
 */
enum err_code batch_labels_check(struct batch_text_label *labels, size_t *count,
                                 const struct batch_limits *limits, struct err *err) MUST_USE;

#endif
