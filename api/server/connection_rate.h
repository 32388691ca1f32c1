/*
 * connection_rate: limits the new connections of each site, since a TLS handshake costs the server
 * as much as its client, and one that the client does not finish costs the client nothing.
 *
 * A site is an IPv4 address, or the /48 of an IPv6 address (tcp_info_site). Each has a number of
 * connections that it may open at once, CONNECTION_RATE_BURST_S times per_second, which fills by
 * per_second each second. A connection takes one; it gives it back when a request on it is
 * authenticated, so that a fleet of agents behind one address is not limited. One that ends during
 * its handshake takes CONNECTION_RATE_FAILED in all.
 *
 * Memory: fixed, 96 KiB. The site that has been unused for longest is forgotten for a new one.
 * Threads: any.
 */
#ifndef API_SERVER_CONNECTION_RATE_H
#define API_SERVER_CONNECTION_RATE_H

#include <stdbool.h>
#include <stdint.h>

enum { CONNECTION_RATE_BURST_S = 64, CONNECTION_RATE_FAILED = 4 };

struct connection_rate;

/* now_ns is clock_monotonic_ns, or a test's clock. */
struct connection_rate *connection_rate_create(int per_second, int64_t (*now_ns)(void));
void connection_rate_destroy(struct connection_rate *rate); /* NULL is a no-op */

/* Takes a connection of a site; false if the site has none left. */
bool connection_rate_take(struct connection_rate *rate, uint64_t site);
/* The connection ended during its handshake: takes more connections, also those of the future, but
 * at most as many as fill within CONNECTION_RATE_BURST_S. */
void connection_rate_charge_failed(struct connection_rate *rate, uint64_t site);
/* Gives the connection back. */
void connection_rate_give_back(struct connection_rate *rate, uint64_t site);

#endif
