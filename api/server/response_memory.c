#include "api/server/response_memory.h"

#include "api/http/rate_limiter.h"
#include "api/http/request.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum {
    ADDRESS_PART = 8, /* an address without credentials may hold an eighth of the limit */
    CLASS_PART = 2,   /* all these addresses together may hold a half, and a tenant too */
    BUCKETS = 256,
    NAME_BYTES = RATE_LIMITER_SUBSCRIBER_BYTES + 2,
    SLOW_NAME_BYTES = NAME_BYTES + RATE_LIMITER_SUBSCRIBER_BYTES,
    RETRY_S = 5,
    SLOW_PART = 4, /* slow clients get responses while their class holds less than a quarter */
    SLOW_CLIENTS = 1024,
    SLOW_S = 300,
    /* Times to read a response, above three quarters and above seven eighths of a limit. */
    READ_S = 20,
    SHORT_READ_S = 5
};

/* Shared bytes that a client holds. */
struct shared {
    struct shared *next;
    const void *readers; /* which bytes */
    uint32_t response_count;
};

/* A client that holds bytes, freed when it holds none; or the class of all clients without
 * credentials. */
struct response_holder {
    struct response_holder *next; /* in its bucket */
    char name[NAME_BYTES];        /* "a" and the address, or "t" and the tenant; class: empty */
    size_t bytes;
    struct shared *shared;
    uint32_t response_count;
};

/* A client that read a response too slowly. */
struct slow_client {
    char name[SLOW_NAME_BYTES];
    int64_t until_ns; /* monotonic; 0: the entry is free */
};

struct response_memory {
    size_t max_bytes;
    atomic_size_t bytes;
    pthread_mutex_t mutex; /* guards the members below */
    struct slow_client slow[SLOW_CLIENTS];
    uint32_t next_slow; /* the entry that is overwritten next */
    struct response_holder anonymous;
    struct response_holder *buckets[BUCKETS];
};

struct response_memory *response_memory_create(size_t max_bytes)
{
    struct response_memory *memory = mem_new(struct response_memory, 1);
    memory->max_bytes = max_bytes;
    pthread_mutex_init(&memory->mutex, NULL);
    return memory;
}

void response_memory_destroy(struct response_memory *memory)
{
    if (!memory)
        return;
    pthread_mutex_destroy(&memory->mutex);
    mem_free(memory);
}

static bool is_anonymous(const char *name)
{
    return name[0] == 'a';
}

static void name_client(const struct request *request, char ret_name[NAME_BYTES])
{
    if (request->principal.kind == PRINCIPAL_ANONYMOUS) {
        ret_name[0] = 'a';
        rate_limiter_site(span_text(request->address), ret_name + 1);
    } else {
        snprintf(ret_name, NAME_BYTES, "t%" PRId64, request->principal.tenant_id);
    }
}

/* The name of a client that may be slow. The slow readers of a team are distinguished by their
 * addresses. */
static void name_slow(const struct request *request, char ret_name[SLOW_NAME_BYTES])
{
    char address[RATE_LIMITER_SUBSCRIBER_BYTES];
    const bool is_team = request->principal.kind != PRINCIPAL_ANONYMOUS;
    rate_limiter_site(span_text(request->address), address);
    snprintf(ret_name, SLOW_NAME_BYTES, "%" PRId64 "/%s",
             is_team ? request->principal.tenant_id : 0, address);
}

/* NULL: no slow client has that name. The caller holds the mutex. */
static struct slow_client *find_slow(struct response_memory *memory, const char *name)
{
    const int64_t now_ns = clock_monotonic_ns();
    for (uint32_t i = 0; i < SLOW_CLIENTS; i++) {
        if (memory->slow[i].until_ns > now_ns && strcmp(memory->slow[i].name, name) == 0)
            return &memory->slow[i];
    }
    return NULL;
}

