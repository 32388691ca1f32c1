/*
 * connection_table: counts open connections, in total and per address, and chooses which to close.
 *
 * A connection is waiting while none of its requests is being handled: during the TLS handshake,
 * while a request is being received, and between requests. Waiting connections are kept in the
 * order in which they began to wait. A connection whose response is read slowly or not at all is
 * stalled, and counts as waiting: its client can request it again. A waiting connection is
 * receiving while the body of a request arrives on it at a good rate. A connection is authenticated
 * once a request on it carried a valid token or session.
 *
 * A new connection is decided upon in this order:
 *   - Its address has per_address connections: of the address's waiting connections that are not
 *     receiving, one that is not authenticated is evicted before one that is, and among equals the
 *     one that has been waiting for longest; if there is none, the new connection is refused.
 *   - All but the reserved connections are in use: a connection that is waiting and not
 *     authenticated is evicted. A site (an IPv4 address, or the /48 of an IPv6 address) that has
 *     more than a few connections loses one of its own for its new one, a receiving one last. For
 *     a new connection of another site, or of one whose own are all busy or authenticated, the
 *     one of all sites with many connections that has been waiting for longest is evicted, or, if
 *     none of these is among the first, the one that has been waiting for longest. If there is
 * none, the new connection becomes a reserved one, which is for authenticated clients and health
 * checks.
 *   - The reserved connections are in use as well: the authenticated connection that has been
 *     waiting for longest is evicted; if none is waiting, the new connection is refused.
 *
 * An evicted connection no longer counts. Its owner's thread finds it by connection_is_evicted and
 * closes it; if a request has arrived on it meanwhile, it is counted again and stays open.
 *
 * An address is the number that tcp_info_subscriber() returns for it. Memory: the entries are part
 * of their owners' objects; each address and each site with a connection has 88 bytes in the table.
 * Threads: any for the functions; an entry belongs to one owner, which removes it before freeing.
 */
#ifndef API_SERVER_CONNECTION_TABLE_H
#define API_SERVER_CONNECTION_TABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct connection_group;
struct connection_table;

struct connection_limits {
    int total;
    int per_address; /* 0: no limit */
    int reserved;    /* of total */
};

/* Connections are grouped in two ways. */
enum connection_grouping { CONNECTION_BY_ADDRESS, CONNECTION_BY_SITE, CONNECTION_GROUPINGS };

struct connection_entry {
    TAILQ_ENTRY(connection_entry) waiting_link;
    TAILQ_ENTRY(connection_entry) group_links[CONNECTION_GROUPINGS];
    struct connection_group *groups[CONNECTION_GROUPINGS];
    int owner; /* the caller's number for the thread that owns the connection */
    bool is_waiting;
    bool is_receiving;
    bool is_stalled;
    bool is_authenticated;
    atomic_bool is_evicted;
};

enum connection_verdict {
    CONNECTION_ADMITTED,
    CONNECTION_ADMITTED_RESERVED,
    CONNECTION_REFUSED_BY_TOTAL,
    CONNECTION_REFUSED_BY_ADDRESS,
};

enum connection_eviction {
    CONNECTION_EVICTED_NONE,
    CONNECTION_EVICTED_BY_TOTAL,
    CONNECTION_EVICTED_BY_ADDRESS,
};

struct connection_decision {
    enum connection_verdict verdict;
    enum connection_eviction eviction;
    int evicted_owner; /* the owner of the evicted connection; unset without an eviction */
};

struct connection_table *connection_table_create(const struct connection_limits *limits);
/* All entries must have been removed. NULL is a no-op. */
void connection_table_destroy(struct connection_table *table);

/* Decides about a new connection; unless it is refused, entry is filled, counted and waiting. */
struct connection_decision connection_table_add(struct connection_table *table, uint64_t subscriber,
                                                int owner, struct connection_entry *entry);
void connection_table_remove(struct connection_table *table, struct connection_entry *entry);

/* begin: a request of the connection starts to be handled. end: the last such request has ended,
 * and the connection is waiting again. */
void connection_table_begin(struct connection_table *table, struct connection_entry *entry);
void connection_table_end(struct connection_table *table, struct connection_entry *entry);
/* Sets whether a request is being received at a good rate. A receiving connection is not evicted
 * for its address, and counts as waiting only since the last call. No-op unless the entry is
 * waiting. connection_table_begin ends the state, too. */
void connection_table_set_receiving(struct connection_table *table, struct connection_entry *entry,
                                    bool is_receiving);
/* Sets whether a response of the connection is stalled. No-op while the entry is waiting for a
 * request. begin and end end the state, too. */
void connection_table_set_stalled(struct connection_table *table, struct connection_entry *entry,
                                  bool is_stalled);
/* Records that a request on the connection was authenticated. */
void connection_table_authenticate(struct connection_table *table, struct connection_entry *entry);

static inline bool connection_is_evicted(const struct connection_entry *entry)
{
    return atomic_load_explicit(&entry->is_evicted, memory_order_acquire);
}

/* The number of counted connections. */
int connection_table_count(struct connection_table *table);

#endif
