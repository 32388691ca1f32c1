#include "agent/profile/window_quota.h"

#include "lib/base/mem.h"
#include "lib/base/vec.h"

struct window_quota_account {
    uint64_t used_bytes;
    bool is_refused;
};

void window_quota_fini(struct window_quota *quota)
{
    map_u64_fini(&quota->numbers);
    mem_free(quota->accounts);
    *quota = (struct window_quota){0};
}

static struct window_quota_account *find_account(struct window_quota *quota, uint64_t owner)
{
    const uint32_t known = map_u64_find(&quota->numbers, owner);
    if (known != MAP_ABSENT)
        return &quota->accounts[known];
    vec_reserve(quota->accounts, quota->capacity, quota->count + 1);
    map_u64_add(&quota->numbers, owner, quota->count);
    quota->accounts[quota->count] = (struct window_quota_account){0};
    return &quota->accounts[quota->count++];
}

/* Charges without a check may have made either sum larger than its limit. */
static bool has_space(const struct window_quota *quota, const struct window_quota_account *account,
                      size_t bytes)
{
    const uint64_t used_by_others = quota->used_bytes - account->used_bytes;
    return used_by_others < WINDOW_QUOTA_MAX_BYTES &&
           account->used_bytes + bytes <= (WINDOW_QUOTA_MAX_BYTES - used_by_others) / 2;
}

bool window_quota_take(struct window_quota *quota, uint64_t owner, size_t bytes, bool *ret_is_first)
{
    struct window_quota_account *account = find_account(quota, owner);
    if (!has_space(quota, account, bytes)) {
        *ret_is_first = !account->is_refused;
        account->is_refused = true;
        return false;
    }
    account->used_bytes += bytes;
    quota->used_bytes += bytes;
    return true;
}

void window_quota_charge(struct window_quota *quota, uint64_t owner, size_t bytes)
{
    find_account(quota, owner)->used_bytes += bytes;
    quota->used_bytes += bytes;
}

bool window_quota_has_space(struct window_quota *quota, uint64_t owner)
{
    return has_space(quota, find_account(quota, owner), 1);
}

bool window_quota_is_full(const struct window_quota *quota)
{
    return quota->used_bytes > WINDOW_QUOTA_MAX_BYTES / 4 * 3;
}