void response_memory_note_slow(struct response_memory *memory, const struct request *request)
{
    char name[SLOW_NAME_BYTES] = "";
    name_slow(request, name);
    pthread_mutex_lock(&memory->mutex);
    struct slow_client *slow = find_slow(memory, name);
    if (!slow)
        slow = &memory->slow[memory->next_slow++ % SLOW_CLIENTS];
    memcpy(slow->name, name, sizeof(name));
    slow->until_ns = clock_monotonic_ns() + SLOW_S * CLOCK_NS_PER_S;
    pthread_mutex_unlock(&memory->mutex);
}

/* The link to the holder of that name, or to the end of its bucket. */
static struct response_holder **find_holder(struct response_memory *memory, const char *name)
{
    uint32_t hash = 2166136261; /* FNV-1a: a client chooses at most its own address */
    for (const char *at = name; *at; at++)
        hash = (hash ^ (uint8_t)*at) * 16777619;
    struct response_holder **link = &memory->buckets[hash % BUCKETS];
    while (*link && strcmp((*link)->name, name) != 0)
        link = &(*link)->next;
    return link;
}

static enum err_code fail_full(const char *whose, struct err *err)
{
    err_set(err, ERR_BUSY,
            "%s that were not read yet fill their part of max-buffered-bytes: read them, then try "
            "again",
            whose);
    err->retry_after_s = RETRY_S;
    return ERR_BUSY;
}

/* The link to the client's entry for these shared bytes, or to the end of its list. */
static struct shared **find_shared(struct response_holder *holder, const void *readers)
{
    struct shared **link = &holder->shared;
    while (*link && (*link)->readers != readers)
        link = &(*link)->next;
    return link;
}

/* Returns the number of bytes that this response adds to those of its client. */
static size_t count_new(struct response_holder *holder, const struct response_bytes *bytes)
{
    const bool is_known = holder && bytes->readers && *find_shared(holder, bytes->readers);
    return bytes->own + (is_known ? 0 : bytes->shared);
}

static void hold(struct response_holder *holder, const struct response_bytes *bytes)
{
    holder->bytes += count_new(holder, bytes);
    holder->response_count++;
    if (!bytes->readers)
        return;
    struct shared **link = find_shared(holder, bytes->readers);
    if (!*link) {
        *link = mem_new(struct shared, 1);
        (*link)->readers = bytes->readers;
    }
    (*link)->response_count++;
}

static void release(struct response_holder *holder, const struct response_bytes *bytes)
{
    size_t removed = bytes->own;
    struct shared **link = bytes->readers ? find_shared(holder, bytes->readers) : NULL;
    if (link && --(*link)->response_count == 0) {
        struct shared *last = *link;
        *link = last->next;
        mem_free(last);
        removed += bytes->shared;
    }
    holder->bytes -= removed;
    holder->response_count--;
}

/* Whether the holder would have more than `most` with these bytes beside others. */
static bool exceeds(struct response_holder *holder, const struct response_bytes *bytes, size_t most)
{
    return holder && holder->bytes && holder->bytes + count_new(holder, bytes) > most;
}

/* Names the limit that forbids a client (holder NULL: it holds nothing) to hold these bytes, too;
 * NULL: none does. The caller holds the mutex. */
static const char *find_limit(struct response_memory *memory, const char *name,
                              struct response_holder *holder, const struct response_bytes *bytes)
{
    const size_t class_bytes = memory->max_bytes / CLASS_PART;
    if (!is_anonymous(name))
        return exceeds(holder, bytes, class_bytes) ? "the team's responses" : NULL;
    if (exceeds(holder, bytes, memory->max_bytes / ADDRESS_PART))
        return "the responses to this address, without credentials,";
    if (exceeds(&memory->anonymous, bytes, class_bytes))
        return "the responses to clients without credentials";
    return NULL;
}

/* Whether the client was slow, and its class holds so much that it gets nothing now. The caller
 * holds the mutex. */
