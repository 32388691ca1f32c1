#include "api/http/rate_limiter.h"

#include "lib/base/clock.h"
#include "lib/base/digest.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum {
    BUCKET_WAYS = 8,
    LOCK_COUNT = 64,
    FINGERPRINT_BYTES = 16,
    MAX_BACKOFF_DOUBLINGS = 20,
    PASSWORDS_PER_MINUTE = 30,
    MAX_DEBT_BURSTS = 4,  /* the most that one charge takes beyond the events in a bucket */
    SUBSCRIBER_BYTES = 8, /* the prefix of a /64, in bytes */
    SITE_BYTES = 6,       /* the prefix of a /48 */
    SITE_SHARE = 8,       /* one bucket in SITE_SHARE is for sites: place_key */
};

struct kind_rule {
    uint8_t
        network_bytes; /* the key is an address, of which IPv6 counts by these bytes; 0: a text */
    int free_failures; /* before the first wait */
    int first_wait_s;  /* doubled by each further failure */
    int longest_wait_s;
    int forget_s;        /* without a failure */
    const char *message; /* states what is limited */
};

/* Failures are never counted for an account or share as a whole: anyone could lock its owner out
 * (api/identity/password_attempt.h). 404s have generous limits, since one old page may contain many
 * dead links. */
static const struct kind_rule rules[LIMIT_KIND_COUNT] = {
    [LIMIT_SIGN_IN_ADDRESS] = {SUBSCRIBER_BYTES, 20, 1, 3600, 7200,
                               "Too many failed sign-ins from your address"},
    /* No back-off: rate_limiter_enter uses the count to order the requests that wait. */
    [LIMIT_SIGN_IN_SITE] = {SITE_BYTES, INT_MAX, 0, 0, 3600, "Too many failed sign-ins"},
    [LIMIT_SIGN_IN_PAIR] = {0, 5, 1, 3600, 86400,
                            "Too many failed sign-ins for this account from your address"},
    [LIMIT_SIGN_IN_DEVICE] = {0, 10, 1, 3600, 86400,
                              "Too many failed sign-ins for this account from your browser"},
    [LIMIT_SIGN_IN_ACCOUNT] = {.message =
                                   "Too many sign-ins for this account from many addresses: use a "
                                   "browser that has signed in to it before, or a one-time link"},
    [LIMIT_PASSWORD_ADDRESS] = {.network_bytes = SUBSCRIBER_BYTES,
                                .message = "Too many passwords from your address"},
    [LIMIT_PASSWORD_DEVICES] = {.message = "Too many sign-ins for this account"},
    [LIMIT_SHARE_PASSWORD_PAIR] = {0, 5, 1, 3600, 86400,
                                   "Too many wrong passwords for this share from your address"},
    [LIMIT_SHARE_PASSWORD] = {.message = "Too many passwords for this share from many addresses"},
    [LIMIT_SHARE_PASSWORD_ADDRESS] = {SUBSCRIBER_BYTES, 20, 1, 3600, 7200,
                                      "Too many wrong passwords from your address"},
    [LIMIT_MISS_ADDRESS] = {SUBSCRIBER_BYTES, 200, 1, 600, 600,
                            "Too many requests from your address for what does not exist"},
    [LIMIT_UPLOAD_TENANT] = {.message = "Your tenant's uploads per minute are used up"},
    [LIMIT_UPLOAD_ADDRESS] = {.network_bytes = SUBSCRIBER_BYTES,
                              .message = "Too many uploads from your address; sign in for more"},
    [LIMIT_UPLOAD_BYTES_ADDRESS] = {.network_bytes = SUBSCRIBER_BYTES,
                                    .message =
                                        "Your address has stored too many bytes in a day "
                                        "(anonymous-max-daily-bytes): sign in or use a token"},
    [LIMIT_UPLOAD_BYTES_SITE] = {.network_bytes = SITE_BYTES,
                                 .message = "Your network has stored too many bytes in a day "
                                            "(anonymous-max-daily-bytes): sign in or use a token"},
    [LIMIT_LINK_ADDRESS] = {.network_bytes = SUBSCRIBER_BYTES,
                            .message = "Too many short links from your address; sign in for more"},
    [LIMIT_LINK_TENANT] = {.message = "Your tenant's short links per minute are used up"},
    [LIMIT_CHANGE_TENANT] = {.message = "Your team's changes per minute "
                                        "(tenant-changes-per-minute) are used up"},
    [LIMIT_CHANGE_CLIENT] = {.message = "Your own changes per minute "
                                        "(half of tenant-changes-per-minute) are used up"},
    [LIMIT_SECURITY_USER] = {.message = "Your changes of roles and passwords per minute are used "
                                        "up"},
    [LIMIT_CHANGE_ADDRESS] = {.network_bytes = SUBSCRIBER_BYTES,
                              .message = "Too many changes from your address "
                                         "(anonymous-changes-per-minute); sign in for more"},
    [LIMIT_AUDIT_HOURLY] = {.message = "This change is in the audit log already"},
    [LIMIT_COMMENT_USER] = {.message = "Your comments per minute are used up"},
    [LIMIT_AUDIT_TENANT] = {.message = "Too many refused attempts to write them all down"},
    [LIMIT_AUDIT_SERVER] = {.message = "Too many refused attempts to write them all down"},
    [LIMIT_REPORT_ADDRESS] = {.network_bytes = SUBSCRIBER_BYTES,
                              .message = "Too many reports from your address"},
};

