#include "lib/symbols/symbol_names.h"

#include "lib/base/compress.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/symbols/symbol_table_read.h"

/* With 64 KiB of names and 4 bytes per item, about 600 KiB for functions and as much for files. */
enum { EXPANDED_FRAMES = 8 };

struct item {
    struct span first;
    struct span second;
};

/* An expanded frame and the offsets of its items. */
struct expanded_frame {
    uint32_t number; /* SYMBOL_NONE: unused */
    uint32_t item_count;
    uint64_t used; /* value of names->clock at the last use */
    uint32_t flat_bytes;
    uint8_t *flat;
    uint32_t *offsets;
    uint32_t offset_capacity;
};

struct symbol_names {
    const struct symbol_table *table;
    struct expanded_frame functions[EXPANDED_FRAMES];
    struct expanded_frame files[EXPANDED_FRAMES];
    uint64_t clock;
};

struct symbol_names *symbol_names_create(const struct symbol_table *table)
{
    struct symbol_names *names = mem_new(struct symbol_names, 1);
    names->table = table;
    for (int i = 0; i < EXPANDED_FRAMES; i++)
        names->functions[i].number = names->files[i].number = SYMBOL_NONE;
    return names;
}

void symbol_names_destroy(struct symbol_names *names)
{
    if (!names)
        return;
    for (int i = 0; i < EXPANDED_FRAMES; i++) {
        mem_free(names->functions[i].flat);
        mem_free(names->functions[i].offsets);
        mem_free(names->files[i].flat);
        mem_free(names->files[i].offsets);
    }
    mem_free(names);
}

/* ---- frames ---- */

static struct symbol_table_frame frame_at(const struct symbol_strings *strings, uint32_t number)
{
    struct symbol_table_frame frame;
    memcpy(&frame, strings->frames.data + number * sizeof(frame), sizeof(frame));
    return frame;
}

static bool read_varint(struct span *rest, uint32_t *ret_number)
{
    uint32_t number = 0;
    for (unsigned shift = 0; shift < 35 && rest->size; shift += 7) {
        const uint32_t byte = *rest->data;
        *rest = span_of(rest->data + 1, rest->size - 1);
        number |= (byte & 0x7f) << shift;
        if (byte < 0x80) {
            *ret_number = number;
            return true;
        }
    }
    return false;
}

static bool read_bytes(struct span *rest, uint32_t size, struct span *ret_bytes)
{
    if (size > rest->size)
        return false;
    *ret_bytes = span_of(rest->data, size);
    *rest = span_of(rest->data + size, rest->size - size);
    return true;
}

static bool read_item(struct span *rest, struct item *ret_item)
{
    uint32_t first, second = 0;
    if (!read_varint(rest, &first) || ((first & 1) && !read_varint(rest, &second)))
        return false;
    return read_bytes(rest, first >> 1, &ret_item->first) &&
           read_bytes(rest, second, &ret_item->second);
}

/* Returns false unless the frame contains exactly that many items. */
static bool index_items(struct expanded_frame *frames, uint32_t item_count)
{
    struct span rest = span_of(frames->flat, frames->flat_bytes);
    struct item item;
    if (item_count > frames->flat_bytes) /* each item takes at least one byte */
        return false;
    if (item_count > frames->offset_capacity) {
        frames->offsets = mem_resize(frames->offsets, item_count, sizeof(*frames->offsets));
        frames->offset_capacity = item_count;
    }
    for (uint32_t i = 0; i < item_count; i++) {
        frames->offsets[i] = (uint32_t)(rest.data - frames->flat);
        if (!read_item(&rest, &item))
            return false;
    }
    frames->item_count = item_count;
    return rest.size == 0;
}

static bool expand_frame(const struct symbol_strings *strings, uint32_t number,
                         struct expanded_frame *frames)
{
    const struct symbol_table_frame frame = frame_at(strings, number);
    const struct symbol_table_frame next = frame_at(strings, number + 1);
    const struct span zstd =
        span_of(strings->names.data + frame.offset, next.offset - frame.offset);
    frames->number = SYMBOL_NONE;
    if (!frames->flat)
        frames->flat = mem_resize(NULL, SYMBOL_FRAME_MAX_BYTES, 1);
    frames->flat_bytes = frame.flat_bytes;
    if (!compress_expand_exact(zstd, frames->flat, frame.flat_bytes) ||
        !index_items(frames, next.first_item - frame.first_item))
        return false;
    frames->number = number;
    return true;
}

