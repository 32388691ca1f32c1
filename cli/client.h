/*
 * client: one server's API: address, token, retries, and problem documents turned into errors.
 *
 * What may pass is tried again, with jittered, doubling pauses: 429, 502, 503, 504 and failures of
 * the connection. How often depends on what would be lost by giving up: the requests of an upload
 * are patient (CLIENT_PATIENT_RETRIES); all others, behind which somebody waits for an answer, are
 * sent once more after half a second at most, and after a timeout, which was a long wait already,
 * not at all. A Retry-After is obeyed as often by both; one beyond two minutes ends the tries.
 * PERFOLIO_RETRIES, where it is set, is the number for every request. A request that is not
 * repeatable (it would act twice) is only sent again when it cannot have acted: nothing of it went
 * out, or the server answered 429 or 503.
 *
 * The token is only sent to the account's own server, and never in the clear over a network.
 * Threads: one.
 */
#ifndef CLI_CLIENT_H
#define CLI_CLIENT_H

#include "lib/io/http_client.h"

#include <jansson.h>

struct account;
struct arena;
struct client;
struct terminal;

enum { CLIENT_MAX_FIELDS = 6, CLIENT_PATIENT_RETRIES = 5 };

struct client_request {
    struct http_client_request http; /* method, body, response_fd, progress; url is a path here */
    struct http_client_field fields[CLIENT_MAX_FIELDS]; /* besides Authorization */
    size_t field_count;
    bool is_repeatable;
    bool is_patient;   /* part of an upload */
    bool is_anonymous; /* goes without the account's token */
};

/*
 * For base, or the account's server if it is NULL. Handles: ERR_INVALID (no server is known, a
 * token would travel in the clear), ERR_NOT_FOUND, ERR_IO (CA file).
 */
enum err_code client_create(const struct account *account, const char *base,
                            struct terminal *terminal, struct client **ret_client,
                            struct err *err) MUST_USE;
void client_destroy(struct client *client); /* NULL is a no-op */

/* The server's URL without "/" at its end. */
const char *client_base(const struct client *client);
/* Is there a token for this server? */
bool client_has_token(const struct client *client);

/* GET, HEAD, PUT and DELETE are repeatable, others not; path starts with "/". */
void client_request_init(struct client_request *request, const char *method, const char *path);
void client_request_add(struct client_request *request, const char *name, const char *value);

/*
 * Sends, tries again as said above. 2xx is success; other answers become errors by their problem
 * document's type or else their status. A Perfolio-Warning is told to the person. Handles what
 * http_client_send does, and ERR_INVALID, ERR_UNAUTHENTICATED, ERR_FORBIDDEN, ERR_NOT_FOUND,
 * ERR_GONE, ERR_CONFLICT, ERR_TOO_LARGE, ERR_RATE_LIMITED, ERR_QUOTA, ERR_BUSY. Where no connection
 * could be made, the message says what to look at.
 */
enum err_code client_send(struct client *client, const struct client_request *request,
                          struct http_client_response *answer, struct err *err) MUST_USE;

/* As client_send; the answer must be JSON. The caller owns *ret_json (json_decref). */
enum err_code client_send_json(struct client *client, const struct client_request *request,
                               json_t **ret_json, struct err *err) MUST_USE;

/* GET path. */
enum err_code client_get_json(struct client *client, const char *path, json_t **ret_json,
                              struct err *err) MUST_USE;
/* method with a JSON body; *ret_json is NULL after 204. */
enum err_code client_call_json(struct client *client, const char *method, const char *path,
                               const json_t *body, json_t **ret_json, struct err *err) MUST_USE;

/* "?name=value", or "&name=value" where path has parameters; nothing when value is NULL. */
void client_append_parameter(struct buf *path, const char *name, const char *value);

/* A text member, or fallback when it is absent or of another kind. Borrowed from json. */
const char *client_text(const json_t *json, const char *name, const char *fallback);

static inline void client_cleanup(struct client **client)
{
    client_destroy(*client);
}
#define client_auto __attribute__((cleanup(client_cleanup))) struct client *

/*
 * How long to pause before try number attempt (from 1), in ms: half to all of 500 ms doubled each
 * time, at most 30 s; random is any number. With a Retry-After that, and up to a quarter more.
 * -1: do not try again, it would take longer than two minutes.
 */
int64_t client_pause_ms(int attempt, int retry_after_s, uint64_t random);

/* The error that an answer of 400 and more stands for; returns its code. */
enum err_code client_problem(const struct http_client_response *answer, struct err *err);

#endif