struct slot_rule {
    int slots;
    int waiters; /* more are refused at once */
    int wait_s;
};

static const struct slot_rule slot_rules[LIMIT_SLOT_COUNT] = {
    [SLOT_PASSWORD] = {.slots = 2, .waiters = RATE_LIMITER_WAITERS, .wait_s = 20},
    [SLOT_PASSWORD_SHARE] = {.slots = 1, .waiters = 1, .wait_s = 5},
    [SLOT_PASSWORD_DEVICE] = {.slots = 1, .waiters = 2, .wait_s = 5},
};

struct entry {
    uint8_t fingerprint[FINGERPRINT_BYTES];
    int64_t used_ns;    /* 0: the entry is free */
    int64_t blocked_ns; /* for failures: until when attempts are refused */
    double amount;      /* for rates: events in the bucket now; for failures: their count */
};
static_assert(sizeof(struct entry) == 40, "rate_limiter.h states it");

enum { MAX_SLOTS = 2 };

/* A request that waits for a slot, on the stack of its thread. */
struct slot_waiter {
    uint64_t source;
    bool has_failed; /* its site has failed to sign in before */
    bool has_slot;
    bool is_refused; /* another request has replaced it */
    struct slot_waiter *next;
};

struct slot_pool {
    pthread_mutex_t mutex;
    pthread_cond_t left;
    int used;
    uint64_t sources[MAX_SLOTS]; /* the source in each slot in use */
    struct slot_waiter *waiters; /* in the order of their arrival */
};

struct rate_limiter {
    struct entry *entries;
    uint32_t bucket_count; /* of BUCKET_WAYS entries */
    int64_t (*now_ns)(void);
    uint8_t secret[DIGEST_BYTES];
    pthread_mutex_t locks[LOCK_COUNT]; /* for the buckets, by number */
    struct slot_pool slot_pools[LIMIT_SLOT_COUNT];
    int passwords_per_minute;
};

static void slot_pool_init(struct slot_pool *pool)
{
    pthread_condattr_t attributes;
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&pool->left, &attributes);
    pthread_condattr_destroy(&attributes);
}

struct rate_limiter *rate_limiter_create(uint32_t entry_count, int64_t (*now_ns)(void))
{
    struct rate_limiter *rate_limiter = mem_new(struct rate_limiter, 1);
    rate_limiter->bucket_count = entry_count / BUCKET_WAYS ? entry_count / BUCKET_WAYS : 1;
    rate_limiter->entries = mem_new(struct entry, (size_t)rate_limiter->bucket_count * BUCKET_WAYS);
    rate_limiter->now_ns = now_ns ? now_ns : clock_monotonic_ns;
    rate_limiter->passwords_per_minute = PASSWORDS_PER_MINUTE;
    digest_random(rate_limiter->secret, sizeof(rate_limiter->secret));
    for (int i = 0; i < LOCK_COUNT; i++)
        pthread_mutex_init(&rate_limiter->locks[i], NULL);
    for (int i = 0; i < LIMIT_SLOT_COUNT; i++)
        slot_pool_init(&rate_limiter->slot_pools[i]);
    return rate_limiter;
}

