#include "store/query/frame_resolution.h"

#include "lib/profile/symbolize.h"
#include "store/types.h"

struct resolution {
    const struct frame_resolver *resolver;
    int64_t tenant_id;
    const struct names_memory *memory;
    bool is_incomplete;
};

static enum err_code query_resolver(void *context, const struct symbolize_query *query,
                                    struct arena *arena, struct symbolize_frames *ret_frames,
                                    struct err *err)
{
    struct resolution *resolution = context;
    const struct frame_query of_tenant = {.tenant_id = resolution->tenant_id,
                                          .build_id = query->build_id,
                                          .file = query->file,
                                          .addresses = query->addresses,
                                          .address_count = query->address_count,
                                          .is_incomplete = &resolution->is_incomplete};
    return resolution->resolver->resolve(resolution->resolver->context, &of_tenant, arena,
                                         ret_frames, err);
}

static enum err_code prepare_binaries(void *context, const struct symbolize_binary *binaries,
                                      uint32_t count, struct err *err)
{
    const struct resolution *resolution = context;
    const struct frame_resolver *resolver = resolution->resolver;
    return resolver->prepare
               ? resolver->prepare(resolver->context, resolution->tenant_id, binaries, count, err)
               : ERR_NONE;
}

static enum err_code check_memory(void *context, size_t bytes, struct err *err)
{
    const struct resolution *resolution = context;
    return resolution->memory ? resolution->memory->check(resolution->memory->context, bytes, err)
                              : ERR_NONE;
}

enum err_code frame_resolution_resolve(const struct frame_resolver *resolver, int64_t tenant_id,
                                       const struct names_memory *memory,
                                       const struct profile *tables, struct arena *arena,
                                       struct profile *ret_named, struct store_symbolization *names,
                                       struct err *err)
{
    struct resolution resolution = {.resolver = resolver, .tenant_id = tenant_id, .memory = memory};
    const struct symbolize_resolver tenant_resolver = {.context = &resolution,
                                                       .prepare = prepare_binaries,
                                                       .resolve = query_resolver,
                                                       .check_memory = check_memory};
    struct symbolize_counts counts = {0};
    enum err_code code = symbolize_profile(resolver ? &tenant_resolver : NULL, SYMBOLIZE_UNNAMED,
                                           tables, arena, ret_named, &counts, err);
    names->address_count += counts.address_count;
    names->unknown_count += counts.unknown_count;
    names->is_incomplete |= resolution.is_incomplete;
    return code;
}
