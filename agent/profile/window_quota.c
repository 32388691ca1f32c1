#include "agent/profile/window_quota.h"

#include "lib/base/mem.h"
#include "lib/base/vec.h"

struct window_quota_account {
    uint64_t used_bytes;
    bool is_refused;
};

void window_quota_fini(struct window_quota *text)
{
    map_u64_fini(&text->numbers);
    mem_free(text->accounts);
    *text = (struct window_quota){0};
}

static struct window_quota_account *find_account(struct window_quota *text, uint64_t owner)
{
    const uint32_t known = map_u64_find(&text->numbers, owner);
    if (known != MAP_ABSENT)
        return &text->accounts[known];
    vec_reserve(text->accounts, text->capacity, text->count + 1);
    map_u64_add(&text->numbers, owner, text->count);
    text->accounts[text->count] = (struct window_quota_account){0};
    return &text->accounts[text->count++];
}

/* What has come already may be more than it should. */
static bool has_room(const struct window_quota *text, const struct window_quota_account *account,
                     size_t bytes)
{
    const uint64_t of_others = text->used_bytes - account->used_bytes;
    return of_others < WINDOW_QUOTA_MAX_BYTES &&
           account->used_bytes + bytes <= (WINDOW_QUOTA_MAX_BYTES - of_others) / 2;
}

bool window_quota_take(struct window_quota *text, uint64_t owner, size_t bytes, bool *ret_is_first)
{
    struct window_quota_account *account = find_account(text, owner);
    if (!has_room(text, account, bytes)) {
        *ret_is_first = !account->is_refused;
        account->is_refused = true;
        return false;
    }
    account->used_bytes += bytes;
    text->used_bytes += bytes;
    return true;
}

void window_quota_charge(struct window_quota *text, uint64_t owner, size_t bytes)
{
    find_account(text, owner)->used_bytes += bytes;
    text->used_bytes += bytes;
}

bool window_quota_has_room(struct window_quota *text, uint64_t owner)
{
    return has_room(text, find_account(text, owner), 1);
}

bool window_quota_is_full(const struct window_quota *text)
{
    return text->used_bytes > WINDOW_QUOTA_MAX_BYTES / 4 * 3;
}