/* ---- items ---- */

/* The last frame whose first item is at or before item. */
static uint32_t search_frame(const struct symbol_strings *strings, uint32_t item)
{
    uint32_t low = 0, high = strings->frame_count;
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        if (frame_at(strings, middle).first_item <= item)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Returns the expanded frame, replacing the least recently used one if necessary; NULL if it is
 * damaged. */
static const struct expanded_frame *get_frame(struct symbol_names *names,
                                              const struct symbol_strings *strings,
                                              struct expanded_frame *frames, uint32_t number)
{
    struct expanded_frame *oldest = frames;
    names->clock++;
    for (int i = 0; i < EXPANDED_FRAMES; i++) {
        if (frames[i].number == number) {
            frames[i].used = names->clock;
            return &frames[i];
        }
        if (frames[i].used < oldest->used)
            oldest = &frames[i];
    }
    oldest->used = names->clock;
    return expand_frame(strings, number, oldest) ? oldest : NULL;
}

static enum err_code get_item(struct symbol_names *names, const struct symbol_strings *strings,
                              struct expanded_frame *frames, uint32_t number, struct item *ret_item,
                              struct err *err)
{
    if (number >= strings->item_count)
        return err_set(err, ERR_NOT_FOUND, "no name %u in a symbol table of %u", number,
                       strings->item_count);
    const uint32_t frame_number = search_frame(strings, number);
    const struct expanded_frame *frame = get_frame(names, strings, frames, frame_number);
    if (!frame)
        return err_set(err, ERR_CORRUPT, "damaged symbol table: its names do not expand");
    const uint32_t offset = frame->offsets[number - frame_at(strings, frame_number).first_item];
    struct span rest = span_of(frame->flat + offset, frame->flat_bytes - offset);
    read_item(&rest, ret_item);
    return ERR_NONE;
}

enum err_code symbol_names_function(struct symbol_names *names, uint32_t function,
                                    struct symbol_name *ret_name, struct err *err)
{
    struct item item;
    const enum err_code code =
        get_item(names, &names->table->functions, names->functions, function, &item, err);
    if (code)
        return code;
    ret_name->full = item.first;
    ret_name->linkage = item.second.size ? item.second : item.first;
    return ERR_NONE;
}

enum err_code symbol_names_file(struct symbol_names *names, uint32_t file, struct span *ret_path,
                                struct err *err)
{
    struct item item;
    const enum err_code code =
        get_item(names, &names->table->files, names->files, file, &item, err);
    if (!code)
        *ret_path = item.first;
    return code;
}

static bool verify_strings(const struct symbol_strings *strings, uint32_t first_max_bytes,
                           uint32_t second_max_bytes, struct expanded_frame *frames)
{
    for (uint32_t i = 0; i < strings->frame_count; i++) {
        if (!expand_frame(strings, i, frames))
            return false;
        struct span rest = span_of(frames->flat, frames->flat_bytes);
        for (struct item item; rest.size && read_item(&rest, &item);) {
            if (item.first.size > first_max_bytes || item.second.size > second_max_bytes)
                return false;
        }
    }
    return true;
}

enum err_code symbol_names_verify(const struct symbol_table *table, struct err *err)
{
    struct expanded_frame frames = {0};
    const bool is_sound =
        verify_strings(&table->functions, SYMBOL_NAME_MAX_BYTES, SYMBOL_NAME_MAX_BYTES, &frames) &&
        verify_strings(&table->files, SYMBOL_PATH_MAX_BYTES, 0, &frames);
    mem_free(frames.flat);
    mem_free(frames.offsets);
    return is_sound ? ERR_NONE
                    : err_set(err, ERR_CORRUPT, "damaged symbol table: its names are invalid");
}
