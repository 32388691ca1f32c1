/*
 * linked_object: a link or an id of the command line, with a connection to its server.
 */
#ifndef CLI_LINKED_OBJECT_H
#define CLI_LINKED_OBJECT_H

#include "cli/cli.h"
#include "cli/client.h"
#include "cli/link.h"

struct linked_object {
    struct link link;
    struct client *client; /* connects to the link's server; for a bare id to the account's */
    bool
        *ret_is_empty; /* NULL, or set by linked_object_download: the query matched no stored row */
    const char *password; /* unlocks the share; NULL: it has no password */
};

/* The caller closes *ret_target. Errors: ERR_INVALID as a usage error (not a link, a link of a
 * diff, no server), and the errors of client_create. */
enum err_code linked_object_open(struct cli *cli, const char *text,
                                 struct linked_object *ret_target, struct err *err) MUST_USE;
void linked_object_close(struct linked_object *target); /* safe to repeat */

/*
 * Downloads path of the target's server to fd, with the password of the share if there is one. name
 * is shown in the progress bar. If fd is a terminal, text is printed without control characters;
 * otherwise the bytes are unchanged. Errors: those of client_send, ERR_TOO_LARGE (more than
 * max_bytes), ERR_INVALID (fd is a terminal, and the response is not text), ERR_CANCELLED (the
 * reader of standard output closed it).
 */
enum err_code linked_object_download(const struct linked_object *target, const char *path,
                                     const char *name, uint64_t max_bytes, int fd,
                                     struct terminal *terminal, struct err *err) MUST_USE;

/* Adds the header of the share's password, if there is one. */
void linked_object_add_password(const struct linked_object *target, struct client_request *request);

static inline void linked_object_cleanup(struct linked_object *target)
{
    linked_object_close(target);
}
#define linked_object_auto __attribute__((cleanup(linked_object_cleanup))) struct linked_object

#endif
