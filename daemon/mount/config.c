#include "daemon/mount/config.h"

#include "common/base/util.h"
#include "daemon/file/cache_policy.h"
#include "daemon/serve/fs.h"
#include "daemon/request/request.h"

enum {
	THREADS_DEFAULT_MAX = 4,
	SPIN_DEFAULT_US = 100,
	READAHEAD_MAX = 16 << 20,
};

static const struct word transport_words[] = {
	{"auto", TRANSPORT_AUTO},
	{"verbs", TRANSPORT_VERBS},
	{"tcp", TRANSPORT_TCP},
	{"shm", TRANSPORT_SHM},
	{0},
};

static const struct word cache_words[] = {
	{"none", CACHE_NONE},
	{"shared", CACHE_SHARED},
	{"exclusive", CACHE_EXCLUSIVE},
	{0},
};

static const struct word ack_words[] = {
	{"remote", ACK_REMOTE},
	{"local", ACK_LOCAL},
	{0},
};

static const struct word names_words[] = {
	{"remote", NAMES_REMOTE},
	{"local", NAMES_LOCAL},
	{0},
};

/* The daemon's working directory is /. */
static const char *key_must(const char *text)
{
	return text[0] == '/' ? NULL : "must be the absolute path of a key file";
}

#define KEY(key) .name = #key, .offset = offsetof(struct client_config, key)

const struct conf_key client_config_keys[] = {
	{KEY(transport), .type = CONF_ENUM, .words = transport_words},
	{KEY(port), .type = CONF_UINT, .min = 1, .max = 65535},
	{KEY(key), .type = CONF_STRING, .min = 1, .max = 4095, .check = key_must},
	{KEY(protection), .type = CONF_ENUM, .words = protection_words},
	{KEY(connect_timeout), .type = CONF_UINT, .min = 1, .max = 3600},
	{KEY(peer_timeout), .type = CONF_UINT, .min = 1, .max = 3600},
	{KEY(soft), .type = CONF_BOOL},
	{KEY(timeo), .type = CONF_UINT, .min = 1, .max = 3600},
	{KEY(interrupt_wait), .type = CONF_UINT, .min = 1, .max = 3600},
	{KEY(cache), .type = CONF_ENUM, .words = cache_words},
	{KEY(readahead), .type = CONF_SIZE, .max = READAHEAD_MAX, .multiple = 1024},
	{KEY(ack), .type = CONF_ENUM, .words = ack_words},
	{KEY(names), .type = CONF_ENUM, .words = names_words},
	{KEY(debug_io), .type = CONF_BOOL},
	{KEY(io_threads), .type = CONF_UINT, .min = 1, .max = IO_THREADS_MAX},
	{KEY(buffers), .type = CONF_UINT, .min = 2, .max = 256},
	{KEY(merge_pages), .type = CONF_UINT, .min = 1, .max = IO_PAGES_MAX},
	{KEY(spin_us), .type = CONF_UINT, .max = 10000},
	{KEY(exit_when_lost), .type = CONF_BOOL},
	{KEY(revive), .type = CONF_BOOL},
	{KEY(low_latency), .type = CONF_BOOL},
	{KEY(exclusive), .type = CONF_BOOL},
	{KEY(share), .type = CONF_BOOL},
	{KEY(log_level), .type = CONF_ENUM, .words = log_level_words},
	{0},
};

/* Keys of server.conf that client.conf does not have. tests/docs.sh compares them with that file.
 */
static const char *const server_names[] = {
	"memory_dir",
	"exports",
	"listen",
	"region_size",
	"huge_pages",
	"numa_node",
	"lease_time",
	"lease_limit",
	"local_access",
	"snapshot_dir",
	"snapshot_on_stop",
	"restore_on_start",
	"metadata_reserve",
	NULL,
};
const struct conf_elsewhere client_config_elsewhere = {"the server's server.conf", server_names};

void client_config_init(struct client_config *config)
{
	*config = (struct client_config){
		.connect_timeout = 5,
		.peer_timeout = 5,
		.timeo = 60,
		.interrupt_wait = 30,
		.buffers = 16,
		.readahead = 1 << 20,
		.merge_pages = IO_PAGES_MAX,
		.spin_us = SPIN_AUTO,
		.transport = TRANSPORT_AUTO,
		.cache = CACHE_SHARED,
		.ack = ACK_LOCAL,
		.names = NAMES_REMOTE,
		.log_level = LOG_LEVEL_INFO,
	};
}

void client_config_fini(struct client_config *config)
{
	conf_free(client_config_keys, config);
}

int client_config_read(struct client_config *config, const char *path, char *why, size_t whylen)
{
	return conf_read(path, client_config_keys, &client_config_elsewhere, config, why, whylen);
}

void client_config_finish(struct client_config *config, unsigned ncpus)
{
	if (!config->io_threads)
		config->io_threads = max_u64(min_u64(ncpus, THREADS_DEFAULT_MAX), 1);
	/* If other programs need the CPU, spinning costs more than waking. */
	config->spin_readers = config->spin_us == SPIN_AUTO ? ncpus / 2 : config->io_threads;
	if (config->spin_us == SPIN_AUTO)
		config->spin_us = SPIN_DEFAULT_US;
	if (config->debug_io)
		config->log_level = LOG_LEVEL_DEBUG;
}
