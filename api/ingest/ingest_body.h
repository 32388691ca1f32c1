/*
 * ingest_body: reads the body of an agent's request: decompresses it, and decodes it within bounded
 * memory.
 *
 * Content-Encoding is identity, gzip or zstd. The memory that decoding takes is not known from the
 * size of a body, so the body is decoded with a small limit first, and after ERR_TOO_LARGE again
 * with memory of the gate (api/core/memory_gate.h), each time four times as much. Threads: any.
 */
#ifndef API_INGEST_INGEST_BODY_H
#define API_INGEST_INGEST_BODY_H

#include "lib/base/buf.h"
#include "lib/base/err_code.h"

#include <stdbool.h>
#include <stdint.h>

struct ingest_request;
struct batch_source;
struct profile_limits;
struct request;
struct response;

enum {
    INGEST_BODY_MAX_BYTES = 8 << 20,       /* a body as received */
    INGEST_BODY_EXPANDED_BYTES = 64 << 20, /* a decompressed body, as OTLP recommends */
};

/* False for an unknown Content-Encoding. */
bool ingest_body_knows_encoding(const struct request *request);
/* Errors: ERR_UNSUPPORTED (an unknown Content-Encoding). */
enum err_code ingest_body_check_encoding(const struct request *request, struct err *err) MUST_USE;

/* A callback that decodes the whole body, which is decompressed and borrowed for the call, and puts
 * the profiles into an ingest_request. After ERR_TOO_LARGE it may be called again with larger
 * limits; the profiles that it had put are dropped before. */
typedef enum err_code (*ingest_body_reader)(struct request *request, void *context,
                                            struct span body, const struct profile_limits *limits,
                                            struct err *err);

/* Reads the body within the tenant's limit of a profile's size; error messages name that limit.
 * context is passed to read. Errors: those of read, ERR_UNSUPPORTED (the encoding),
 * ERR_INVALID (the body does not have that encoding), ERR_TOO_LARGE, ERR_BUSY (too many requests
 * decode large bodies). */
enum err_code ingest_body_read(struct request *request, struct ingest_request *ingest_request,
                               ingest_body_reader read, void *context, struct err *err) MUST_USE;

/* A decoded profile, and what was sent with it. */
struct ingest_body_profile {
    struct batch_source *source;
    int64_t time_ns;   /* sent by the client, otherwise 0; see api/ingest/batch_id.h */
    int64_t end_ns;    /* likewise */
    bool is_ambiguous; /* equal profiles may be of several processes; see api/ingest/batch_id.h */
    struct span content;
    struct span sender_id; /* the sender's id of the profile, the same when it is sent again */
    uint32_t number;       /* in its request */
};

/* Puts a profile into ingest_request. Takes ownership of profile->source->profile, even on an
 * error. A profile without a time gets the time of source, or else the present time. Errors:
 * ERR_INVALID, ERR_TOO_LARGE. */
enum err_code ingest_body_put(struct request *request, const struct ingest_body_profile *profile,
                              struct ingest_request *ingest_request, struct err *err) MUST_USE;

/* Adds the field Perfolio-Warning to a response of 200 if the profiles are old (age_warning.h).
 */
void ingest_body_add_age_warning(struct request *request, struct response *response);
/* The same, with request->partial_error in front. */
void ingest_body_add_warning(struct request *request, struct response *response);

#endif
