/* auth_memory.h - keeps the keys that OpenSSL works with out of core dumps.
 *
 * OpenSSL has keys in many places of its heap: contexts of ciphers, handshakes, key schedules. So
 * all memory that it allocates is left out (common/base/nodump.h).
 *
 * THREADS    Before other threads start.
 */
#ifndef RMEMFS_COMMON_AUTH_AUTH_MEMORY_H
#define RMEMFS_COMMON_AUTH_AUTH_MEMORY_H

/* Near the begin of main(). Once OpenSSL has allocated memory it refuses, and a warning is logged.
 */
void auth_memory_init(void);

#endif
