/*
 * postgres_leftover: ends the processes of a cluster that outlived the process that started them.
 *
 * A process of PostgreSQL notices the end of its parent when it next waits for a client. One that
 * waits for a lock of the shared memory, whose holder was killed, never does, and keeps the shared
 * memory, without which no other server can start on the cluster. One thread.
 */
#ifndef API_OPS_POSTGRES_LEFTOVER_H
#define API_OPS_POSTGRES_LEFTOVER_H

/* Kills every process of a program named "postgres" that works in the folder cluster_path, and
 * returns how many there were. No server may run on the cluster. */
int postgres_leftover_kill(const char *cluster_path);

#endif