void rate_limiter_destroy(struct rate_limiter *rate_limiter)
{
    if (!rate_limiter)
        return;
    for (int i = 0; i < LOCK_COUNT; i++)
        pthread_mutex_destroy(&rate_limiter->locks[i]);
    for (int i = 0; i < LIMIT_SLOT_COUNT; i++) {
        pthread_cond_destroy(&rate_limiter->slot_pools[i].left);
        pthread_mutex_destroy(&rate_limiter->slot_pools[i].mutex);
    }
    mem_free(rate_limiter->entries);
    mem_free(rate_limiter);
}

/* The first bytes of an IPv6 address that is not a mapped IPv4 one. */
static struct span network_of(struct span address, size_t bytes, uint8_t ret_prefix[16])
{
    char text[INET6_ADDRSTRLEN];
    struct in6_addr parsed;
    if (address.size >= sizeof(text))
        return address;
    memcpy(text, address.data, address.size);
    text[address.size] = '\0';
    if (inet_pton(AF_INET6, text, &parsed) != 1 || IN6_IS_ADDR_V4MAPPED(&parsed))
        return address;
    memcpy(ret_prefix, &parsed, bytes);
    return span_of(ret_prefix, bytes);
}

static void print_network(struct span address, size_t bytes,
                          char ret_text[RATE_LIMITER_SUBSCRIBER_BYTES])
{
    struct in6_addr network = {0};
    char text[INET6_ADDRSTRLEN];
    struct span prefix = network_of(address, bytes, network.s6_addr);
    if (prefix.data == network.s6_addr && inet_ntop(AF_INET6, &network, text, sizeof(text)))
        snprintf(ret_text, RATE_LIMITER_SUBSCRIBER_BYTES, "%s/%zu", text, 8 * bytes);
    else
        snprintf(ret_text, RATE_LIMITER_SUBSCRIBER_BYTES, "%.*s", SPAN_PRINT(address));
}

void rate_limiter_subscriber(struct span address, char ret_text[RATE_LIMITER_SUBSCRIBER_BYTES])
{
    print_network(address, SUBSCRIBER_BYTES, ret_text);
}

void rate_limiter_site(struct span address, char ret_text[RATE_LIMITER_SUBSCRIBER_BYTES])
{
    print_network(address, SITE_BYTES, ret_text);
}

struct lookup {
    pthread_mutex_t *lock;
    struct entry *bucket;
    uint8_t fingerprint[FINGERPRINT_BYTES];
};

/* The first buckets are for keys of sites only, of which there are few: however many other keys a
 * client makes, what its site has used is not forgotten. */
static uint32_t place_key(const struct rate_limiter *rate_limiter, enum limit_kind kind,
                          uint32_t number)
{
    const uint32_t site_count = rate_limiter->bucket_count / SITE_SHARE;
    if (rules[kind].network_bytes == SITE_BYTES && site_count)
        return number % site_count;
    return site_count + number % (rate_limiter->bucket_count - site_count);
}

