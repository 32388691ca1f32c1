/*
 * share_admin: abuse reports of viewers, and their handling by the operator. Handlers of
 * share_routes.
 */
#ifndef API_SHARE_SHARE_ADMIN_H
#define API_SHARE_SHARE_ADMIN_H

#include "api/http/request.h"

enum { SHARE_REPORT_CHARACTERS = 2000, SHARE_REPORTS_PER_MINUTE = 5 };

/* POST /api/v1/shares/{id}/reports {reason}: from anyone who may read the share. */
enum err_code share_admin_report(struct request *request, struct response *response,
                                 struct err *err) MUST_USE;
/* GET /api/v1/admin/reports?cursor&limit: open reports, oldest first. */
enum err_code share_admin_list_reports(struct request *request, struct response *response,
                                       struct err *err) MUST_USE;
/* POST /api/v1/admin/reports/{id}/close: the share stays. */
enum err_code share_admin_close_report(struct request *request, struct response *response,
                                       struct err *err) MUST_USE;
/* POST /api/v1/admin/shares/{id}/takedown {reason}: ends the share and closes its reports. */
enum err_code share_admin_take_down(struct request *request, struct response *response,
                                    struct err *err) MUST_USE;

#endif
