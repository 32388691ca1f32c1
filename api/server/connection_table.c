#include "api/server/connection_table.h"

#include "api/server/tcp_info.h"
#include "lib/base/digest.h"
#include "lib/base/mem.h"

#include <assert.h>
#include <pthread.h>
#include <stddef.h>

TAILQ_HEAD(entry_list, connection_entry);

/* A site has many connections if it has more than this part of the total and than MIN_FAIR. Its
 * connections are looked for among the first LOOKED_AT waiting ones only, to bound the work. */
enum { FAIR_PART = 128, MIN_FAIR = 4, LOOKED_AT = 64 };

/* The connections of an address or of a site. Exists as long as it has an entry, counted or
 * evicted. */
struct connection_group {
    struct connection_group *next; /* in its bucket */
    enum connection_grouping grouping;
    uint64_t number; /* identifies the address, or the site */
    int entry_count;
    int counted; /* entries that are not evicted */
    /* As waiting of the table; [1] contains the receiving entries. */
    struct entry_list waiting[2][2];
};

struct connection_table {
    pthread_mutex_t mutex;
    struct connection_limits limits;
    int counted;
    struct entry_list waiting[2]; /* indexed by is_authenticated; longest waiting first */
    uint64_t factor;              /* of the hash, odd and random */
    unsigned bucket_bits;
    struct connection_group **buckets;
};

struct connection_table *connection_table_create(const struct connection_limits *limits)
{
    struct connection_table *table = mem_new(struct connection_table, 1);
    table->limits = *limits;
    while (table->bucket_bits < 20 && 1 << table->bucket_bits < limits->total)
        table->bucket_bits++;
    table->buckets = mem_new(struct connection_group *, (size_t)1 << table->bucket_bits);
    digest_random((uint8_t *)&table->factor, sizeof(table->factor));
    table->factor |= 1;
    TAILQ_INIT(&table->waiting[false]);
    TAILQ_INIT(&table->waiting[true]);
    pthread_mutex_init(&table->mutex, NULL);
    return table;
}

void connection_table_destroy(struct connection_table *table)
{
    if (!table)
        return;
    pthread_mutex_destroy(&table->mutex);
    mem_free(table->buckets);
    mem_free(table);
}

static uint64_t number_of_group(enum connection_grouping grouping, uint64_t subscriber)
{
    return grouping == CONNECTION_BY_SITE ? tcp_info_site(subscriber) : subscriber;
}

/* The link to the group of a subscriber, or to the end of its bucket. */
static struct connection_group **find_group(const struct connection_table *table,
                                            enum connection_grouping grouping, uint64_t subscriber)
{
    const uint64_t number = number_of_group(grouping, subscriber);
    const uint64_t hash = (number * CONNECTION_GROUPINGS + grouping) * table->factor;
    struct connection_group **link =
        &table->buckets[table->bucket_bits ? hash >> (64 - table->bucket_bits) : 0];
    while (*link && ((*link)->number != number || (*link)->grouping != grouping))
        link = &(*link)->next;
    return link;
}

static struct connection_group *find_or_add_group(struct connection_table *table,
                                                  enum connection_grouping grouping,
                                                  uint64_t subscriber)
{
    struct connection_group **link = find_group(table, grouping, subscriber);
    if (*link)
        return *link;
    struct connection_group *group = mem_new(struct connection_group, 1);
    group->grouping = grouping;
    group->number = number_of_group(grouping, subscriber);
    for (int i = 0; i < 4; i++)
        TAILQ_INIT(&group->waiting[i / 2][i % 2]);
    *link = group;
    return group;
}

static void join_groups(struct connection_table *table, struct connection_entry *entry,
                        uint64_t subscriber)
{
    for (int i = 0; i < CONNECTION_GROUPINGS; i++) {
        entry->groups[i] = find_or_add_group(table, (enum connection_grouping)i, subscriber);
        entry->groups[i]->entry_count++;
    }
}