static struct lookup lookup_of(struct rate_limiter *rate_limiter, enum limit_kind kind,
                               struct span key)
{
    uint8_t prefix[16];
    uint8_t hash[DIGEST_BYTES];
    uint8_t text[512];
    if (rules[kind].network_bytes)
        key = network_of(key, rules[kind].network_bytes, prefix);
    /* Longer keys cannot occur (e-mails have 254 bytes); they would share an entry. */
    size_t size = key.size < sizeof(text) - 1 ? key.size : sizeof(text) - 1;
    text[0] = (uint8_t)kind;
    if (size)
        memcpy(text + 1, key.data, size);
    digest_hmac_sha256(span_of(rate_limiter->secret, sizeof(rate_limiter->secret)),
                       span_of(text, size + 1), hash);
    uint32_t number;
    memcpy(&number, hash + FINGERPRINT_BYTES, sizeof(number));
    number = place_key(rate_limiter, kind, number);
    struct lookup lookup = {.lock = &rate_limiter->locks[number % LOCK_COUNT],
                            .bucket = &rate_limiter->entries[(size_t)number * BUCKET_WAYS]};
    memcpy(lookup.fingerprint, hash, FINGERPRINT_BYTES);
    return lookup;
}

static struct entry *find_entry(const struct lookup *lookup)
{
    for (int i = 0; i < BUCKET_WAYS; i++) {
        struct entry *entry = &lookup->bucket[i];
        if (entry->used_ns && !memcmp(entry->fingerprint, lookup->fingerprint, FINGERPRINT_BYTES))
            return entry;
    }
    return NULL;
}

/* Returns the entry, or a new one that replaces the bucket's least recently used. */
static struct entry *find_or_add_entry(const struct lookup *lookup, bool *ret_is_new)
{
    struct entry *entry = find_entry(lookup);
    *ret_is_new = !entry;
    if (entry)
        return entry;
    entry = &lookup->bucket[0];
    for (int i = 1; i < BUCKET_WAYS; i++)
        if (lookup->bucket[i].used_ns < entry->used_ns)
            entry = &lookup->bucket[i];
    *entry = (struct entry){0};
    memcpy(entry->fingerprint, lookup->fingerprint, FINGERPRINT_BYTES);
    return entry;
}

static enum err_code refuse_for(enum limit_kind kind, int64_t wait_ns, struct err *err)
{
    int wait_s = (int)((wait_ns + CLOCK_NS_PER_S - 1) / CLOCK_NS_PER_S);
    if (wait_s < 1)
        wait_s = 1;
    const int hours = (wait_s + 3599) / 3600;
    if (hours > 2)
        err_set(err, ERR_RATE_LIMITED, "%s; try again in %d hours", rules[kind].message, hours);
    else
        err_set(err, ERR_RATE_LIMITED, "%s; try again in %d second%s", rules[kind].message, wait_s,
                wait_s == 1 ? "" : "s");
    err->retry_after_s = wait_s;
    return ERR_RATE_LIMITED;
}

static double seconds(int64_t ns)
{
    return (double)ns / (double)CLOCK_NS_PER_S;
}

enum err_code rate_limiter_take(struct rate_limiter *rate_limiter, enum limit_kind kind,
                                struct span key, double per_minute, double burst, struct err *err)
{
    return rate_limiter_take_amount(rate_limiter, kind, key, 1, per_minute, burst, err);
}

/* The entry of a token bucket of that size, filled up to now; its lock is held. */
static struct entry *refill(struct rate_limiter *rate_limiter, const struct lookup *lookup,
                            double per_minute, double size)
{
    int64_t now_ns = rate_limiter->now_ns();
    bool is_new;
    struct entry *entry = find_or_add_entry(lookup, &is_new);
    double amount =
        is_new ? size : entry->amount + seconds(now_ns - entry->used_ns) * per_minute / 60;
    entry->amount = amount < size ? amount : size;
    entry->used_ns = now_ns;
    return entry;
}

enum err_code rate_limiter_take_amount(struct rate_limiter *rate_limiter, enum limit_kind kind,
                                       struct span key, double wanted, double per_minute,
                                       double burst, struct err *err)
{
    if (per_minute <= 0)
        return refuse_for(kind, 60 * CLOCK_NS_PER_S, err);
    double size = burst >= 1 ? burst : 1;
    struct lookup lookup = lookup_of(rate_limiter, kind, key);
    pthread_mutex_lock(lookup.lock);
    struct entry *entry = refill(rate_limiter, &lookup, per_minute, size);
    const double taken = wanted < size ? wanted : size;
    bool is_allowed = entry->amount >= taken;
    double missing = taken - entry->amount;
    if (is_allowed)
        entry->amount -= taken;
    pthread_mutex_unlock(lookup.lock);
    if (is_allowed)
        return ERR_NONE;
    return refuse_for(kind, (int64_t)(missing * 60 / per_minute * (double)CLOCK_NS_PER_S), err);
}

