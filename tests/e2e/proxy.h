/* proxy.h - for tests: what the proxies between clients and a server over tcp share. Ports are at
 * 127.0.0.1.
 *
 * THREADS  Any. ERRORS end the program.
 */
#ifndef RMEMFS_TESTS_E2E_PROXY_H
#define RMEMFS_TESTS_E2E_PROXY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Listens, and says "ready". */
int proxy_listen(const char *port);
/* -1: no server is there. */
int proxy_dial(const char *port);
/* Sends all of it. False: the other side gave up. */
bool proxy_put(int fd, const uint8_t *bytes, size_t len);
/* Begins a thread that nobody waits for. */
void proxy_thread(void *(*run)(void *arg), void *arg);
/* By SIGTERM `tell` prints what is to be said, and the program ends. Before any other thread. */
void proxy_await_signal(void (*tell)(void));

#endif
