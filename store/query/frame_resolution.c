#include "store/query/frame_resolution.h"

#include "lib/profile/symbolize.h"
#include "store/store.h"

struct asking {
    const struct frame_resolver *resolver;
    int64_t tenant_id;
};

static enum err_code query_resolver(void *context, const struct symbolize_query *question,
                                    struct arena *arena, struct symbolize_frames *answers,
                                    struct err *err)
{
    const struct asking *asking = context;
    const struct frame_query of_tenant = {.tenant_id = asking->tenant_id,
                                          .build_id = question->build_id,
                                          .file = question->file,
                                          .addresses = question->addresses,
                                          .address_count = question->address_count};
    return asking->resolver->resolve(asking->resolver->context, &of_tenant, arena, answers, err);
}

static enum err_code prepare_binaries(void *context, const struct symbolize_binary *binaries,
                                      uint32_t count, struct err *err)
{
    const struct asking *asking = context;
    const struct frame_resolver *resolver = asking->resolver;
    return resolver->prepare
               ? resolver->prepare(resolver->context, asking->tenant_id, binaries, count, err)
               : ERR_NONE;
}

enum err_code frame_resolution_resolve(const struct frame_resolver *resolver, int64_t tenant_id,
                                       const struct profile *tables, struct arena *arena,
                                       struct profile *ret_named, struct store_symbolization *names,
                                       struct err *err)
{
    struct asking asking = {.resolver = resolver, .tenant_id = tenant_id};
    const struct symbolize_resolver asker = {
        .context = &asking, .prepare = prepare_binaries, .resolve = query_resolver};
    struct symbolize_counts counts = {0};
    enum err_code code = symbolize_profile(resolver ? &asker : NULL, SYMBOLIZE_UNNAMED, tables,
                                           arena, ret_named, &counts, err);
    names->address_count += counts.address_count;
    names->unknown_count += counts.unknown_count;
    return code;
}