static bool is_refused_as_slow(struct response_memory *memory, const struct request *request,
                               const struct response_holder *holder)
{
    char name[SLOW_NAME_BYTES];
    const struct response_holder *class =
        request->principal.kind == PRINCIPAL_ANONYMOUS ? &memory->anonymous : holder;
    if (!class || class->bytes <= memory->max_bytes / CLASS_PART / SLOW_PART)
        return false;
    name_slow(request, name);
    return find_slow(memory, name) != NULL;
}

/* Adds the bytes of a response to the total. Returns the total before, and the number of bytes that
 * were added to it. */
static size_t add_to_all(struct response_memory *memory, const struct response_bytes *bytes,
                         size_t *ret_added)
{
    const bool is_first = bytes->readers && atomic_fetch_add(bytes->readers, 1) == 0;
    *ret_added = bytes->own + (is_first ? bytes->shared : 0);
    return atomic_fetch_add(&memory->bytes, *ret_added);
}

static void remove_from_all(struct response_memory *memory, const struct response_bytes *bytes)
{
    const bool is_last = bytes->readers && atomic_fetch_sub(bytes->readers, 1) == 1;
    atomic_fetch_sub(&memory->bytes, bytes->own + (is_last ? bytes->shared : 0));
}

enum err_code response_memory_take(struct response_memory *memory, const struct request *request,
                                   const struct response_bytes *bytes,
                                   struct response_holder **ret_holder, struct err *err)
{
    char name[NAME_BYTES];
    size_t added_to_all;
    name_client(request, name);
    const size_t before = add_to_all(memory, bytes, &added_to_all);
    const char *limit = NULL;
    pthread_mutex_lock(&memory->mutex);
    struct response_holder **link = find_holder(memory, name);
    if (before && before + added_to_all > memory->max_bytes)
        limit = "responses";
    else if (is_refused_as_slow(memory, request, *link))
        limit = "responses to clients that read slowly, as this one did,";
    else
        limit = find_limit(memory, name, *link, bytes);
    if (!limit && !*link) {
        *link = mem_new(struct response_holder, 1);
        memcpy((*link)->name, name, sizeof(name));
    }
    if (!limit) {
        hold(*link, bytes);
        if (is_anonymous(name))
            hold(&memory->anonymous, bytes);
        *ret_holder = *link;
    }
    pthread_mutex_unlock(&memory->mutex);
    if (!limit)
        return ERR_NONE;
    remove_from_all(memory, bytes);
    return fail_full(limit, err);
}

void response_memory_give(struct response_memory *memory, struct response_holder *holder,
                          const struct response_bytes *bytes)
{
    remove_from_all(memory, bytes);
    pthread_mutex_lock(&memory->mutex);
    release(holder, bytes);
    if (is_anonymous(holder->name))
        release(&memory->anonymous, bytes);
    if (holder->response_count == 0) {
        struct response_holder **link = find_holder(memory, holder->name);
        *link = holder->next;
        mem_free(holder);
    }
    pthread_mutex_unlock(&memory->mutex);
}

static bool is_above(size_t bytes, size_t limit, size_t eighths)
{
    return bytes > limit / 8 * eighths;
}

unsigned response_memory_time_to_read_s(struct response_memory *memory,
                                        const struct response_holder *holder)
{
    const size_t class_bytes = memory->max_bytes / CLASS_PART;
    const size_t all = response_memory_bytes(memory);
    pthread_mutex_lock(&memory->mutex);
    const size_t held = is_anonymous(holder->name) ? memory->anonymous.bytes : holder->bytes;
    pthread_mutex_unlock(&memory->mutex);
    if (is_above(held, class_bytes, 7) || is_above(all, memory->max_bytes, 7))
        return SHORT_READ_S;
    return is_above(held, class_bytes, 6) || is_above(all, memory->max_bytes, 6) ? READ_S : 0;
}

size_t response_memory_bytes(const struct response_memory *memory)
{
    return atomic_load_explicit(&memory->bytes, memory_order_relaxed);
}