static void leave_groups(struct connection_table *table, struct connection_entry *entry,
                         uint64_t subscriber)
{
    for (int i = 0; i < CONNECTION_GROUPINGS; i++) {
        struct connection_group *group = entry->groups[i];
        entry->groups[i] = NULL;
        if (--group->entry_count)
            continue;
        struct connection_group **link = find_group(table, (enum connection_grouping)i, subscriber);
        *link = group->next;
        mem_free(group);
    }
}

static void count_entry(struct connection_table *table, struct connection_entry *entry, int change)
{
    table->counted += change;
    for (int i = 0; i < CONNECTION_GROUPINGS; i++)
        entry->groups[i]->counted += change;
}

static struct entry_list *waiting_in_group(const struct connection_entry *entry, int grouping)
{
    return &entry->groups[grouping]->waiting[entry->is_authenticated][entry->is_receiving];
}

static void start_waiting(struct connection_table *table, struct connection_entry *entry)
{
    entry->is_waiting = true;
    TAILQ_INSERT_TAIL(&table->waiting[entry->is_authenticated], entry, waiting_link);
    for (int i = 0; i < CONNECTION_GROUPINGS; i++)
        TAILQ_INSERT_TAIL(waiting_in_group(entry, i), entry, group_links[i]);
}

static void stop_waiting(struct connection_table *table, struct connection_entry *entry)
{
    if (!entry->is_waiting)
        return;
    entry->is_waiting = false;
    TAILQ_REMOVE(&table->waiting[entry->is_authenticated], entry, waiting_link);
    for (int i = 0; i < CONNECTION_GROUPINGS; i++)
        TAILQ_REMOVE(waiting_in_group(entry, i), entry, group_links[i]);
}

static bool evict_entry(struct connection_table *table, struct connection_entry *victim,
                        enum connection_eviction eviction, struct connection_decision *decision)
{
    if (!victim)
        return false;
    stop_waiting(table, victim);
    count_entry(table, victim, -1);
    decision->eviction = eviction;
    decision->evicted_owner = victim->owner;
    atomic_store_explicit(&victim->is_evicted, true, memory_order_release);
    return true;
}

static struct connection_entry *first_of_address(const struct connection_group *address)
{
    struct connection_entry *first = TAILQ_FIRST(&address->waiting[false][false]);
    return first ? first : TAILQ_FIRST(&address->waiting[true][false]);
}

static bool has_many(const struct connection_table *table, const struct connection_group *site)
{
    const int part = table->limits.total / FAIR_PART;
    return site->counted > (part > MIN_FAIR ? part : MIN_FAIR);
}

/* The connection to evict for a new one of the site (NULL: it has none) when the table is full;
 * NULL: none can be. */
static struct connection_entry *choose_unauthenticated(const struct connection_table *table,
                                                       const struct connection_group *site)
{
    if (site && has_many(table, site)) {
        for (int is_receiving = 0; is_receiving < 2; is_receiving++) {
            struct connection_entry *own = TAILQ_FIRST(&site->waiting[false][is_receiving]);
            if (own)
                return own;
        }
    }
    struct connection_entry *entry = TAILQ_FIRST(&table->waiting[false]);
    for (int i = 0; entry && i < LOOKED_AT; i++) {
        if (has_many(table, entry->groups[CONNECTION_BY_SITE]))
            return entry;
        entry = TAILQ_NEXT(entry, waiting_link);
    }
    return TAILQ_FIRST(&table->waiting[false]);
}

static struct connection_decision decide_accept(struct connection_table *table, uint64_t subscriber)
{
    const struct connection_limits *limits = &table->limits;
    const struct connection_group *address = *find_group(table, CONNECTION_BY_ADDRESS, subscriber);
    const struct connection_group *site = *find_group(table, CONNECTION_BY_SITE, subscriber);
    struct connection_decision decision = {.verdict = CONNECTION_ADMITTED};
    if (limits->per_address && address && address->counted >= limits->per_address) {
        if (!evict_entry(table, first_of_address(address), CONNECTION_EVICTED_BY_ADDRESS,
                         &decision))
            decision.verdict = CONNECTION_REFUSED_BY_ADDRESS;
        return decision;
    }
    if (table->counted < limits->total - limits->reserved ||
        evict_entry(table, choose_unauthenticated(table, site), CONNECTION_EVICTED_BY_TOTAL,
                    &decision))
        return decision;
    decision.verdict = CONNECTION_ADMITTED_RESERVED;
    if (table->counted >= limits->total && !evict_entry(table, TAILQ_FIRST(&table->waiting[true]),
                                                        CONNECTION_EVICTED_BY_TOTAL, &decision))
        decision.verdict = CONNECTION_REFUSED_BY_TOTAL;
    return decision;
}

