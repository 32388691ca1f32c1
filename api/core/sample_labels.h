/*
 * sample_labels: the list of those labels of samples that become labels of series, as text:
 * "endpoint,region".
 *
 * Samples of delta profiles with such a label go into a series of their own for each value,
 * whatever protocol they came by. All other labels, and those of gauges and counters, stay with
 * their samples. Names are those of series (lib/profile/batch/batch_labels.h): "k8s.pod.name" and
 * "k8s_pod_name" are one. Numeric labels never make series; the labels of threads and spans, which
 * have no bound, are refused. Threads: any.
 */
#ifndef API_CORE_SAMPLE_LABELS_H
#define API_CORE_SAMPLE_LABELS_H

#include "lib/base/buf.h"
#include "lib/base/err_code.h"

enum { SAMPLE_LABELS_MAX = 16, SAMPLE_LABELS_BYTES = 512 };

/* The list in its stored form, from one that a person wrote: distinct clean names, "" for none.
 * Errors: ERR_INVALID (the message names the label), ERR_TOO_LARGE. */
enum err_code sample_labels_read(const char *text, char ret_list[SAMPLE_LABELS_BYTES],
                                 struct err *err) MUST_USE;
/* The names of a stored list, borrowed from it. Returns their number. */
uint32_t sample_labels_split(const char *list, struct span ret_names[SAMPLE_LABELS_MAX]);

#endif