void rate_limiter_charge_amount(struct rate_limiter *rate_limiter, enum limit_kind kind,
                                struct span key, double amount, double per_minute, double burst)
{
    const double size = burst >= 1 ? burst : 1;
    const double most = MAX_DEBT_BURSTS * size;
    struct lookup lookup = lookup_of(rate_limiter, kind, key);
    pthread_mutex_lock(lookup.lock);
    refill(rate_limiter, &lookup, per_minute, size)->amount -= amount < most ? amount : most;
    pthread_mutex_unlock(lookup.lock);
}

void rate_limiter_give_back(struct rate_limiter *rate_limiter, enum limit_kind kind,
                            struct span key)
{
    rate_limiter_give_back_amount(rate_limiter, kind, key, 1);
}

void rate_limiter_give_back_amount(struct rate_limiter *rate_limiter, enum limit_kind kind,
                                   struct span key, double amount)
{
    struct lookup lookup = lookup_of(rate_limiter, kind, key);
    pthread_mutex_lock(lookup.lock);
    struct entry *entry = find_entry(&lookup);
    if (entry)
        entry->amount += amount; /* rate_limiter_take caps it */
    pthread_mutex_unlock(lookup.lock);
}

static void forget_if_old(struct entry *entry, enum limit_kind kind, int64_t now_ns)
{
    if (now_ns - entry->used_ns > rules[kind].forget_s * CLOCK_NS_PER_S)
        entry->amount = 0;
}

static int64_t wait_after(enum limit_kind kind, double failures)
{
    double doublings = failures - rules[kind].free_failures - 1;
    if (doublings < 0)
        return 0;
    if (doublings > MAX_BACKOFF_DOUBLINGS)
        doublings = MAX_BACKOFF_DOUBLINGS;
    double wait_s = rules[kind].first_wait_s * exp2(doublings);
    if (wait_s > rules[kind].longest_wait_s)
        wait_s = rules[kind].longest_wait_s;
    return (int64_t)(wait_s * (double)CLOCK_NS_PER_S);
}

static void count_failure(struct entry *entry, enum limit_kind kind, int64_t now_ns)
{
    forget_if_old(entry, kind, now_ns);
    entry->amount += 1;
    entry->used_ns = now_ns;
    entry->blocked_ns = now_ns + wait_after(kind, entry->amount);
}

enum err_code rate_limiter_check(struct rate_limiter *rate_limiter, enum limit_kind kind,
                                 struct span key, struct err *err)
{
    struct lookup lookup = lookup_of(rate_limiter, kind, key);
    pthread_mutex_lock(lookup.lock);
    const struct entry *entry = find_entry(&lookup);
    int64_t wait_ns = entry ? entry->blocked_ns - rate_limiter->now_ns() : 0;
    pthread_mutex_unlock(lookup.lock);
    return wait_ns > 0 ? refuse_for(kind, wait_ns, err) : ERR_NONE;
}

void rate_limiter_fail(struct rate_limiter *rate_limiter, enum limit_kind kind, struct span key)
{
    struct lookup lookup = lookup_of(rate_limiter, kind, key);
    bool is_new;
    pthread_mutex_lock(lookup.lock);
    count_failure(find_or_add_entry(&lookup, &is_new), kind, rate_limiter->now_ns());
    pthread_mutex_unlock(lookup.lock);
}

enum err_code rate_limiter_attempt(struct rate_limiter *rate_limiter, enum limit_kind kind,
                                   struct span key, struct err *err)
{
    struct lookup lookup = lookup_of(rate_limiter, kind, key);
    bool is_new;
    pthread_mutex_lock(lookup.lock);
    int64_t now_ns = rate_limiter->now_ns();
    struct entry *entry = find_or_add_entry(&lookup, &is_new);
    int64_t wait_ns = entry->blocked_ns - now_ns;
    if (is_new || wait_ns <= 0)
        count_failure(entry, kind, now_ns);
    pthread_mutex_unlock(lookup.lock);
    return !is_new && wait_ns > 0 ? refuse_for(kind, wait_ns, err) : ERR_NONE;
}

