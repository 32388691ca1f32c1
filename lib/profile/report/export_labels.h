/*
 * export_labels: writes the counts of labels.h as JSON; api/openapi.yaml describes the members.
 *
 * Numbers are whole, in the profile's own unit. For a diff each count has both sides. Each value
 * has the rule of label_filter.h that selects it, unless that rule would be longer than
 * EXPORT_LABELS_FILTER_BYTES or is not UTF-8. Values beyond the limit are summed as `other` of
 * their label; `truncated` reports that labels were left out. Threads: any.
 */
#ifndef LIB_PROFILE_REPORT_EXPORT_LABELS_H
#define LIB_PROFILE_REPORT_EXPORT_LABELS_H

#include "lib/base/err_code.h"

#include <stdint.h>

struct buf;
struct labels;

enum { EXPORT_LABELS_KEYS = 100, EXPORT_LABELS_FILTER_BYTES = 1000 };

/* Appends at most limit values of each label and EXPORT_LABELS_KEYS labels, or all if limit is
 * 0. Errors: ERR_TOO_LARGE (output's maximum). */
enum err_code export_labels(const struct labels *labels, uint32_t limit, struct buf *output,
                            struct err *err) MUST_USE;

#endif
