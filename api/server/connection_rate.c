#include "api/server/connection_rate.h"

#include "lib/base/clock.h"
#include "lib/base/digest.h"
#include "lib/base/mem.h"

#include <pthread.h>

/* A site's entry is in one of the sets of the table, chosen by a hash. */
enum { SET_BITS = 9, SETS = 1 << SET_BITS, ENTRIES_OF_SET = 8 };

struct entry {
    uint64_t site;
    int64_t filled_ns; /* when left was last computed; 0: unused */
    double left;       /* below 0 after failed handshakes */
};

struct connection_rate {
    pthread_mutex_t mutex;
    int64_t (*now_ns)(void);
    double per_second;
    uint64_t secret; /* makes the set of a site unpredictable */
    struct entry entries[SETS][ENTRIES_OF_SET];
};

struct connection_rate *connection_rate_create(int per_second, int64_t (*now_ns)(void))
{
    struct connection_rate *rate = mem_new(struct connection_rate, 1);
    rate->now_ns = now_ns;
    rate->per_second = per_second;
    digest_random((uint8_t *)&rate->secret, sizeof(rate->secret));
    pthread_mutex_init(&rate->mutex, NULL);
    return rate;
}

void connection_rate_destroy(struct connection_rate *rate)
{
    if (!rate)
        return;
    pthread_mutex_destroy(&rate->mutex);
    mem_free(rate);
}

static double burst(const struct connection_rate *rate)
{
    return rate->per_second * CONNECTION_RATE_BURST_S;
}

static struct entry *find_set(struct connection_rate *rate, uint64_t site)
{
    /* The steps of splitmix64: neighbouring addresses are in different sets. */
    uint64_t hash = (site ^ rate->secret) * UINT64_C(0x9e3779b97f4a7c15);
    hash = (hash ^ hash >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    hash = (hash ^ hash >> 27) * UINT64_C(0x94d049bb133111eb);
    return rate->entries[hash >> (64 - SET_BITS)];
}

/* The site's entry, filled up to now. */
static struct entry *find_entry(struct connection_rate *rate, uint64_t site)
{
    struct entry *set = find_set(rate, site);
    struct entry *found = &set[0];
    const int64_t now_ns = rate->now_ns();
    for (int i = 0; i < ENTRIES_OF_SET; i++) {
        if (set[i].filled_ns && set[i].site == site) {
            found = &set[i];
            break;
        }
        if (set[i].filled_ns < found->filled_ns)
            found = &set[i];
    }
    if (!found->filled_ns || found->site != site)
        *found = (struct entry){.site = site, .left = burst(rate)};
    else
        found->left +=
            rate->per_second * (double)(now_ns - found->filled_ns) / (double)CLOCK_NS_PER_S;
    if (found->left > burst(rate))
        found->left = burst(rate);
    found->filled_ns = now_ns;
    return found;
}

bool connection_rate_take(struct connection_rate *rate, uint64_t site)
{
    pthread_mutex_lock(&rate->mutex);
    struct entry *entry = find_entry(rate, site);
    const bool is_allowed = entry->left >= 1;
    entry->left -= is_allowed;
    pthread_mutex_unlock(&rate->mutex);
    return is_allowed;
}

static void add(struct connection_rate *rate, uint64_t site, double count)
{
    pthread_mutex_lock(&rate->mutex);
    struct entry *entry = find_entry(rate, site);
    entry->left += count;
    if (entry->left < -burst(rate))
        entry->left = -burst(rate);
    pthread_mutex_unlock(&rate->mutex);
}

void connection_rate_charge_failed(struct connection_rate *rate, uint64_t site)
{
    add(rate, site, 1 - CONNECTION_RATE_FAILED);
}

void connection_rate_give_back(struct connection_rate *rate, uint64_t site)
{
    add(rate, site, 1);
}
