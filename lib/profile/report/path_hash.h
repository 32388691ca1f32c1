/*
 * path_hash: identifies a node of a call tree by a hash of the frames from below the root down to
 * it. The hash does not depend on the order of tables and is the same in another upload of the same
 * program. web/src/model/tree/path.ts computes the same hash for links.
 *
 * The hash of a frame is two 32-bit FNV-1a values of some bytes, with the bases 0x811c9dc5 and
 * 0x9747b28c. The bytes are those that make a frame distinct under the grouping (view.h), so that
 * siblings differ:
 *
 *   line      name, 0, file, 0, line (u32 little-endian; 0 if larger)
 *   address   "0x4f2a10", 0, mapping: the name of an address may become known later
 *             without changing links; a frame without an address is hashed as by line
 *   others    name
 *
 * The hash of a node is, for each half, murmur3's fmix32(parent ^ (rotl(frame, 5) + 0x9e3779b9));
 * that of the root is 0. It is written as 16 hexadecimal digits, high half first.
 *
 * Links of earlier versions contain hashes of names only (PATH_HASH_OF_NAMES); of a name such as
 * "0x4f2a10 main.run" the address alone is hashed. They refer to the first node with such a hash.
 *
 * Other links were made before addresses got names (PATH_HASH_OF_RAW), when a location in a file
 * was named "[app]", or by its address, and had no inlined calls; inlined calls are therefore
 * skipped in the path. Newer links of this kind contain "app+0x2a10"; raw_path.h translates those.
 * Threads: any.
 */
#ifndef LIB_PROFILE_REPORT_PATH_HASH_H
#define LIB_PROFILE_REPORT_PATH_HASH_H

#include "lib/profile/report/view.h"

struct path_hash {
    uint32_t high;
    uint32_t low;
};

enum path_hash_form {
    PATH_HASH_OF_FRAMES, /* the current form */
    PATH_HASH_OF_NAMES,  /* of earlier versions */
    PATH_HASH_OF_RAW,    /* of links made before addresses got names */
    PATH_HASH_FORM_COUNT
};

/* The number of bytes of a name that are its address; the size of the name if it does not start
 * with one. */
static inline size_t path_hash_address_bytes(struct span name)
{
    size_t i = 2;
    if (name.size < 4 || name.data[0] != '0' || name.data[1] != 'x')
        return name.size;
    while (i < name.size && ((name.data[i] >= '0' && name.data[i] <= '9') ||
                             (name.data[i] >= 'a' && name.data[i] <= 'f')))
        i++;
    return i > 2 && i < name.size && name.data[i] == ' ' ? i : name.size;
}

static inline void path_hash_add(struct path_hash *hash, struct span bytes)
{
    for (size_t i = 0; i < bytes.size; i++) {
        hash->high = (hash->high ^ bytes.data[i]) * UINT32_C(0x01000193);
        hash->low = (hash->low ^ bytes.data[i]) * UINT32_C(0x01000193);
    }
}

/* Adds a zero byte, then bytes. */
static inline void path_hash_add_more(struct path_hash *hash, struct span bytes)
{
    path_hash_add(hash, span_of((const uint8_t *)"", 1));
    path_hash_add(hash, bytes);
}

static inline void path_hash_add_position(struct path_hash *hash, const struct frame *frame)
{
    const uint32_t line = frame->line > 0 && frame->line <= UINT32_MAX ? (uint32_t)frame->line : 0;
    const uint8_t bytes[] = {(uint8_t)line, (uint8_t)(line >> 8), (uint8_t)(line >> 16),
                             (uint8_t)(line >> 24)};
    path_hash_add_more(hash, frame->file);
    path_hash_add_more(hash, span_of(bytes, sizeof(bytes)));
}

/* Whether the frame was named by its binary before symbols arrived. Frames of the kernel, and
 * frames that the sender named, have no file here. */
static inline bool path_hash_was_raw(const struct frame *frame)
{
    return frame->mapping.size && frame->mapping.data[0] != '[';
}

