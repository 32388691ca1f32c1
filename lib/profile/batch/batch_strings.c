#include "lib/profile/batch/batch_strings.h"

#include "lib/base/arena.h"
#include "lib/base/mem.h"
#include "lib/base/vec.h"
#include "lib/profile/profile.h"

/* Sizes are compared modulo this number. */
enum { SIZE_CLASSES = 1024 };

void batch_strings_want(struct batch_strings *strings, struct span text)
{
    const uint32_t next = strings->texts.count;
    if (text.size == 0 || map_bytes_add(&strings->texts, text, next) != next)
        return;
    vec_reserve(strings->bytes, strings->capacity, next + 1);
    strings->bytes[next] = text;
}

static void find_texts(struct batch_strings *strings, const struct profile *profile)
{
    bool has_size[SIZE_CLASSES] = {false};
    for (uint32_t i = 0; i < strings->texts.count; i++)
        has_size[strings->bytes[i].size % SIZE_CLASSES] = true;
    for (uint32_t i = 1; i < profile->string_count; i++) {
        const struct span string = profile->strings[i];
        if (!has_size[string.size % SIZE_CLASSES])
            continue;
        const uint32_t text = map_bytes_find(&strings->texts, string);
        if (text != MAP_ABSENT)
            strings->numbers[text] = i;
    }
}

const struct span *batch_strings_finish(struct batch_strings *strings,
                                        const struct profile *profile, uint32_t *ret_count)
{
    uint32_t count = profile->string_count;
    strings->numbers = mem_new(uint32_t, strings->texts.count);
    find_texts(strings, profile);
    struct span *all =
        arena_new_raw(profile->arena, struct span, (size_t)count + strings->texts.count);
    memcpy(all, profile->strings, count * sizeof(*all));
    for (uint32_t i = 0; i < strings->texts.count; i++) {
        if (strings->numbers[i])
            continue;
        const struct span text = strings->bytes[i];
        strings->numbers[i] = count;
        all[count++] = span_of(arena_strndup(profile->arena, text.data, text.size), text.size);
    }
    *ret_count = count;
    return all;
}

uint32_t batch_strings_number(const struct batch_strings *strings, struct span text)
{
    const uint32_t found = text.size ? map_bytes_find(&strings->texts, text) : MAP_ABSENT;
    return found == MAP_ABSENT ? 0 : strings->numbers[found];
}

void batch_strings_fini(struct batch_strings *strings)
{
    map_bytes_fini(&strings->texts);
    mem_free(strings->bytes);
    mem_free(strings->numbers);
}
