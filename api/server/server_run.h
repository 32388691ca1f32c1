/*
 * server_run: the process that serves: creates all parts (api/core/server.h), runs background work,
 * and destroys the parts in order.
 */
#ifndef API_SERVER_SERVER_RUN_H
#define API_SERVER_SERVER_RUN_H

#include "lib/base/err_code.h"

#include <stdbool.h>

struct settings;

enum { SERVER_MAX_LISTENERS = 16 };

enum {
    /* How long a request waits for a database that restarts, before it gets 503. */
    SERVER_DATABASE_WAIT_MS = 1500,
    /* Deadlines of statements while the database responds: of requests, and of background work and
     * operator routes, which delete and count much at once. */
    SERVER_STATEMENT_MS = 15000,
    SERVER_JOBS_STATEMENT_MS = 60000,
};

/* The sockets and connections that the supervisor passes to the process that serves. */
struct server_start {
    const char *conninfo;      /* for perfolio_server, or for an external database */
    const char *jobs_conninfo; /* for perfolio_jobs, or for the same external database */
    bool set_roles;            /* SET ROLE to those two after connecting (external database) */
    int listeners[SERVER_MAX_LISTENERS]; /* bound and listening */
    int listener_count;
    int ready_fd; /* gets one byte when the server is ready; -1: unused */
};

/* Creates all parts, serves until SIGTERM or SIGINT, then lets requests in flight finish. SIGHUP
 * loads the certificate again and reopens the access log. settings name the certificate, the key
 * and the data folder with paths that this process can use. Called once, by main. */
enum err_code server_run(const struct settings *settings, const struct server_start *start,
                         struct err *err) MUST_USE;

#endif
