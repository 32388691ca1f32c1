/*
 * debuginfod_client: gets debug files by build id from debuginfod servers, which strangers may have
 * named and which may be hostile.
 *
 * What is asked for:  URL/buildid/<id>/debuginfo | executable | section/<name>
 * (debuginfod(8); servers of elfutils 0.188 answer HEAD with 400 and know no ranges.)
 *
 * Where it connects to: https, to public addresses only (lib/io/public_address.h), looked at when
 * the socket is opened, so that a name cannot change between look-up and use. A host that the
 * operator allows may also speak http and have any address. At most 3 redirects, each checked as
 * the first URL, never from https to http; a header that proves who asks goes to the origin of its
 * URL only. No cookies, no proxy, no passwords from files.
 *
 * What it takes: at most max_bytes, counted after decompression and never more than
 * X-DEBUGINFOD-SIZE announces, which must be what arrives; an ELF file where one is asked for. That
 * its build id is the one that was asked for is for the reader of the file to see.
 *
 * How it behaves (debuginfod_manners.h): one request for what several want at once, few to a host
 * at a time, pauses between tries, a host that fails is left alone for a minute.
 *
 * Threads: a client serves any.
 */
#ifndef LIB_IO_DEBUGINFOD_CLIENT_H
#define LIB_IO_DEBUGINFOD_CLIENT_H

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/io/debuginfod_manners.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct debuginfod_client;

enum { DEBUGINFOD_MAX_URLS = 16, DEBUGINFOD_REASON_BYTES = 256, DEBUGINFOD_MAX_ID_BYTES = 64 };

struct debuginfod_client_settings {
    const char *const *allowed_hosts; /* "host" or "host:port", in lower case */
    size_t allowed_host_count;
    const char *ca_file;    /* NULL: the system's */
    const char *user_agent; /* with the version */
    const char *folder;     /* for unlinked temporary files */
    /* 0 each for the usual. */
    int connect_ms;    /* 5 s */
    int first_byte_ms; /* 20 s until the answer's header is there */
    int window_ms;     /* 10 s, in each of which … */
    int window_bytes;  /* … 100 KB must come */
    int total_ms;      /* 300 s for one server, with all tries */
    int pause_unit_ms; /* 1000; tests have less patience between tries */
};

/* Copies what it needs. Handles: nothing but failures of the system. */
enum err_code debuginfod_client_create(const struct debuginfod_client_settings *settings,
                                       struct debuginfod_client **ret_client,
                                       struct err *err) MUST_USE;
void debuginfod_client_destroy(struct debuginfod_client *client); /* NULL is a no-op */

struct debuginfod_upstream {
    const char *url;  /* what stands before /buildid */
    const char *auth; /* a header line, "Authorization: Bearer …"; NULL: none */
};

/* Is that a URL that the client would ask, and a header line that it would send? Addresses are not
 * looked up. Handles: ERR_INVALID (the message says what is wrong). */
enum err_code debuginfod_check_upstream(const struct debuginfod_client *client,
                                        const struct debuginfod_upstream *upstream,
                                        struct err *err) MUST_USE;

enum debuginfod_kind { DEBUGINFOD_DEBUGINFO, DEBUGINFOD_EXECUTABLE, DEBUGINFOD_SECTION };

struct debuginfod_request {
    const struct debuginfod_upstream *upstreams; /* asked one after the other, until one has it */
    size_t upstream_count;                       /* at most DEBUGINFOD_MAX_URLS */
    struct span build_id;
    enum debuginfod_kind kind;
    const char *section; /* SECTION: its name, ".symtab" */
    uint64_t max_bytes;
    bool (*may_go_on)(void *context); /* asked about once a second; false cancels. NULL: always */
    void *context;
};

struct debuginfod_answer {
    enum debuginfod_outcome outcome;
    int fd; /* FOUND: read it with pread, as others may have the same; the caller closes it */
    uint64_t bytes;                       /* FOUND */
    size_t upstream;                      /* FOUND, REFUSED: which one */
    int retry_after_s;                    /* UNREACHABLE: what a server asked for; 0: nothing */
    char reason[DEBUGINFOD_REASON_BYTES]; /* else: a sentence for people; "" when FOUND */
};

/*
 * ERR_NONE with every outcome, also that nobody has it. An upstream that refuses or does not answer
 * does not keep the next from being asked. Handles: ERR_CANCELLED, ERR_INVALID (the request),
 * ERR_IO (the temporary file).
 */
enum err_code debuginfod_fetch(struct debuginfod_client *client,
                               const struct debuginfod_request *request,
                               struct debuginfod_answer *ret_answer, struct err *err) MUST_USE;

#endif
