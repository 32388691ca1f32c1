#include "api/share/share_runtime.h"

#include "api/core/server.h"
#include "api/share/profile_cache.h"
#include "api/share/view_counter.h"
#include "lib/base/flight_cache.h"
#include "lib/base/mem.h"

static void destroy_response(void *value)
{
    struct cached_response *response = value;
    report_body_fini(&response->body);
    mem_free(response);
}

struct share_runtime *share_runtime_create(size_t profile_cache_bytes)
{
    struct share_runtime *memory = mem_new(struct share_runtime, 1);
    memory->profiles = profile_cache_create(profile_cache_bytes);
    memory->views = view_counter_create();
    memory->responses = flight_cache_create(SHARE_RUNTIME_RESPONSE_BYTES, destroy_response);
    return memory;
}

void share_runtime_destroy(struct share_runtime *memory)
{
    if (!memory)
        return;
    flight_cache_destroy(memory->responses);
    view_counter_destroy(memory->views);
    profile_cache_destroy(memory->profiles);
    mem_free(memory);
}

void share_runtime_forget(struct server *server, const char *share_id)
{
    profile_cache_drop(server->shares->profiles, share_id);
    flight_cache_forget_prefix(server->shares->responses, share_id);
}
