/*
 * sources: the services and agents that send continuous profiles. A source is a service together
 * with the token, program, protocol and address that sends for it. For each source, the time of its
 * last request, the amounts that it sent and its last error are recorded.
 *
 * A dropped profile is recorded for its own service, even if others of the request are accepted. If
 * a request is refused before its services are known, the error is recorded for the service that
 * its URL names; without one, for the only service for which this token, program, protocol and
 * address has sent so far; otherwise for no service.
 *
 * A request records its result in memory. Every few seconds, and before the list of a tenant is
 * read, changes are written to the table `source`. At most SOURCES_TENANT_MAX sources of a tenant
 * are kept (the one unseen for longest is replaced), but up to SOURCES_TENANT_UNWRITTEN_MAX if they
 * are not yet written, and SOURCES_MAX in total. A source that was not seen for SOURCES_IDLE_S and
 * is written is removed from memory, after 30 days also from the table. Counts that were not
 * written yet are lost
 * when the server is killed. Threads: any.
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

/* The amounts that a request sent for one service (request.h has an array of these). */
struct sources_service {
    struct span name;
    uint64_t profile_count;
    uint64_t sample_count;
    uint64_t cut_string_count; /* of the tables that it shares with other services */
    const char *problem;       /* describes the data of this service that were dropped, and why;
                                  NULL: none */
};

struct sources *sources_create(void);
void sources_destroy(struct sources *sources); /* NULL is a no-op */

/* Sets request->named_service for a request whose URL contains these labels: to the label
 * service_name, or to other if there is none. */
void sources_name_service(struct request *request, const struct batch_text_label *labels,
                          size_t count, struct span other);
/* Records that data of the service are dropped, although the request may succeed. problem describes
 * which and why; only the first problem of a service is kept. */
void sources_note_problem(struct request *request, struct span service, const char *problem);
/* The index of the service in request->services, to which it is added if it is new. Services beyond
 * SOURCES_SERVICES_MAX share the last entry. */
uint32_t sources_find_service(struct request *request, struct span name);
/* Called after a request of an agent whose tenant is known; err is read if code is set. */
void sources_note(const struct request *request, enum err_code code, const struct err *err);

/* Writes the changes of one tenant, or with PG_NO_TENANT of all. On an error, changes that could
 * not be written stay in memory. */
enum err_code sources_write(struct server *server, int64_t tenant_id, struct err *err) MUST_USE;
/* Background work: writes the changes of all tenants, and now and then removes sources that were
 * not seen for long. */
enum err_code sources_jobs_run(struct server *server, struct err *err) MUST_USE;

/* GET /api/v1/sources, and /api/v1/senders, its old name */
extern const struct route_table sources_routes;

#endif
