/* driver.h - the groups of test_rpc_driver, each in the file of its name (driver_GROUP.c). A group
 * runs its tests over driver_kind and returns how many failed. */
#ifndef RMEMFS_TESTS_RPC_DRIVER_H
#define RMEMFS_TESTS_RPC_DRIVER_H

#include <stdint.h>

#include "common/transport/transport.h"

extern enum transport_kind driver_kind;

/* Acts as another client: attaches, writes a byte to standard output, and says BYE when standard
 * input ends. */
int driver_hold(const char *listen, const char *key_file, const char *owner, uint64_t instance,
	uint32_t flags);

int driver_run_auth(void);
int driver_run_convert(void);
int driver_run_data(void);
int driver_run_holders(void);
int driver_run_leases(void);
int driver_run_locks(void);
int driver_run_mutations(void);
int driver_run_pages(void);
int driver_run_places(void);
int driver_run_rings(void);
int driver_run_sessions(void);
int driver_run_silence(void);
int driver_run_squash(void);
int driver_run_start(void);
int driver_run_strangers(void);
int driver_run_sweep(void);
int driver_run_versions(void);

#endif
