/*
 * upload_assemble: the parts of an upload, and joining them into one object.
 */
#ifndef API_UPLOAD_UPLOAD_ASSEMBLE_H
#define API_UPLOAD_UPLOAD_ASSEMBLE_H

#include "api/http/request.h"
#include "lib/base/digest.h"

struct integrity_object;
struct upload;

/* The parts of an upload: upload.part_count entries. objects[n].key is NULL if part n is missing.
 */
struct upload_parts {
    struct integrity_object *objects;
};

/* Reads the rows of all parts that are stored; the result is in the request's arena. Errors:
 * ERR_DATABASE, ERR_BUSY. */
enum err_code upload_assemble_read_parts(struct request *request, const struct upload *upload,
                                         struct upload_parts *ret_parts, struct err *err) MUST_USE;

/*
 * Claims the upload, streams its parts into the object of that key (1 MiB of memory at a time) and
 * checks the SHA-256 if the client sent one. The claim lasts for two minutes, in which the caller
 * deletes the upload's row or releases the claim (upload_assemble_release). After a failure neither
 * claim nor object is left, and the parts are unchanged, except for stored parts that are damaged,
 * lost or unreadable: they are logged, counted and dropped, so that they are missing from then on
 * and the client sends them again. Errors: ERR_CONFLICT (parts are missing or were dropped, or
 * another request completes it), ERR_INVALID (the SHA-256 differs).
 */
enum err_code upload_assemble_join(struct request *request, const struct upload *upload,
                                   const char *key, uint8_t ret_sha256[DIGEST_BYTES],
                                   struct err *err) MUST_USE;

/* Opens the object that upload_assemble_join has just created. If it does not exist, that is
 * ERR_BUSY: it is not the client's fault, and the parts are still stored. Errors: as object_open.
 */
enum err_code upload_assemble_open(struct request *request, const char *key, int *ret_fd,
                                   uint64_t *ret_size, struct err *err) MUST_USE;
/* Releases the claim of upload_assemble_join, so that the upload can receive parts and be completed
 * again. If that fails, the claim ends by itself. */
void upload_assemble_release(struct request *request, const struct upload *upload);

#endif
