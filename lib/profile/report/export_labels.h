/*
 * export_labels: what labels.h counted, as JSON; api/openapi.yaml describes its members.
 *
 * Numbers are whole, in the profile's own unit. Of a diff each count has both sides. Each value has
 * the rule of label_filter.h that means it, unless that would be long or is no UTF-8. What is not
 * written is said: values behind the limit as `other` of their label, labels by `truncated`.
 * Threads: any.
 */
#ifndef LIB_PROFILE_REPORT_EXPORT_LABELS_H
#define LIB_PROFILE_REPORT_EXPORT_LABELS_H

#include "lib/base/buf.h"
#include "lib/base/err.h"

struct labels;

enum { EXPORT_LABELS_KEYS = 100, EXPORT_LABELS_FILTER_BYTES = 1000 };

/* At most limit values of each label and EXPORT_LABELS_KEYS labels, or all when limit is 0.
 * Appends to output. Handles: ERR_TOO_LARGE (output's maximum). */
enum err_code export_labels(const struct labels *labels, uint32_t limit, struct buf *output,
                            struct err *err) MUST_USE;

#endif