void rate_limiter_forgive(struct rate_limiter *rate_limiter, enum limit_kind kind, struct span key)
{
    struct lookup lookup = lookup_of(rate_limiter, kind, key);
    pthread_mutex_lock(lookup.lock);
    struct entry *entry = find_entry(&lookup);
    if (entry && entry->amount >= 1) {
        entry->amount -= 1;
        entry->blocked_ns = 0;
    }
    pthread_mutex_unlock(lookup.lock);
}

void rate_limiter_reset(struct rate_limiter *rate_limiter, enum limit_kind kind, struct span key)
{
    struct lookup lookup = lookup_of(rate_limiter, kind, key);
    pthread_mutex_lock(lookup.lock);
    struct entry *entry = find_entry(&lookup);
    if (entry)
        *entry = (struct entry){0};
    pthread_mutex_unlock(lookup.lock);
}

void rate_limiter_set_passwords(struct rate_limiter *rate_limiter, int per_minute)
{
    rate_limiter->passwords_per_minute = per_minute;
}

enum err_code rate_limiter_take_password(struct rate_limiter *rate_limiter, enum limit_kind kind,
                                         struct span key, struct err *err)
{
    const int per_minute = rate_limiter->passwords_per_minute;
    return rate_limiter_take(rate_limiter, kind, key, per_minute, 2.0 * per_minute, err);
}

/* ---- slots ---- */

/* Sources are compared as keyed hashes, addresses by their site. */
static uint64_t hash_source(const struct rate_limiter *rate_limiter, enum limit_slot kind,
                            struct span source)
{
    uint8_t prefix[16], hash[DIGEST_BYTES];
    uint64_t number;
    if (kind != SLOT_PASSWORD_DEVICE)
        source = network_of(source, SITE_BYTES, prefix);
    digest_hmac_sha256(span_of(rate_limiter->secret, sizeof(rate_limiter->secret)), source, hash);
    memcpy(&number, hash, sizeof(number));
    return number;
}

static bool has_slot(const struct slot_pool *pool, uint64_t source)
{
    for (int i = 0; i < pool->used; i++) {
        if (pool->sources[i] == source)
            return true;
    }
    return false;
}

/* The request that gets the next slot: the one that has waited longest, of those whose site has not
 * failed before, or else of all. A source has only one slot. */
static struct slot_waiter **find_next_waiter(struct slot_pool *pool)
{
    struct slot_waiter **next = NULL;
    for (struct slot_waiter **at = &pool->waiters; *at; at = &(*at)->next) {
        const bool is_better = !next || ((*next)->has_failed && !(*at)->has_failed);
        if (is_better && !has_slot(pool, (*at)->source))
            next = at;
    }
    return next;
}

static void give_slots(struct slot_pool *pool, const struct slot_rule *rule)
{
    bool has_given = false;
    struct slot_waiter **at;
    while (pool->used < rule->slots && (at = find_next_waiter(pool))) {
        struct slot_waiter *waiter = *at;
        *at = waiter->next;
        waiter->has_slot = has_given = true;
        pool->sources[pool->used++] = waiter->source;
    }
    if (has_given)
        pthread_cond_broadcast(&pool->left);
}

/* Removes the last request of a site that has failed before, and refuses it. False: there is none.
 */
static bool replace_waiter(struct slot_pool *pool)
{
    struct slot_waiter **last = NULL;
    for (struct slot_waiter **at = &pool->waiters; *at; at = &(*at)->next) {
        if ((*at)->has_failed)
            last = at;
    }
    if (!last)
        return false;
    struct slot_waiter *waiter = *last;
    *last = waiter->next;
    waiter->is_refused = true;
    pthread_cond_broadcast(&pool->left);
    return true;
}

