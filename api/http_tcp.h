/*
 * http_tcp: what the kernel knows about a TCP connection's progress.
 */
#ifndef API_HTTP_TCP_H
#define API_HTTP_TCP_H

#include <stdbool.h>
#include <stdint.h>

/* Bytes that have come in, and bytes of ours that the peer has acknowledged, since the connection
 * began. False when fd is no TCP socket or the kernel does not say. */
bool http_tcp_progress(int fd, uint64_t *ret_received, uint64_t *ret_acked);

/* Has the peer closed its direction, or is the connection broken? What it sent before may still
 * have to be read. */
bool http_tcp_has_ended(int fd);

#endif
