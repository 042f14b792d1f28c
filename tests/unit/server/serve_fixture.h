/* serve_fixture.h - a store, and as much of a server as it takes to make the memory of exports in
 * its directory. Include it once: it has the state. */
#ifndef RMEMFS_TESTS_SERVE_FIXTURE_H
#define RMEMFS_TESTS_SERVE_FIXTURE_H

#include "tests/unit/server/meta_fixture.h"

#include <dirent.h>
#include <poll.h>
#include <sys/eventfd.h>

#include "server/serve/new_exports.h"

enum { SERVE_WAIT_MS = 20000 };

static struct server server;
static struct server_config config; /* one export, which the test has */
static struct new_exports new;
static char why[RPC_TEXT_MAX];

static inline void serve_set_up(void **state, struct export_config *export, uint64_t region_bytes)
{
	fx_set_up(state);
	server_config_init(&config);
	config.region_size = region_bytes;
	config.exports.v = export;
	config.exports.n = 1;
	config.metadata_reserve = (uint64_t)FX_STORE_MIB << 20;
	server = (struct server){.meta = fx.m, .config = &config};
	snprintf(server.dir.path, sizeof(server.dir.path), "%s", fx.dir);
	snprintf(server.dir.regions, sizeof(server.dir.regions), "%s", fx.dir);
	snprintf(server.dir.store, sizeof(server.dir.store), "%s", fx.dir);
	server.dir.regions_block = PAGE_BYTES;
	new = (struct new_exports){.server = &server, .config = &config};
	new.fd = eventfd(0, EFD_CLOEXEC);
	assert_true(new.fd >= 0);
}

static inline int serve_tear_down(void **state)
{
	config.exports.v = NULL;
	config.exports.n = 0;
	server_config_fini(&config);
	return fx_tear_down(state);
}

/* The thread ends. Before serve_tear_down(), and before what it uses goes. */
static inline void serve_drop(void)
{
	new_exports_drop(&new);
	close(new.fd);
}

/* Region files of the export. */
static inline unsigned serve_files(const char *export)
{
	DIR *d = opendir(fx.dir);
	struct dirent *entry;
	size_t len = strlen(export);
	unsigned n = 0;

	assert_non_null(d);
	while ((entry = readdir(d)))
		n += strncmp(entry->d_name, export, len) == 0 && entry->d_name[len] == '.';
	closedir(d);
	return n;
}

static inline void serve_wait_for(enum new_exports_state wanted)
{
	struct pollfd fd = {.fd = new.fd, .events = POLLIN};
	eventfd_t n;

	/* An earlier thread may have left its word. */
	do {
		assert_int_equal(poll(&fd, 1, SERVE_WAIT_MS), 1);
		assert_int_equal(eventfd_read(new.fd, &n), 0);
	} while (atomic_load(&new.state) == NEW_EXPORTS_MAKING);
	assert_int_equal(atomic_load(&new.state), wanted);
}

#endif
