/*
 * window_text: how much of a window's text each process may bring, so that the batch is one that
 * can be sent and has the names of others, too.
 *
 * A process has at most half of what others left. Only new text is asked for: what is there already
 * costs nobody. All zeros is empty and ready for use. Threads: one.
 */
#ifndef AGENT_WINDOW_TEXT_H
#define AGENT_WINDOW_TEXT_H

#include "lib/base/map.h"

enum { WINDOW_TEXT_MAX_BYTES = 6 << 20 };

struct window_text_account;

struct window_text {
    struct map_u64 numbers; /* of accounts, by process */
    struct window_text_account *accounts;
    uint32_t count;
    uint32_t capacity;
    uint64_t used_bytes;
};

void window_text_fini(struct window_text *text);

/* False: there is no room for so much more of this process; *ret_is_first: for the first time. */
bool window_text_take(struct window_text *text, uint32_t process_id, size_t bytes,
                      bool *ret_is_first);
/* Little room is left for those that come. */
bool window_text_is_full(const struct window_text *text);

#endif
