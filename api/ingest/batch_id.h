/*
 * batch_id: what tells a batch of profiles from all others, so that one that is sent again counts
 * once (store/store.h).
 *
 * It is made of the field Perfolio-Batch-Id, where the request has one, and else of labels, the
 * agent's session, times and content, where the sender gave a time: two profiles without one may be
 * equal by chance. Content is what was sent, of single profiles with their compression: a retry
 * sends the same bytes, and there are fewer of them to be hashed than of the expanded profile.
 * Threads: any.
 */
#ifndef API_INGEST_BATCH_ID_H
#define API_INGEST_BATCH_ID_H

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/profile/batch/batch_labels.h"
#include "store/store.h"

struct request;

enum { BATCH_ID_FIELD_MAX_BYTES = 200 };

struct batch_id_source {
    const struct batch_text_label *labels; /* in any order */
    size_t label_count;
    struct span name;
    struct span session; /* of the agent, where it is no label; empty: it has none */
    int64_t time_ns;     /* 0: the sender gave none */
    int64_t end_ns;      /* likewise */
    struct span content;
    uint32_t number; /* of the batch in its request: one field names them all */
};

/* *ret_has_id is false where it cannot be told from one more like it. Handles: ERR_INVALID (the
 * field is too long). */
enum err_code batch_id_find(const struct request *request, const struct batch_id_source *source,
                            uint8_t ret_id[STORE_BATCH_ID_BYTES], bool *ret_has_id,
                            struct err *err) MUST_USE;

#endif
