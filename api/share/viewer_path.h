/*
 * viewer_path: the address of a view on this server: "/p/<id>?…" of a share, "/d/<a>..<b>?…" of two
 * compared. For paths from clients that are stored and later sent as an address.
 *
 * A path is accepted in one form only: no scheme and no host, "/" only where it belongs, ids of 22
 * letters and digits, no "#", and a query of printable ASCII without characters that a browser
 * would encode, each "%" followed by two digits that stand for no control character. So it can
 * neither lead to another server nor end a header line. Threads: any.
 */
#ifndef API_SHARE_VIEWER_PATH_H
#define API_SHARE_VIEWER_PATH_H

#include "lib/base/buf.h"
#include "lib/base/err_code.h"

struct viewer_path {
    struct span ids[2]; /* of a share; of a comparison the base comes first */
    size_t id_count;
    struct span query; /* without its "?"; may be empty */
};

/* The spans point into text. Errors: ERR_INVALID. */
enum err_code viewer_path_parse(struct span text, struct viewer_path *ret_path,
                                struct err *err) MUST_USE;

/* Checks that query, without its "?", has the form described above. name is the name of the field
 * in the text of an error. Errors: ERR_INVALID. */
enum err_code viewer_path_check_query(const char *name, struct span query,
                                      struct err *err) MUST_USE;

#endif
