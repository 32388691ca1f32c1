/*
 * tenant: the own tenant and its audit log: /api/v1/tenant, /api/v1/audit.
 */
#ifndef API_TENANT_H
#define API_TENANT_H

#include "api/request.h"

enum { TENANT_MAX_NAME_BYTES = 100 };

enum err_code tenant_get(struct request *request, struct response *response, struct err *err);
enum err_code tenant_patch(struct request *request, struct response *response, struct err *err);
enum err_code tenant_get_audit(struct request *request, struct response *response, struct err *err);

#endif
