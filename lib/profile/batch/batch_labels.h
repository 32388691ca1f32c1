/*
 * batch_labels: validates and normalizes the labels of a series as a sender writes them; also the
 * limits of a batch.
 *
 * A name is [a-zA-Z_][a-zA-Z0-9_]*, as in Prometheus, for all protocols. In a sender's name every
 * other byte becomes '_', a '_' is put before a leading digit, and several leading '_' become one,
 * because names that begin with "__" do not belong to a series (the protocol readers handle these
 * before). So OpenTelemetry's "k8s.pod.name", "k8s-pod-name" and "k8s_pod_name" are one label.
 * Names and values are UTF-8; a label without a value is dropped.
 *
 * When several labels of one list get the same name, all protocols follow one rule: a sender's name
 * that occurs twice, byte for byte, is refused, whatever its values; of names that are written
 * differently the first by batch_labels_compare is used, and the others are dropped, which the
 * response reports unless they have the same value. Threads: any.
 */
#ifndef LIB_PROFILE_BATCH_BATCH_LABELS_H
#define LIB_PROFILE_BATCH_BATCH_LABELS_H

#include "lib/base/err_code.h"
#include "lib/base/span.h"

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

/* Returns limits with every 0 replaced by its default; NULL: all defaults. */
struct batch_limits batch_limits_resolve(const struct batch_limits *limits);

struct batch_text_label {
    struct span name;
    struct span value;
};

bool batch_labels_is_name(struct span name);

/* Writes the normalized form of a sender's name to ret_name, which has name.size + 1 bytes.
 * Returns its size; 0 for an empty name. */
size_t batch_labels_clean_name(struct span name, char *ret_name);

/* Whether the normalized form of sent_name equals name. */
bool batch_labels_becomes(struct span sent_name, struct span name);

/* Orders senders' names with the same normalized form; the smallest is used. By bytes, but
 * OpenTelemetry's "service.name" comes first. */
int batch_labels_compare(struct span a, struct span b);

/* A notice for the response, in arena: the sender's label lost was dropped in favour of kept. */
const char *batch_labels_lost_notice(struct arena *arena, struct span lost, struct span kept);

/* Whether the normalized name is service_name. */
bool batch_labels_is_service(struct span name);

/*
 * Drops labels without a value, validates the others, normalizes their names (in arena, if they
 * differ) and sorts by name. limits are resolved. *notice, initially NULL, is set when a label is
 * dropped (in arena). Errors: ERR_INVALID (an invalid name or value, a sender's name given twice),
 * ERR_TOO_LARGE (limits); messages name the label.
 */
enum err_code batch_labels_check(struct arena *arena, struct batch_text_label *labels,
                                 size_t *count, const struct batch_limits *limits,
                                 const char **notice, struct err *err) MUST_USE;

#endif
