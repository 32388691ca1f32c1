#include "agent/window_text.h"

#include "lib/base/mem.h"

struct window_text_account {
    uint64_t used_bytes;
    bool is_refused;
};

void window_text_fini(struct window_text *text)
{
    map_u64_fini(&text->numbers);
    mem_free(text->accounts);
    *text = (struct window_text){0};
}

static struct window_text_account *find_account(struct window_text *text, uint32_t process_id)
{
    const uint32_t known = map_u64_find(&text->numbers, process_id);
    if (known != MAP_ABSENT)
        return &text->accounts[known];
    if (text->count == text->capacity) {
        text->capacity = text->capacity ? 2 * text->capacity : 64;
        text->accounts = mem_resize(text->accounts, text->capacity, sizeof(*text->accounts));
    }
    map_u64_add(&text->numbers, process_id, text->count);
    text->accounts[text->count] = (struct window_text_account){0};
    return &text->accounts[text->count++];
}

bool window_text_take(struct window_text *text, uint32_t process_id, size_t bytes,
                      bool *ret_is_first)
{
    struct window_text_account *account = find_account(text, process_id);
    const uint64_t of_others = text->used_bytes - account->used_bytes;
    if (account->used_bytes + bytes > (WINDOW_TEXT_MAX_BYTES - of_others) / 2) {
        *ret_is_first = !account->is_refused;
        account->is_refused = true;
        return false;
    }
    account->used_bytes += bytes;
    text->used_bytes += bytes;
    return true;
}

bool window_text_is_full(const struct window_text *text)
{
    return text->used_bytes > WINDOW_TEXT_MAX_BYTES / 4 * 3;
}
