/*
 * supervisor: `perfoliod serve`: prepares the data folder, starts PostgreSQL and the server under
 * unprivileged users, keeps both running, stops both in order.
 *
 * The data folder D:
 *   pg/           the private cluster                         PostgreSQL's user, 0700
 *   objects/      uploaded bytes                              the server's user, 0700
 *   tls/          see tls_files.h                             the supervisor's user, 0755
 *   admin.token   operator's token of tenant default          SUDO_UID's or the supervisor's, 0600
 *   run/          the database's socket, if D's path is short enough and reachable
 *   postgres.log  PostgreSQL's messages; restarted at 16 MiB, the last part is in postgres.log.old
 *   lock          held by the supervisor and the server; contains the supervisor's pid
 *
 * One thread. Work that must run as another user, or that uses a library which creates threads,
 * runs in a child process: this executable again, with a subcommand that ends in "-child" and the
 * settings in the environment. A child dies with the supervisor.
 */
#ifndef API_SUPERVISOR_SUPERVISOR_H
#define API_SUPERVISOR_SUPERVISOR_H

#include "lib/base/err_code.h"

struct settings;

/* Serves until SIGTERM or SIGINT. Completes settings: sets public_url and makes paths absolute. */
enum err_code supervisor_run(struct settings *settings, struct err *err) MUST_USE;

/*
 * The children's main functions, called by main with the arguments after the subcommand:
 *   serve-child SOCKET_DIR READY_FD FD,FD,…      ("" and -1 if there is none)
 *   migrate-child SOCKET_DIR                     (known token on stdin; token and code to stdout)
 *   vacuum-child SOCKET_DIR
 */
enum err_code supervisor_serve_child(const struct settings *settings, int argument_count,
                                     char *const *arguments, struct err *err) MUST_USE;
enum err_code supervisor_migrate_child(const struct settings *settings, int argument_count,
                                       char *const *arguments, struct err *err) MUST_USE;
enum err_code supervisor_vacuum_child(const struct settings *settings, int argument_count,
                                      char *const *arguments, struct err *err) MUST_USE;

#endif
