/*
 * ingest_storage: whether a tenant may store more continuous profiles: their bytes, those of blocks
 * that merges have replaced, and the number of its blocks. Threads: any.
 */
#ifndef API_INGEST_INGEST_STORAGE_H
#define API_INGEST_INGEST_STORAGE_H

#include "lib/base/err_code.h"

struct server;
struct tenant_limits;

/* Compares the sizes that were read with the limits. Errors: ERR_QUOTA (the limit of stored bytes),
 * ERR_RATE_LIMITED (until blocks are merged or replaced blocks are deleted); both with
 * retry_after_s. */
enum err_code ingest_storage_check(const struct server *server, const struct tenant_limits *limits,
                                   struct err *err) MUST_USE;

#endif
