/*
 * debuginfo_routes: debug information of a team's binaries: upload, list, delete, and serve it to
 * debuggers.
 *
 *   POST   /api/v1/debuginfo/{build id}/table        a symbol table that was built elsewhere
 *   POST   /api/v1/debuginfo/{build id}/debuginfo    a debug file; a job builds its table
 *   POST   /api/v1/debuginfo/{build id}/executable   the binary itself; the same
 *   GET    /api/v1/debuginfo                         the list, by build id
 *   GET    /api/v1/debuginfo/{build id}              one: table, files, what is missing
 *   DELETE /api/v1/debuginfo/{build id}              deletes table and files
 *   GET    /buildid/{build id}/debuginfo|executable  the debuginfod protocol, for gdb and perf
 *
 * The three uploads take the bytes as body, or ?upload= with the id of an upload in parts
 * (UPLOAD_DEBUGINFO_PATH of api/upload/upload.h). All routes see only the data of the requesting
 * team: build ids of other teams get the same responses as unknown ones. All need the scope
 * debuginfo.
 */
#ifndef API_DEBUGINFO_DEBUGINFO_ROUTES_H
#define API_DEBUGINFO_DEBUGINFO_ROUTES_H

#include "api/http/route.h"

extern const struct route_table debuginfo_routes;

#endif
