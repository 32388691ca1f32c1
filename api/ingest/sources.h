/*
 * senders: who sends continuous profiles: which service, by which token, program and address, when
 * last, how much, and what went wrong last.
 *
 * A profile that is dropped is told of its own service, also where others of the request are taken.
 * What is refused before its service is known is told of the service in the address, else of the
 * only one that this token, program, protocol and address sent for, else of none.
 * A request notes what became of it in memory; every few seconds, and before the own tenant's
 * list is read, what is new is added to the table `sender`. Bounded: SOURCES_TENANT_MAX of one
 * tenant (the one that was not seen for longest makes room; of those that are not written yet
 * SOURCES_TENANT_UNWRITTEN_MAX stay) and SOURCES_MAX of all; who has not
 * been seen for SOURCES_IDLE_S leaves the memory, and after 30 days the table. Counts that were not
 * written yet are lost when the server is killed. Threads: any.
 */
#ifndef API_INGEST_SOURCES_H
#define API_INGEST_SOURCES_H

#include "lib/base/buf.h"
#include "lib/base/err.h"

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
    SOURCES_SERVICES_MAX = 64 /* of one request; the last of them is all others */
};

/* What a request brought of one service (request.h has an array of them). */
struct sources_service {
    struct span name;
    uint64_t profile_count;
    uint64_t sample_count;
    uint64_t cut_string_count; /* of the tables that it shares with other services */
    const char *problem;       /* what of this service alone was dropped, and why; NULL: nothing */
};

struct sources *sources_create(void);
void sources_destroy(struct sources *sources); /* NULL is a no-op */

/* Of a request whose address has these labels: what is refused before it is decoded is told of
 * their service, or of the other where they have none. */
void sources_name_service(struct request *request, const struct batch_text_label *labels,
                          size_t count, struct span other);
/* Something of the service is dropped, though the request may succeed: it is told of the service.
 * Of several the first. */
void sources_note_problem(struct request *request, struct span service, const char *problem);
/* The service's place among the request's; those past the most share the last. */
uint32_t sources_find_service(struct request *request, struct span name);
/* After a request of an agent whose tenant is known; err is read when code is one. */
void sources_note(const struct request *request, enum err_code code, const struct err *err);

/* Writes what is new, of one tenant or (PG_NO_TENANT) of all. What could not be written stays. */
enum err_code sources_write(struct server *server, int64_t tenant_id, struct err *err) MUST_USE;
/* The same for all, and now and then drops who has not been seen for long. Background work. */
enum err_code sources_jobs_run(struct server *server, struct err *err) MUST_USE;

/* GET /api/v1/senders */
extern const struct route_table sources_routes;

#endif
