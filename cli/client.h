/*
 * client: requests to one server: address, token, retries, and conversion of problem documents to
 * errors.
 *
 * Temporary failures are retried with doubling, jittered pauses: failed connections, timeouts,
 * status 408, 429, 502, 503 and 504, and problem documents of the types busy, database, rate limit
 * and timeout with any other status. Requests of an upload (has_many_retries) are retried up to
 * CLIENT_MANY_RETRIES times. All other requests are interactive: they are retried once after at
 * most 500 ms, and not after a timeout, because the user has waited long already. If the server
 * sends Retry-After, requests of both kinds are retried up to CLIENT_MANY_RETRIES times after that
 * pause; a pause of more than two minutes ends the retries. A server that refuses the connection
 * and has never responded is not retried. PERFOLIO_RETRIES overrides the number for every request.
 * A request that is not repeatable is sent again only if it had no effect: no byte of it was sent,
 * or the server returned 429 or 503.
 *
 * The token is sent only to the server of the account, and never unencrypted over a network.
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

enum { CLIENT_MAX_FIELDS = 6, CLIENT_MANY_RETRIES = 5 };

struct client_request {
    struct http_client_request http; /* method, body, response_fd, progress; url is a path here */
    struct http_client_field fields[CLIENT_MAX_FIELDS]; /* besides Authorization */
    size_t field_count;
    bool is_repeatable;
    bool has_many_retries; /* part of an upload */
    bool is_anonymous;     /* sent without the account's token */
};

/*
 * Creates a client for the server base, or for the account's server if base is NULL. The client
 * sends the token only if base is the account's server (token_destination_is_same). Errors:
 * ERR_INVALID (no server is set, or the token would be sent unencrypted), ERR_NOT_FOUND, ERR_IO (CA
 * file).
 */
enum err_code client_create(const struct account *account, const char *base,
                            struct terminal *terminal, struct client **ret_client,
                            struct err *err) MUST_USE;
void client_destroy(struct client *client); /* NULL is a no-op */

/* The server's URL without "/" at its end. */
const char *client_base(const struct client *client);
/* Whether the client sends a token. */
bool client_has_token(const struct client *client);

/* GET, HEAD, PUT and DELETE are repeatable, others not; path starts with "/". */
void client_request_init(struct client_request *request, const char *method, const char *path);
/* Adds a header field; name and value are borrowed. A field beyond CLIENT_MAX_FIELDS is dropped. */
void client_request_add(struct client_request *request, const char *name, const char *value);

/*
 * Sends the request, with retries as described above. The caller initialises *response with
 * http_client_response_init. 2xx is success. For any other status the code is the one that the type
 * of the problem document names, which may be any code of the server, or follows from the status
 * (code_of_status in client.c). A Perfolio-Warning is printed. Errors: these, and those of
 * http_client_send. If no connection could be made, the message names what to check.
 */
enum err_code client_send(struct client *client, const struct client_request *request,
                          struct http_client_response *response, struct err *err) MUST_USE;

/* As client_send; the response must be JSON. The caller owns *ret_json (json_decref), which is NULL
 * after status 204. Errors also: ERR_NETWORK (no JSON, or an empty response). */
enum err_code client_send_json(struct client *client, const struct client_request *request,
                               json_t **ret_json, struct err *err) MUST_USE;

/* Sends a GET request for path, as client_send_json; *ret_json is never NULL. */
enum err_code client_get_json(struct client *client, const char *path, json_t **ret_json,
                              struct err *err) MUST_USE;
/* Sends a request, as client_send_json, with body as JSON. body NULL: without a body. */
enum err_code client_call_json(struct client *client, const char *method, const char *path,
                               const json_t *body, json_t **ret_json, struct err *err) MUST_USE;

/* Appends "?name=value", or "&name=value" if path has parameters; nothing if value is NULL. */
void client_append_parameter(struct buf *path, const char *name, const char *value);

/* A text member, or fallback if it is absent or not a text. Borrowed from json. */
const char *client_text(const json_t *json, const char *name, const char *fallback);

static inline void client_cleanup(struct client **client)
{
    client_destroy(*client);
}
#define client_auto __attribute__((cleanup(client_cleanup))) struct client *

/*
 * The pause before a retry, in ms; attempt counts from 1, random is any number. Without Retry-After
 * (0): between half and all of 500 ms, doubled for each attempt, at most 30 s. With it: that time
 * and up to a quarter more. -1: no retry, because it would begin after more than two minutes.
 */
int64_t client_pause_ms(int attempt, int retry_after_s, uint64_t random);

/* Converts a response that is not 2xx to an error, as client_send; returns its code. */
enum err_code client_problem(const struct http_client_response *response, struct err *err);

#endif
