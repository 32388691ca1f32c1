/*
 * debuginfod_client: downloads debug files by build id from debuginfod servers, which untrusted
 * users may have configured and which may be hostile.
 *
 * Requests: URL/buildid/<id>/debuginfo | executable | section/<name>, see debuginfod(8). (Servers
 * of elfutils 0.188 respond to HEAD with 400 and do not support ranges.)
 *
 * Connections: https, to public addresses only (lib/io/public_address.h). The address is checked
 * when the socket is opened, so that a name cannot change between lookup and use. A host that the
 * operator allows may also use http and any address. At most 3 redirects are followed; each is
 * checked like the first URL, and none leads from https to http. The authorization header is sent
 * only to the origin of its URL. No cookies, no proxy, no passwords from files.
 *
 * Responses: at most max_bytes, counted after decompression. The size must equal X-DEBUGINFOD-SIZE,
 * and the file must be ELF if that was requested. The reader of the file has to check that its
 * build id is the requested one.
 *
 * Load (debuginfod_retry.h): concurrent requests for one file are sent once; each host gets few
 * requests at a time, with pauses between retries; a host that fails is not contacted for a minute.
 *
 * Threads: a client may be shared.
 */
#ifndef LIB_IO_DEBUGINFOD_CLIENT_H
#define LIB_IO_DEBUGINFOD_CLIENT_H

#include "lib/base/err_code.h"
#include "lib/base/span.h"
#include "lib/io/debuginfod_retry.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct debuginfod_client;

enum { DEBUGINFOD_MAX_URLS = 16, DEBUGINFOD_REASON_BYTES = 256, DEBUGINFOD_MAX_ID_BYTES = 64 };

struct debuginfod_client_settings {
    const char *const *allowed_hosts; /* "host" or "host:port", in lower case */
    size_t allowed_host_count;
    const char *ca_file;    /* NULL: the system's */
    const char *user_agent; /* including the version */
    const char *folder;     /* for unlinked temporary files */
    /* 0 means the default. */
    int connect_ms;    /* 5 s */
    int first_byte_ms; /* 20 s until the response's header has arrived */
    int window_ms;     /* 10 s; in each such period window_bytes must arrive */
    int window_bytes;  /* 100 KB */
    int total_ms;      /* 300 s for one server, including retries */
    int pause_unit_ms; /* 1000; tests use shorter pauses between retries */
};

/* Copies the settings. Fails only if the system lacks resources. */
enum err_code debuginfod_client_create(const struct debuginfod_client_settings *settings,
                                       struct debuginfod_client **ret_client,
                                       struct err *err) MUST_USE;
void debuginfod_client_destroy(struct debuginfod_client *client); /* NULL is a no-op */

struct debuginfod_upstream {
    const char *url;  /* the URL without /buildid */
    const char *auth; /* a header line, "Authorization: Bearer …"; NULL: none */
};

/* Checks the form of the URL and of the header line without looking up the address. Errors:
 * ERR_INVALID (the message states what is wrong). */
enum err_code debuginfod_check_upstream(const struct debuginfod_client *client,
                                        const struct debuginfod_upstream *upstream,
                                        struct err *err) MUST_USE;

enum debuginfod_kind { DEBUGINFOD_DEBUGINFO, DEBUGINFOD_EXECUTABLE, DEBUGINFOD_SECTION };

struct debuginfod_request {
    /* tried one after the other until one has the file */
    const struct debuginfod_upstream *upstreams;
    size_t upstream_count; /* at most DEBUGINFOD_MAX_URLS */
    int64_t owner; /* the team that listed the upstreams; 0: the operator. Failures of a host
                      count only for requests of the same owner */
    struct span build_id;
    enum debuginfod_kind kind;
    const char *section; /* SECTION: its name, ".symtab" */
    uint64_t max_bytes;
    /* Called about once a second; false cancels the request. NULL: it is never cancelled. */
    bool (*may_go_on)(void *context);
    void *context;
};

struct debuginfod_response {
    enum debuginfod_outcome outcome;
    int fd; /* FOUND: read it with pread, since other callers may share it; the caller closes it */
    uint64_t bytes;  /* FOUND */
    size_t upstream; /* FOUND, REFUSED: index of the server */
    /* UNREACHABLE: the delay that a server requested; 0: none */
    int retry_after_s;
    char reason[DEBUGINFOD_REASON_BYTES]; /* "" if FOUND; else why there is no file, one sentence */
};

/*
 * Requests the file from each server in turn until one has it. Returns ERR_NONE for every outcome,
 * including ABSENT. If a server refuses or does not respond, the next one is tried. Errors:
 * ERR_CANCELLED, ERR_INVALID (the request), ERR_IO (the temporary file).
 */
enum err_code debuginfod_fetch(struct debuginfod_client *client,
                               const struct debuginfod_request *request,
                               struct debuginfod_response *ret_response, struct err *err) MUST_USE;

#endif
