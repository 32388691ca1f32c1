/*
 * upload_slot: limits the uploads that are decoded at a time.
 *
 * A small compressed body may take seconds of CPU time and much memory to decode, so a limit
 * on the rate of uploads does not suffice. A request therefore takes a concurrency slot
 * (api/http/concurrency_limit.h) before it decodes a profile or a symbol table. All clients without
 * credentials together have slots for a quarter of the workers, and each address among them has
 * one; each tenant has slots for a quarter. Further requests wait without a worker. Threads: any.
 */
#ifndef API_UPLOAD_UPLOAD_SLOT_H
#define API_UPLOAD_UPLOAD_SLOT_H

#include "lib/base/err_code.h"

struct request;

/* Call it before anything is changed: without a slot the request is put aside and handled again
 * from the start. Errors: ERR_BUSY. */
enum err_code upload_slot_take(struct request *request, struct err *err) MUST_USE;

#endif
