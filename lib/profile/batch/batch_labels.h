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
 * When several labels of one list get the same name, all protocols follow one rule. If the sender's
 * names are equal, byte for byte, the list is refused, whatever the values are. If they are written
 * differently, the first one by batch_labels_compare is used and the others are dropped; the
 * response reports that unless they have the same value. Threads: any.
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

/* Returns limits with every 0 replaced by its default; NULL: all defaults. The functions below that
 * take limits need resolved ones. */
struct batch_limits batch_limits_resolve(const struct batch_limits *limits);

/* A label as text; its strings are borrowed. */
struct batch_text_label {
    struct span name;
    struct span value;
};

/* Whether name is not empty and batch_labels_clean_name would not change it. */
bool batch_labels_is_name(struct span name);

/* Writes the normalized form of a sender's name to ret_name, which has name.size + 1 bytes.
 * Returns its size; 0 for an empty name. */
size_t batch_labels_clean_name(struct span name, char *ret_name);

/* Whether the normalized form of sent_name equals name. False for a name of more than 1,024 bytes
 * that has to be normalized. */
bool batch_labels_becomes(struct span sent_name, struct span name);

/* Orders senders' names with the same normalized form, of which the first is used: by bytes, but
 * OpenTelemetry's "service.name" before all others. */
int batch_labels_compare(struct span a, struct span b);

/* Returns a notice for the response, in arena: the label that the sender calls lost was dropped,
 * because the one that it calls kept has the same name. */
const char *batch_labels_lost_notice(struct arena *arena, struct span lost, struct span kept);

/* Whether the normalized form of a sender's name is service_name. */
bool batch_labels_is_service(struct span name);

/*
 * Changes labels[0 .. *count) in place: drops labels without a value, validates the others,
 * normalizes their names (in arena, if they differ), drops all but one of each name and sorts by
 * name. *count becomes the number that is left. If *notice is NULL and a label is dropped for
 * another with the same name, *notice is set (in arena). Errors: ERR_INVALID (an invalid name or
 * value, a sender's name given twice), ERR_TOO_LARGE (limits); messages name the label. After an
 * error the labels are in no particular order.
 */
enum err_code batch_labels_check(struct arena *arena, struct batch_text_label *labels,
                                 size_t *count, const struct batch_limits *limits,
                                 const char **notice, struct err *err) MUST_USE;

#endif
