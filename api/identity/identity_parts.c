#include "api/identity/identity_parts.h"

#include "api/core/settings.h"
#include "api/identity/auth.h"
#include "api/identity/password_cache.h"
#include "api/identity/tenant_limits.h"
#include "lib/base/clock.h"
#include "lib/base/mem.h"

enum { AUTH_ENTRIES = 1 << 12 };

struct identity_parts *identity_parts_create(const struct settings *settings)
{
    struct identity_parts *parts = mem_new(struct identity_parts, 1);
    parts->auth = auth_create(AUTH_ENTRIES);
    parts->passwords = password_cache_create(clock_monotonic_ns);
    parts->tenant_limits = tenant_limits_create(settings->tenant_sample_labels);
    return parts;
}

void identity_parts_destroy(struct identity_parts *parts)
{
    if (!parts)
        return;
    tenant_limits_destroy(parts->tenant_limits);
    password_cache_destroy(parts->passwords);
    auth_destroy(parts->auth);
    mem_free(parts);
}