struct connection_decision connection_table_add(struct connection_table *table, uint64_t subscriber,
                                                int owner, struct connection_entry *entry)
{
    pthread_mutex_lock(&table->mutex);
    struct connection_decision decision = decide_accept(table, subscriber);
    if (decision.verdict == CONNECTION_ADMITTED ||
        decision.verdict == CONNECTION_ADMITTED_RESERVED) {
        *entry = (struct connection_entry){.owner = owner};
        join_groups(table, entry, subscriber);
        count_entry(table, entry, 1);
        start_waiting(table, entry);
    }
    pthread_mutex_unlock(&table->mutex);
    return decision;
}

void connection_table_remove(struct connection_table *table, struct connection_entry *entry)
{
    pthread_mutex_lock(&table->mutex);
    const uint64_t subscriber = entry->groups[CONNECTION_BY_ADDRESS]->number;
    stop_waiting(table, entry);
    if (!connection_is_evicted(entry))
        count_entry(table, entry, -1);
    leave_groups(table, entry, subscriber);
    pthread_mutex_unlock(&table->mutex);
}

void connection_table_begin(struct connection_table *table, struct connection_entry *entry)
{
    pthread_mutex_lock(&table->mutex);
    stop_waiting(table, entry);
    entry->is_receiving = entry->is_stalled = false;
    if (connection_is_evicted(entry)) {
        atomic_store_explicit(&entry->is_evicted, false, memory_order_relaxed);
        count_entry(table, entry, 1);
    }
    pthread_mutex_unlock(&table->mutex);
}

void connection_table_end(struct connection_table *table, struct connection_entry *entry)
{
    pthread_mutex_lock(&table->mutex);
    assert(!entry->is_waiting || entry->is_stalled);
    if (!connection_is_evicted(entry)) {
        stop_waiting(table, entry);
        start_waiting(table, entry);
    }
    entry->is_stalled = false;
    pthread_mutex_unlock(&table->mutex);
}

void connection_table_set_stalled(struct connection_table *table, struct connection_entry *entry,
                                  bool is_stalled)
{
    pthread_mutex_lock(&table->mutex);
    if (is_stalled && !entry->is_waiting && !connection_is_evicted(entry)) {
        entry->is_stalled = true;
        start_waiting(table, entry);
    } else if (!is_stalled && entry->is_stalled) {
        entry->is_stalled = false;
        stop_waiting(table, entry);
    }
    pthread_mutex_unlock(&table->mutex);
}

void connection_table_set_receiving(struct connection_table *table, struct connection_entry *entry,
                                    bool is_receiving)
{
    pthread_mutex_lock(&table->mutex);
    if (entry->is_waiting && (is_receiving || entry->is_receiving)) {
        stop_waiting(table, entry);
        entry->is_receiving = is_receiving;
        start_waiting(table, entry);
    }
    pthread_mutex_unlock(&table->mutex);
}

void connection_table_authenticate(struct connection_table *table, struct connection_entry *entry)
{
    pthread_mutex_lock(&table->mutex);
    bool is_waiting = entry->is_waiting;
    stop_waiting(table, entry);
    entry->is_authenticated = true;
    if (is_waiting)
        start_waiting(table, entry);
    pthread_mutex_unlock(&table->mutex);
}

int connection_table_count(struct connection_table *table)
{
    pthread_mutex_lock(&table->mutex);
    int counted = table->counted;
    pthread_mutex_unlock(&table->mutex);
    return counted;
}
