/*
 * sources: who sends continuous profiles: which service, with which token, program and address,
 * when last, how much, and the last error.
 *
 * A dropped profile is recorded for its own service, even if others of the request are accepted. A
 * refusal before the service is known is recorded for the service in the address, or for the only
 * one that this token, program, protocol and address sent for, or for none. A request records its
 * result in memory; every few seconds, and before the own tenant's list is read, changes are
 * written to the table `sender`. Bounded: SOURCES_TENANT_MAX per tenant (the one unseen for longest
 * is replaced; of those that are not written yet SOURCES_TENANT_UNWRITTEN_MAX stay) and SOURCES_MAX
 * in total; a source not seen for SOURCES_IDLE_S leaves the memory, and after 30 days the table.
 * Counts that were not written yet are lost when the server is killed. Threads: any.
 */
#ifndef API_INGEST_SOURCES_H
#define API_INGEST_SOURCES_H

#include "lib/base/buf.h"
#include "lib/base/err_code.h"

#include <stdint.h>

struct batch_text_label;
struct request;
struct response;
struct sources;
struct server;

enum {
    SOURCES_TENANT_MAX = 1000,
    SOURCES_TENANT_UNWRITTEN_MAX = 4000,
    SOURCES_MAX = 50000,
    SOURCES_IDLE_S = 600,
    SOURCES_SERVICES_MAX = 64 /* of one request; the last entry is for all others */
};

/* What a request contained of one service (request.h has an array of them). */
struct sources_service {
    struct span name;
    uint64_t profile_count;
    uint64_t sample_count;
    uint64_t cut_string_count; /* of the tables that it shares with other services */
    const char *problem;       /* what was dropped of this service only, and why; NULL: nothing */
};

struct sources *sources_create(void);
void sources_destroy(struct sources *sources); /* NULL is a no-op */

/* For a request whose address has these labels: a refusal before decoding is recorded for their
 * service, or for other if they have none. */
void sources_name_service(struct request *request, const struct batch_text_label *labels,
                          size_t count, struct span other);
/* Records that something of the service is dropped, although the request may succeed. Of several
 * problems the first is kept. */
void sources_note_problem(struct request *request, struct span service, const char *problem);
/* The service's index among the request's; those beyond the maximum share the last. */
uint32_t sources_find_service(struct request *request, struct span name);
/* Called after a request of an agent whose tenant is known; err is read if code is set. */
void sources_note(const struct request *request, enum err_code code, const struct err *err);

/* Writes the changes of one tenant or (PG_NO_TENANT) of all. Those that could not be written stay.
 */
enum err_code sources_write(struct server *server, int64_t tenant_id, struct err *err) MUST_USE;
/* Writes those of all tenants, and now and then drops sources not seen for long. Background work.
 */
enum err_code sources_jobs_run(struct server *server, struct err *err) MUST_USE;

/* GET /api/v1/senders */
extern const struct route_table sources_routes;

#endif
