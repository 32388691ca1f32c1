/*
 * batch_id: the id of a batch of profiles, so that a batch that is sent again counts once
 * (store/store.h).
 *
 * The id is a hash of the header field Perfolio-Batch-Id, if the request has one. Otherwise it is a
 * hash of labels, types and period, the agent's session and its id of the profile, times and
 * content. Two kinds of batches have no id, because equal ones may be different profiles:
 *
 *   - The client sent no time.
 *   - The batch came through one of Pyroscope's APIs without a session and without an id, and its
 *     window begins at a multiple of ten seconds. Older SDKs for Python, Ruby and Rust send such
 *     batches: workers of a service send equal profiles of the same window when each has a sample
 *     or two. These SDKs do not send again.
 *
 * The content is the bytes as sent, for single profiles in their compressed form: a retry
 * sends the same bytes, and hashing them takes less time than hashing the expanded profile. The
 * types are hashed as decoded, because a protocol may state them outside of the content: in /ingest
 * the same stacks may be numbers of allocations in one request and bytes in the next. Threads: any.
 */
#ifndef API_INGEST_BATCH_ID_H
#define API_INGEST_BATCH_ID_H

#include "lib/base/buf.h"
#include "lib/base/err_code.h"
#include "lib/profile/batch/batch_from_profile.h"
#include "store/store.h"

struct request;

enum { BATCH_ID_FIELD_MAX_BYTES = 200 };

struct batch_id_source {
    const struct batch_source *decoded; /* before batch_from_profile; NULL: content has it all */
    int64_t time_ns;                    /* 0: the client sent none */
    bool is_ambiguous;                  /* equal batches may be of several processes */
    int64_t end_ns;                     /* 0: the client sent none */
    struct span content;                /* the bytes as sent; see above */
    struct span sender_id;              /* empty: none */
    uint32_t number; /* index of the batch in its request, which has one id for all batches */
};

/* *ret_has_id is false if the request has no field and the batch has no time of its own or is
 * ambiguous: the batch cannot be distinguished from another, equal one. Errors: ERR_INVALID (the
 * field is too long). */
enum err_code batch_id_find(const struct request *request, const struct batch_id_source *source,
                            uint8_t ret_id[STORE_BATCH_ID_BYTES], bool *ret_has_id,
                            struct err *err) MUST_USE;

#endif
