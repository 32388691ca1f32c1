#include "api/server/connection_table.h"

#include "lib/base/digest.h"
#include "lib/base/mem.h"

#include <assert.h>
#include <pthread.h>
#include <stddef.h>

TAILQ_HEAD(entry_list, connection_entry);

/* Exists as long as the address has an entry, counted or evicted. */
struct connection_address {
    struct connection_address *next; /* in its bucket */
    uint64_t subscriber;
    int entry_count;
    int counted;                  /* entries that are not evicted */
    struct entry_list waiting[2]; /* as waiting of the table, without the receiving entries */
};

struct connection_table {
    pthread_mutex_t mutex;
    struct connection_limits limits;
    int counted;
    struct entry_list waiting[2]; /* indexed by is_authenticated; longest waiting first */
    uint64_t factor;              /* of the hash, odd and random */
    unsigned bucket_bits;
    struct connection_address **buckets;
};

struct connection_table *connection_table_create(const struct connection_limits *limits)
{
    struct connection_table *table = mem_new(struct connection_table, 1);
    table->limits = *limits;
    while (table->bucket_bits < 20 && 1 << table->bucket_bits < limits->total)
        table->bucket_bits++;
    table->buckets = mem_new(struct connection_address *, (size_t)1 << table->bucket_bits);
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

static struct connection_address **bucket_of(const struct connection_table *table,
                                             uint64_t subscriber)
{
    uint64_t hash = subscriber * table->factor;
    return &table->buckets[table->bucket_bits ? hash >> (64 - table->bucket_bits) : 0];
}

static struct connection_address *find_address(const struct connection_table *table,
                                               uint64_t subscriber)
{
    struct connection_address *address = *bucket_of(table, subscriber);
    while (address && address->subscriber != subscriber)
        address = address->next;
    return address;
}

static struct connection_address *find_or_add_address(struct connection_table *table,
                                                      uint64_t subscriber)
{
    struct connection_address *address = find_address(table, subscriber);
    if (address)
        return address;
    address = mem_new(struct connection_address, 1);
    address->subscriber = subscriber;
    TAILQ_INIT(&address->waiting[false]);
    TAILQ_INIT(&address->waiting[true]);
    struct connection_address **bucket = bucket_of(table, subscriber);
    address->next = *bucket;
    *bucket = address;
    return address;
}

static void remove_address(struct connection_table *table, struct connection_address *address)
{
    struct connection_address **link = bucket_of(table, address->subscriber);
    while (*link != address)
        link = &(*link)->next;
    *link = address->next;
    mem_free(address);
}

static void count_entry(struct connection_table *table, struct connection_entry *entry, int change)
{
    table->counted += change;
    entry->address->counted += change;
}

static void start_waiting(struct connection_table *table, struct connection_entry *entry)
{
    entry->is_waiting = true;
    TAILQ_INSERT_TAIL(&table->waiting[entry->is_authenticated], entry, waiting_link);
    if (!entry->is_receiving)
        TAILQ_INSERT_TAIL(&entry->address->waiting[entry->is_authenticated], entry, address_link);
}

static void stop_waiting(struct connection_table *table, struct connection_entry *entry)
{
    if (!entry->is_waiting)
        return;
    entry->is_waiting = false;
    TAILQ_REMOVE(&table->waiting[entry->is_authenticated], entry, waiting_link);
    if (!entry->is_receiving)
        TAILQ_REMOVE(&entry->address->waiting[entry->is_authenticated], entry, address_link);
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

static struct connection_decision decide_admission(struct connection_table *table,
                                                   const struct connection_address *address)
{
    const struct connection_limits *limits = &table->limits;
    struct connection_decision decision = {.verdict = CONNECTION_ADMITTED};
    if (limits->per_address && address && address->counted >= limits->per_address) {
        struct connection_entry *victim = TAILQ_FIRST(&address->waiting[false]);
        if (!victim)
            victim = TAILQ_FIRST(&address->waiting[true]);
        if (!evict_entry(table, victim, CONNECTION_EVICTED_BY_ADDRESS, &decision))
            decision.verdict = CONNECTION_REFUSED_BY_ADDRESS;
        return decision;
    }
    if (table->counted < limits->total - limits->reserved ||
        evict_entry(table, TAILQ_FIRST(&table->waiting[false]), CONNECTION_EVICTED_BY_TOTAL,
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
    struct connection_decision decision = decide_admission(table, find_address(table, subscriber));
    if (decision.verdict == CONNECTION_ADMITTED ||
        decision.verdict == CONNECTION_ADMITTED_RESERVED) {
        *entry = (struct connection_entry){.owner = owner};
        entry->address = find_or_add_address(table, subscriber);
        entry->address->entry_count++;
        count_entry(table, entry, 1);
        start_waiting(table, entry);
    }
    pthread_mutex_unlock(&table->mutex);
    return decision;
}

void connection_table_remove(struct connection_table *table, struct connection_entry *entry)
{
    pthread_mutex_lock(&table->mutex);
    struct connection_address *address = entry->address;
    stop_waiting(table, entry);
    if (!connection_is_evicted(entry))
        count_entry(table, entry, -1);
    if (--address->entry_count == 0)
        remove_address(table, address);
    entry->address = NULL;
    pthread_mutex_unlock(&table->mutex);
}

void connection_table_begin(struct connection_table *table, struct connection_entry *entry)
{
    pthread_mutex_lock(&table->mutex);
    stop_waiting(table, entry);
    entry->is_receiving = false;
    if (connection_is_evicted(entry)) {
        atomic_store_explicit(&entry->is_evicted, false, memory_order_relaxed);
        count_entry(table, entry, 1);
    }
    pthread_mutex_unlock(&table->mutex);
}

void connection_table_end(struct connection_table *table, struct connection_entry *entry)
{
    pthread_mutex_lock(&table->mutex);
    assert(!entry->is_waiting && !connection_is_evicted(entry));
    start_waiting(table, entry);
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
