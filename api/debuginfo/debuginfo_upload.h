/*
 * debuginfo_upload: the handlers that receive symbol tables, debug files and executables; see
 * api/debuginfo/debuginfo_routes.h.
 */
#ifndef API_DEBUGINFO_DEBUGINFO_UPLOAD_H
#define API_DEBUGINFO_DEBUGINFO_UPLOAD_H

#include "lib/base/err_code.h"

struct request;
struct response;

enum err_code debuginfo_upload_table(struct request *request, struct response *response,
                                     struct err *err);
enum err_code debuginfo_upload_debuginfo(struct request *request, struct response *response,
                                         struct err *err);
enum err_code debuginfo_upload_executable(struct request *request, struct response *response,
                                          struct err *err);

#endif
