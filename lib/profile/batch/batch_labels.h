/*
 * batch_labels: the labels of a series as a sender writes them, checked and put in order; and the
 * limits of what one batch may hold.
 *
 * A name is [a-zA-Z_][a-zA-Z0-9_]*, Prometheus' letters, whatever the protocol: every other byte of
 * a sender's name becomes '_', one stands before a digit at the start, and one only where a name
 * starts with several, as names that begin with "__" are none of a series (the readers of the
 * protocols take such out before and say what they mean). So "k8s.pod.name" of OpenTelemetry,
 * "k8s-pod-name" and "k8s_pod_name" are one label. Names and values are UTF-8; a label without a
 * value is no label.
 *
 * Where one list of a sender has several labels that come to one name, the rule is the same for all
 * protocols: one that stands there twice, letter by letter, is refused, whatever its values; of
 * those that are written differently the first counts, by batch_labels_compare, and the others are
 * left out, which the answer says unless they have the same value. Threads: any.
 */
#ifndef LIB_PROFILE_BATCH_BATCH_LABELS_H
#define LIB_PROFILE_BATCH_BATCH_LABELS_H

#include "lib/base/buf.h"
#include "lib/base/err.h"

struct arena;

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

/* The name that series have for a sender's, into ret_name, which has name.size + 1 bytes. Returns
 * its size; 0 for an empty name. */
size_t batch_labels_clean_name(struct span name, char *ret_name);

/* Does a sender's name become this one, which is clean? */
bool batch_labels_becomes(struct span sender_name, struct span name);

/* Which of two senders' names that come to one counts: by bytes, but OpenTelemetry's "service.name"
 * before all. */
int batch_labels_compare(struct span a, struct span b);

/* For the answer, in arena: that the label which the sender calls lost is left out for kept. */
const char *batch_labels_tell_lost(struct arena *arena, struct span lost, struct span kept);

/* Is it service_name for series? */
bool batch_labels_is_service(struct span name);

/*
 * Takes labels without a value out, checks the others, gives them the names that series have (in
 * arena, where they differ) and sorts by them. limits are resolved ones. *notice, NULL before,
 * tells of a label that is left out (in arena). Handles: ERR_INVALID (a name or value that is none,
 * a sender's name given twice), ERR_TOO_LARGE (limits); messages name the label.
 */
enum err_code batch_labels_check(struct arena *arena, struct batch_text_label *labels,
                                 size_t *count, const struct batch_limits *limits,
                                 const char **notice, struct err *err) MUST_USE;

#endif
