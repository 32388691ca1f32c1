/*
 * identity_parts: what api/identity keeps in memory between requests: a part of struct server
 * (api/core/server.h). Threads: any; each member has its own lock.
 */
#ifndef API_IDENTITY_IDENTITY_PARTS_H
#define API_IDENTITY_IDENTITY_PARTS_H

struct auth;
struct password_cache;
struct settings;
struct tenant_limits_memory;

struct identity_parts {
    struct auth *auth;                /* api/identity/auth.h: cache of tokens */
    struct password_cache *passwords; /* api/identity/password_cache.h: matched recently */
    struct tenant_limits_memory *tenant_limits; /* api/identity/tenant_limits.h */
};

struct identity_parts *identity_parts_create(const struct settings *settings);
void identity_parts_destroy(struct identity_parts *parts); /* NULL is a no-op */

#endif
