/*
 * principal: the authenticated client of a request. Filled by api/identity/auth.c before a handler
 * runs, from a bearer token or a browser session; read by every access check.
 */
#ifndef API_HTTP_PRINCIPAL_H
#define API_HTTP_PRINCIPAL_H

#include "lib/base/buf.h"

#include <stdbool.h>
#include <stdint.h>

enum principal_kind { PRINCIPAL_ANONYMOUS, PRINCIPAL_TOKEN, PRINCIPAL_USER };

/* Ordered: a higher role may do everything that a lower one may. */
enum role { ROLE_NONE, ROLE_VIEWER, ROLE_MEMBER, ROLE_OWNER };

/* The rights of a token. A user has those of the role (auth_role_scopes). */
enum scope {
    SCOPE_INGEST = 1 << 0,
    SCOPE_READ = 1 << 1,
    SCOPE_SHARE = 1 << 2, /* create, edit and delete shares */
    SCOPE_DEBUGINFO = 1 << 3,
    SCOPE_ADMIN = 1 << 4, /* users, tokens, settings of the own tenant */
    SCOPE_OPERATOR =
        1 << 5, /* the whole server: tenants, reports, takedown; never granted through the API */
};

/* Tenants that migrations create. */
#define TENANT_ANONYMOUS INT64_C(1)
#define TENANT_DEFAULT INT64_C(2)

struct principal {
    enum principal_kind kind;
    int64_t tenant_id; /* TENANT_ANONYMOUS for anonymous */
    int64_t user_id;   /* 0 unless a user */
    int64_t token_id;  /* 0 unless a token */
    enum role role;    /* of a user */
    unsigned scopes;   /* enum scope bits */
};

static inline bool principal_has(const struct principal *principal, unsigned scopes)
{
    return (principal->scopes & scopes) == scopes;
}

/* The scope of a name; 0 if no scope has that name. */
unsigned principal_parse_scope(struct span name);
/* Appends the names as a JSON list. */
void principal_append_scopes(struct buf *buf, unsigned scopes);
/* The name of the first of these scopes in the order of the enumeration; NULL if there is none. */
const char *principal_first_scope(unsigned scopes);

#endif
