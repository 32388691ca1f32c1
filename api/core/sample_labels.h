/*
 * sample_labels: the list of those labels of samples that make series, as a text:
 * "endpoint,region".
 *
 * A sample of a delta that has one is of a series of its own, whatever protocol it came by. All
 * others, and those of levels and counters, stay with their samples. Names are those that series
 * have (lib/profile/batch/batch_labels.h): "k8s.pod.name" and "k8s_pod_name" are one. Numbers never
 * make series, nor do labels of threads and spans, of which there is no end: such names are
 * refused. Threads: any.
 */
#ifndef API_CORE_SAMPLE_LABELS_H
#define API_CORE_SAMPLE_LABELS_H

#include "lib/base/buf.h"
#include "lib/base/err.h"

enum { SAMPLE_LABELS_MAX = 16, SAMPLE_LABELS_BYTES = 512 };

/* The list as it is kept, of one that a person wrote: distinct clean names, "" for none. Handles:
 * ERR_INVALID (the message names the label), ERR_TOO_LARGE. */
enum err_code sample_labels_read(const char *text, char ret_list[SAMPLE_LABELS_BYTES],
                                 struct err *err) MUST_USE;
/* The names of a list that is kept, borrowed from it. Returns how many there are. */
uint32_t sample_labels_split(const char *list, struct span ret_names[SAMPLE_LABELS_MAX]);

#endif
