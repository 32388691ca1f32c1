/*
 * share_list: GET /api/v1/shares: the shares of the requesting tenant, newest first, with search in
 * title, description, file name and labels, in pages by a cursor that new shares do not shift. A
 * page ends early when its texts have 8 MiB. A search takes a slot (concurrency_limit); after 2 s
 * it ends with ERR_BUSY.
 */
#ifndef API_SHARE_SHARE_LIST_H
#define API_SHARE_SHARE_LIST_H

#include "api/http/request.h"

enum { SHARE_LIST_DEFAULT = 50, SHARE_LIST_MAX = 200 };

enum err_code share_list_handle(struct request *request, struct response *response,
                                struct err *err) MUST_USE;

#endif
