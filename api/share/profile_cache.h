/*
 * profile_cache: decoded profiles by share id, so that a profile is decoded once and not per view.
 *
 * A flight_cache of profiles: one thread decodes a profile while others wait for the result; beyond
 * max_bytes, the least recently used profile is dropped. A profile in use stays valid until its
 * last user has returned it. A caller takes the memory for a heavy profile from the memory gate
 * before it calls profile_cache_ref (profile_cache_cost states how much). Threads: any.
 */
#ifndef API_SHARE_PROFILE_CACHE_H
#define API_SHARE_PROFILE_CACHE_H

#include "lib/base/err_code.h"
#include "lib/symbols/symbol_name_format.h"

#include <stddef.h>
#include <stdint.h>

struct flight_entry;
struct memory_gate;
struct profile;
struct profile_cache;
struct server;
struct share;
struct share_cost;
struct symbolize_binary;

/* 0: depends on the memory of the host (memory_info.h). A profile larger than max_bytes is decoded,
 * used and dropped. */
struct profile_cache *profile_cache_create(size_t max_bytes);
/* NULL is a no-op. No entry may be in use any more. */
void profile_cache_destroy(struct profile_cache *cache);

/* The decoded profile of share; the caller returns *ret_entry with profile_cache_unref, and
 * profile_cache_get borrows from it. Errors: ERR_BUSY (waited too long), ERR_GONE (its bytes have
 * been deleted meanwhile), ERR_TOO_LARGE (the server's limits have been lowered since the upload).
 */
enum err_code profile_cache_ref(struct server *server, const struct share *share,
                                struct flight_entry **ret_entry, struct err *err) MUST_USE;
/* As profile_cache_ref, with names for its addresses (api/report/symbol_resolver.h): made once per
 * version of the team's symbol tables. *ret_entry is NULL, without an error, if the names and
 * the frames of inlined calls that they add to reports need more than names_bytes, which is known
 * only afterwards. profile_cache_with_names calls this function again with more. Errors also:
 * ERR_DATABASE. */
enum err_code profile_cache_ref_named(struct server *server, const struct share *share,
                                      enum symbol_name_format_mode mode, uint64_t names_bytes,
                                      struct flight_entry **ret_entry, struct err *err) MUST_USE;

/* The memory of one run of work that uses named profiles. */
struct profile_cache_memory {
    struct memory_gate *gate;
    int64_t client;        /* of the gate */
    uint64_t names_bytes;  /* for profile_cache_ref_named */
    bool needs_names;      /* set by work: profile_cache_ref_named returned a NULL entry */
    uint64_t table_bytes;  /* the bytes that profile_cache_take grants without the gate */
    uint64_t wanted_bytes; /* set by profile_cache_take when it returns false: what the next run
                              needs */
    uint64_t taken_bytes;  /* taken from the gate by profile_cache_take during the run */
};
/* Takes the memory for the tables of a report, whose size is known only when the profiles are.
 * False: work must free its memory and return ERR_NONE; it runs again when the memory is available.
 * Call it once in a run. */
bool profile_cache_take(struct profile_cache_memory *memory, uint64_t bytes);

typedef enum err_code profile_cache_work(void *context, struct profile_cache_memory *memory,
                                         struct err *err);
/*
 * Takes bytes of the memory gate for a client, calls work, and returns the bytes. report_bytes of
 * them are for the tables of the report; at least MEMORY_GATE_LIGHT_WORK is. The names of each of
 * the profile_count profiles may need MEMORY_GATE_LIGHT_WORK besides. If work needs more names, it
 * runs again with four times as much, up to all of the gate; if it needs larger tables, it gets
 * their memory at once, or runs again when that is available. Errors: those of work and of
 * memory_gate_enter.
 */
enum err_code profile_cache_with_names(struct server *server, int64_t client, uint64_t bytes,
                                       uint64_t report_bytes, size_t profile_count,
                                       profile_cache_work *work, void *context,
                                       struct err *err) MUST_USE;
/* Whether names were left out because the disk has no space for a symbol table now. Such a profile
 * is kept for some seconds (symbol_tables_version). */
bool profile_cache_is_incomplete(const struct flight_entry *entry);
/* The binaries with addresses that came without names. */
const struct symbolize_binary *profile_cache_binaries(const struct flight_entry *entry,
                                                      uint32_t *ret_count);
/* Caches a profile that was decoded when its share was created, since its creator usually views it
 * next. The cache destroys it. */
void profile_cache_keep(struct profile_cache *cache, const char *share_id, struct profile *profile);
/* The memory that decoding the share's profile and keeping it takes, according to its summary. */
struct share_cost profile_cache_cost(const struct share *share);
const struct profile *profile_cache_get(const struct flight_entry *entry);
/* NULL is a no-op. */
void profile_cache_unref(struct flight_entry *entry);

/* Drops the profile of a share that was deleted. */
void profile_cache_drop(struct profile_cache *cache, const char *share_id);

/* For metrics. */
size_t profile_cache_bytes(struct profile_cache *cache);

static inline void profile_cache_cleanup(struct flight_entry **entry)
{
    profile_cache_unref(*entry);
}
#define profile_cache_auto __attribute__((cleanup(profile_cache_cleanup))) struct flight_entry *

#endif