/* The hash of "[app]" for "/usr/bin/app", without file and line. */
static inline struct path_hash path_hash_raw(const struct frame *frame, enum view_group group)
{
    struct path_hash hash = {.high = UINT32_C(0x811c9dc5), .low = UINT32_C(0x9747b28c)};
    struct span name = frame->mapping;
    for (size_t i = name.size; i-- > 0;) {
        if (name.data[i] != '/')
            continue;
        name = span_of(name.data + i + 1, name.size - i - 1);
        break;
    }
    path_hash_add(&hash, SPAN_LITERAL("["));
    path_hash_add(&hash, name);
    path_hash_add(&hash, SPAN_LITERAL("]"));
    if (group == VIEW_BY_LINE)
        path_hash_add_position(&hash, &(struct frame){0});
    return hash;
}

static inline struct path_hash path_hash_frame(const struct frame *frame, enum view_group group,
                                               enum path_hash_form form)
{
    struct path_hash hash = {.high = UINT32_C(0x811c9dc5), .low = UINT32_C(0x9747b28c)};
    struct span name = frame->name;
    const bool has_address = group == VIEW_BY_ADDRESS && frame->address;
    if (form == PATH_HASH_OF_RAW && !has_address && path_hash_was_raw(frame))
        return path_hash_raw(frame, group);
    if (form == PATH_HASH_OF_NAMES || has_address)
        name.size = path_hash_address_bytes(name);
    path_hash_add(&hash, name);
    if (form == PATH_HASH_OF_NAMES)
        return hash;
    if (has_address)
        path_hash_add_more(&hash, frame->mapping);
    else if (group == VIEW_BY_LINE || group == VIEW_BY_ADDRESS)
        path_hash_add_position(&hash, frame);
    return hash;
}

/* Adds bytes that were hashed to *unchecked, and checks the deadline of the view after each MiB. */
static inline enum err_code path_hash_check(const struct view *view, size_t *unchecked,
                                            size_t bytes, struct err *err)
{
    enum { CHECK_BYTES = 1 << 20 };
    *unchecked += bytes;
    if (*unchecked < CHECK_BYTES)
        return ERR_NONE;
    *unchecked = 0;
    return view_check_cpu(view, err);
}

/* Hashes frames into ret_hashes. Frames may be millions, with a name and a file of 16 KiB each, so
 * the deadline of the view is checked. Errors: ERR_TOO_LARGE (the deadline). */
static inline enum err_code path_hash_frames(const struct view *view, const struct frame *frames,
                                             uint32_t count, enum path_hash_form form,
                                             struct path_hash *ret_hashes, struct err *err)
{
    enum err_code code = ERR_NONE;
    size_t unchecked = 0;
    for (uint32_t i = 0; i < count && !code; i++) {
        ret_hashes[i] = path_hash_frame(&frames[i], view->group, form);
        code =
            path_hash_check(view, &unchecked, 64 + frames[i].name.size + frames[i].file.size, err);
    }
    return code;
}

static inline uint32_t path_hash_mix(uint32_t parent, uint32_t frame)
{
    uint32_t hash = parent ^ ((frame << 5 | frame >> 27) + UINT32_C(0x9e3779b9));
    hash = (hash ^ hash >> 16) * UINT32_C(0x85ebca6b);
    hash = (hash ^ hash >> 13) * UINT32_C(0xc2b2ae35);
    return hash ^ hash >> 16;
}

/* The path hash of a child, from its parent's path hash and the hash of its frame. */
static inline struct path_hash path_hash_child(struct path_hash parent, struct path_hash frame)
{
    return (struct path_hash){.high = path_hash_mix(parent.high, frame.high),
                              .low = path_hash_mix(parent.low, frame.low)};
}

/* The same for a given form, which may skip some frames. */
static inline struct path_hash path_hash_step(struct path_hash parent, struct path_hash hash,
                                              const struct frame *frame, enum path_hash_form form)
{
    if (form == PATH_HASH_OF_RAW && (frame->flags & FRAME_INLINED))
        return parent;
    return path_hash_child(parent, hash);
}

static inline uint64_t path_hash_u64(struct path_hash hash)
{
    return (uint64_t)hash.high << 32 | hash.low;
}

#endif