/* Appends it to the list. False: too many requests wait, or one of the same source does. */
static bool add_waiter(struct slot_pool *pool, const struct slot_rule *rule,
                       struct slot_waiter *waiter)
{
    int count = 0;
    for (const struct slot_waiter *at = pool->waiters; at; at = at->next) {
        if (at->source == waiter->source)
            return false;
        count++;
    }
    const bool must_wait = pool->used >= rule->slots || has_slot(pool, waiter->source);
    if (count >= rule->waiters && must_wait && (waiter->has_failed || !replace_waiter(pool)))
        return false;
    struct slot_waiter **end = &pool->waiters;
    while (*end)
        end = &(*end)->next;
    *end = waiter;
    return true;
}

static void remove_waiter(struct slot_pool *pool, const struct slot_waiter *waiter)
{
    struct slot_waiter **at = &pool->waiters;
    while (*at != waiter)
        at = &(*at)->next;
    *at = waiter->next;
}

static bool wait_for_slot(struct slot_pool *pool, const struct slot_rule *rule,
                          struct slot_waiter *waiter)
{
    struct timespec deadline;
    clock_gettime(CLOCK_MONOTONIC, &deadline);
    deadline.tv_sec += rule->wait_s;
    if (!add_waiter(pool, rule, waiter))
        return false;
    give_slots(pool, rule);
    int result = 0;
    while (!waiter->has_slot && !waiter->is_refused && result != ETIMEDOUT)
        result = pthread_cond_timedwait(&pool->left, &pool->mutex, &deadline);
    if (!waiter->has_slot && !waiter->is_refused)
        remove_waiter(pool, waiter);
    return waiter->has_slot;
}

bool rate_limiter_has_failed(struct rate_limiter *rate_limiter, struct span address)
{
    struct lookup lookup = lookup_of(rate_limiter, LIMIT_SIGN_IN_SITE, address);
    pthread_mutex_lock(lookup.lock);
    const struct entry *entry = find_entry(&lookup);
    const bool has_failed = entry && entry->amount > 1;
    pthread_mutex_unlock(lookup.lock);
    return has_failed;
}

enum err_code rate_limiter_enter(struct rate_limiter *rate_limiter, enum limit_slot kind,
                                 struct span source, struct err *err)
{
    struct slot_pool *pool = &rate_limiter->slot_pools[kind];
    struct slot_waiter waiter = {.source = hash_source(rate_limiter, kind, source),
                                 .has_failed = kind != SLOT_PASSWORD_DEVICE &&
                                               rate_limiter_has_failed(rate_limiter, source)};
    pthread_mutex_lock(&pool->mutex);
    const bool is_entered = wait_for_slot(pool, &slot_rules[kind], &waiter);
    pthread_mutex_unlock(&pool->mutex);
    if (is_entered)
        return ERR_NONE;
    err_set(err, ERR_BUSY, "Too many passwords are being checked; try again in 2 seconds");
    err->retry_after_s = 2;
    return ERR_BUSY;
}

void rate_limiter_leave(struct rate_limiter *rate_limiter, enum limit_slot kind, struct span source)
{
    struct slot_pool *pool = &rate_limiter->slot_pools[kind];
    const uint64_t number = hash_source(rate_limiter, kind, source);
    pthread_mutex_lock(&pool->mutex);
    assert(pool->used > 0 && has_slot(pool, number));
    pool->used--;
    if (pool->used && pool->sources[0] == number)
        pool->sources[0] = pool->sources[pool->used];
    give_slots(pool, &slot_rules[kind]);
    pthread_mutex_unlock(&pool->mutex);
}

int rate_limiter_waiting_count(struct rate_limiter *rate_limiter, enum limit_slot kind)
{
    struct slot_pool *pool = &rate_limiter->slot_pools[kind];
    int count = 0;
    pthread_mutex_lock(&pool->mutex);
    for (const struct slot_waiter *waiter = pool->waiters; waiter; waiter = waiter->next)
        count++;
    pthread_mutex_unlock(&pool->mutex);
    return count;
}
