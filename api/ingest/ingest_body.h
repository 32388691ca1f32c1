/*
 * intake: what the doors for agents have in common: a body that comes compressed is expanded, and
 * read within the memory there is for it.
 *
 * Content-Encoding is identity, gzip or zstd. How much memory a body takes cannot be told from its
 * size, so it is tried with little first, then with a place in the decode gate
 * (api/core/memory_gate.h) of four times as much, and so on. Threads: any.
 */
#ifndef API_INGEST_INGEST_BODY_H
#define API_INGEST_INGEST_BODY_H

#include "lib/base/buf.h"
#include "lib/base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct ingest_limits;
struct batch_source;
struct profile_limits;
struct request;
struct response;

enum {
    INGEST_BODY_BODY_BYTES = 8 << 20,      /* as it comes */
    INGEST_BODY_EXPANDED_BYTES = 64 << 20, /* as OTLP recommends */
};

/* False for a Content-Encoding that is not understood. */
bool ingest_body_knows_encoding(const struct request *request);
/* Handles: ERR_UNSUPPORTED, where it is not. */
enum err_code ingest_body_check_encoding(const struct request *request, struct err *err) MUST_USE;

/* Reads the whole body; may be called again with larger limits when it returned ERR_TOO_LARGE: what
 * it put into the admission is forgotten then. body is borrowed. */
typedef enum err_code (*ingest_body_reader)(struct request *request, void *context,
                                            struct span body, const struct profile_limits *limits,
                                            struct err *err);

/*
 * Within the tenant's limit of a profile's size, which messages name. Handles: what read does,
 * ERR_UNSUPPORTED (the encoding), ERR_INVALID (the body is not encoded
 * so), ERR_TOO_LARGE, ERR_BUSY (too many read large bodies).
 */
enum err_code ingest_body_read(struct request *request, struct ingest_limits *ingest_limits,
                               ingest_body_reader read, void *context, struct err *err) MUST_USE;

/* A decoded profile, and what it was sent with. */
struct ingest_body_profile {
    struct batch_source *source;
    int64_t time_ns; /* that the sender gave, else 0; see api/ingest/batch_id.h */
    int64_t end_ns;
    struct span content;
    struct span session; /* of the agent; may be empty */
    uint32_t number;     /* in its request */
};

/* Takes source->profile, also when it fails; one without a time has source's, or is of now.
 * Handles: ERR_INVALID, ERR_TOO_LARGE. */
enum err_code ingest_body_put(struct request *request, const struct ingest_body_profile *profile,
                              struct ingest_limits *ingest_limits, struct err *err) MUST_USE;

/* Adds the field Perfolio-Warning to an answer of 200: what was left out of what was put. */
void ingest_body_add_warning(struct request *request, struct response *response);

#endif
