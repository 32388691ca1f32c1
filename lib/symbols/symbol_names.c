#include "lib/symbols/symbol_names.h"

#include "lib/base/compress.h"
#include "lib/base/mem.h"
#include "lib/symbols/symbol_table_read.h"

/* At 64 KiB of names and 4 bytes an item: some 600 KiB for functions and as much for files. */
enum { KEPT_FRAMES = 8 };

struct item {
    struct span first;
    struct span second;
};

/* An expanded frame and where its items begin. */
struct kept_frame {
    uint32_t number; /* SYMBOL_NONE: free */
    uint32_t item_count;
    uint64_t used; /* when, by names->clock */
    uint32_t flat_bytes;
    uint8_t *flat;
    uint32_t *offsets;
    uint32_t offset_capacity;
};

struct symbol_names {
    const struct symbol_table *table;
    struct kept_frame functions[KEPT_FRAMES];
    struct kept_frame files[KEPT_FRAMES];
    uint64_t clock;
};

struct symbol_names *symbol_names_create(const struct symbol_table *table)
{
    struct symbol_names *names = mem_new(struct symbol_names, 1);
    names->table = table;
    for (int i = 0; i < KEPT_FRAMES; i++)
        names->functions[i].number = names->files[i].number = SYMBOL_NONE;
    return names;
}

void symbol_names_destroy(struct symbol_names *names)
{
    if (!names)
        return;
    for (int i = 0; i < KEPT_FRAMES; i++) {
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

static bool take_varint(struct span *rest, uint32_t *ret_number)
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

static bool take_bytes(struct span *rest, uint32_t size, struct span *ret_bytes)
{
    if (size > rest->size)
        return false;
    *ret_bytes = span_of(rest->data, size);
    *rest = span_of(rest->data + size, rest->size - size);
    return true;
}

static bool take_item(struct span *rest, struct item *ret_item)
{
    uint32_t first, second = 0;
    if (!take_varint(rest, &first) || ((first & 1) && !take_varint(rest, &second)))
        return false;
    return take_bytes(rest, first >> 1, &ret_item->first) &&
           take_bytes(rest, second, &ret_item->second);
}

/* False when there are not exactly that many items in it. */
static bool find_items(struct kept_frame *kept, uint32_t item_count)
{
    struct span rest = span_of(kept->flat, kept->flat_bytes);
    struct item item;
    if (item_count > kept->flat_bytes) /* each takes a byte at least */
        return false;
    if (item_count > kept->offset_capacity) {
        kept->offsets = mem_resize(kept->offsets, item_count, sizeof(*kept->offsets));
        kept->offset_capacity = item_count;
    }
    for (uint32_t i = 0; i < item_count; i++) {
        kept->offsets[i] = (uint32_t)(rest.data - kept->flat);
        if (!take_item(&rest, &item))
            return false;
    }
    kept->item_count = item_count;
    return rest.size == 0;
}

static bool expand_frame(const struct symbol_strings *strings, uint32_t number,
                         struct kept_frame *kept)
{
    const struct symbol_table_frame frame = frame_at(strings, number);
    const struct symbol_table_frame next = frame_at(strings, number + 1);
    const struct span zstd =
        span_of(strings->names.data + frame.offset, next.offset - frame.offset);
    kept->number = SYMBOL_NONE;
    if (!kept->flat)
        kept->flat = mem_resize(NULL, SYMBOL_FRAME_MAX_BYTES, 1);
    kept->flat_bytes = frame.flat_bytes;
    if (!compress_expand_exact(zstd, kept->flat, frame.flat_bytes) ||
        !find_items(kept, next.first_item - frame.first_item))
        return false;
    kept->number = number;
    return true;
}

/* ---- items ---- */

/* The last frame that begins at or before item. */
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

/* The frame, expanded: one that is kept, or in place of the one that was not used for longest. */
static const struct kept_frame *get_frame(struct symbol_names *names,
                                          const struct symbol_strings *strings,
                                          struct kept_frame *kept, uint32_t number)
{
    struct kept_frame *oldest = kept;
    names->clock++;
    for (int i = 0; i < KEPT_FRAMES; i++) {
        if (kept[i].number == number) {
            kept[i].used = names->clock;
            return &kept[i];
        }
        if (kept[i].used < oldest->used)
            oldest = &kept[i];
    }
    oldest->used = names->clock;
    return expand_frame(strings, number, oldest) ? oldest : NULL;
}

static enum err_code get_item(struct symbol_names *names, const struct symbol_strings *strings,
                              struct kept_frame *kept, uint32_t number, struct item *ret_item,
                              struct err *err)
{
    if (number >= strings->item_count)
        return err_set(err, ERR_NOT_FOUND, "no name %u in a symbol table of %u", number,
                       strings->item_count);
    const uint32_t frame_number = search_frame(strings, number);
    const struct kept_frame *frame = get_frame(names, strings, kept, frame_number);
    if (!frame)
        return err_set(err, ERR_CORRUPT, "damaged symbol table: names that do not expand");
    const uint32_t offset = frame->offsets[number - frame_at(strings, frame_number).first_item];
    struct span rest = span_of(frame->flat + offset, frame->flat_bytes - offset);
    take_item(&rest, ret_item);
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
                           uint32_t second_max_bytes, struct kept_frame *kept)
{
    for (uint32_t i = 0; i < strings->frame_count; i++) {
        if (!expand_frame(strings, i, kept))
            return false;
        struct span rest = span_of(kept->flat, kept->flat_bytes);
        for (struct item item; rest.size && take_item(&rest, &item);) {
            if (item.first.size > first_max_bytes || item.second.size > second_max_bytes)
                return false;
        }
    }
    return true;
}

enum err_code symbol_names_verify(const struct symbol_table *table, struct err *err)
{
    struct kept_frame kept = {0};
    const bool is_sound =
        verify_strings(&table->functions, SYMBOL_NAME_MAX_BYTES, SYMBOL_NAME_MAX_BYTES, &kept) &&
        verify_strings(&table->files, SYMBOL_PATH_MAX_BYTES, 0, &kept);
    mem_free(kept.flat);
    mem_free(kept.offsets);
    return is_sound ? ERR_NONE : err_set(err, ERR_CORRUPT, "damaged symbol table: names");
}
