/* config.c - keys, defaults and checks of the server's configuration. */
#include "server/config/config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "common/transport/address.h"
#include "common/base/types.h"
#include "common/base/util.h"
#include "server/config/config_shares.h"

#define MIB (1ull << 20)
#define GIB (1ull << 30)
#define TIB (1ull << 40)

/* Region numbers have 16 bits, page numbers within a region 31. */
enum { REGIONS_MAX = UINT16_MAX };
#define REGION_SIZE_MIN (2 * MIB)
#define REGION_SIZE_MAX (4 * TIB)

/* Room for the names of the set, the export and the files, which come below it. */
enum { SNAPSHOT_DIR_MAX = 900 };

/* The root, and one inode in it. */
enum { INODES_MIN = 2 };

static const struct word huge_pages_words[] = {
	{"never", HUGE_PAGES_NEVER},
	{"advise", HUGE_PAGES_ADVISE},
	{"always", HUGE_PAGES_ALWAYS},
	{0},
};

/* Export names become parts of file names and of SOURCE operands. */
static const char *check_export_name(const char *name)
{
	if (name[strspn(name,
		    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")] != '\0')
		return "must be of letters, digits, '.', '_' and '-'";
	return name[0] == '.' ? "must not begin with '.'" : NULL;
}

static const char *check_absolute(const char *path)
{
	return path[0] == '/' ? NULL : "must be a path from / on";
}

#define EXPORT_KEY(key) .name = #key, .offset = offsetof(struct export_config, key)

static const struct conf_key export_keys[] = {
	{EXPORT_KEY(name), .type = CONF_STRING, .min = 1, .max = EXPORT_NAME_MAX,
		.check = check_export_name, .required = true},
	{EXPORT_KEY(size), .type = CONF_SIZE, .min = PAGE_BYTES, .multiple = PAGE_BYTES,
		.required = true},
	{EXPORT_KEY(inodes), .type = CONF_UINT, .min = INODES_MIN},
	{EXPORT_KEY(metadata), .type = CONF_SIZE, .min = SHARE_MIN, .max = TIB,
		.multiple = PAGE_BYTES},
	{EXPORT_KEY(quotas), .type = CONF_GROUPS, .keys = config_quotas_keys,
		.element_bytes = sizeof(struct quota_config)},
	{EXPORT_KEY(clients), .type = CONF_GROUPS, .keys = config_clients_keys,
		.element_bytes = sizeof(struct export_client)},
	{EXPORT_KEY(protection), .type = CONF_ENUM, .words = protection_words},
	{0},
};

#define KEY(key) .name = #key, .offset = offsetof(struct server_config, key)

const struct conf_key server_config_keys[] = {
	{KEY(memory_dir), .type = CONF_STRING, .min = 1, .max = 1024},
	{KEY(listen), .type = CONF_STRINGS},
	{KEY(exports), .type = CONF_GROUPS, .keys = export_keys,
		.element_bytes = sizeof(struct export_config)},
	{KEY(region_size), .type = CONF_SIZE, .min = REGION_SIZE_MIN, .max = REGION_SIZE_MAX,
		.multiple = PAGE_BYTES},
	{KEY(huge_pages), .type = CONF_ENUM, .words = huge_pages_words},
	{KEY(numa_node), .type = CONF_UINT, .max = NUMA_NODE_MAX},
	{KEY(lease_time), .type = CONF_UINT, .min = 1, .max = 3600},
	{KEY(lease_limit), .type = CONF_UINT, .min = 16, .max = 16777216},
	{KEY(peer_timeout), .type = CONF_UINT, .min = 1, .max = 3600},
	{KEY(io_threads), .type = CONF_UINT, .min = 1, .max = 256},
	{KEY(local_access), .type = CONF_ENUM, .words = config_clients_local_words},
	{KEY(snapshot_dir), .type = CONF_STRING, .min = 1, .max = SNAPSHOT_DIR_MAX,
		.check = check_absolute},
	{KEY(snapshot_on_stop), .type = CONF_BOOL},
	{KEY(restore_on_start), .type = CONF_BOOL},
	{KEY(log_level), .type = CONF_ENUM, .words = log_level_words},
	{KEY(metadata_reserve), .type = CONF_SIZE, .min = METADATA_MIN, .max = TIB,
		.multiple = PAGE_BYTES},
	{0},
};

_Static_assert(ARRAY_SIZE(server_config_keys) <= SERVER_CONFIG_KEYS_MAX, "settings_later has room");

/* Keys that this file does not have and client.conf has. tests/docs.sh compares them with that
 * one. */
static const char *const client_names[] = {
	"transport",
	"port",
	"key",
	"protection",
	"connect_timeout",
	"soft",
	"timeo",
	"interrupt_wait",
	"cache",
	"readahead",
	"ack",
	"names",
	"debug_io",
	"buffers",
	"merge_pages",
	"spin_us",
	"exit_when_lost",
	"revive",
	"low_latency",
	"exclusive",
	"share",
	NULL,
};
static const struct conf_elsewhere client_file = {"the clients' client.conf", client_names};

static const struct conf_key *key_of(const char *name)
{
	return conf_find(server_config_keys, name);
}

void server_config_init(struct server_config *config)
{
	*config = (struct server_config){
		.region_size = GIB,
		.lease_time = 10,
		.lease_limit = 65536,
		.peer_timeout = 5,
		.io_threads = 1,
		.huge_pages = HUGE_PAGES_ADVISE,
		.numa_node = NUMA_AUTO,
		.local_access = ACCESS_READ_WRITE,
		.log_level = LOG_LEVEL_INFO,
	};
}

static void free_limits(struct server_config *config)
{
	struct export_config *export = config->exports.v;

	for (size_t i = 0; i < config->exports.n; i++)
		free(steal_ptr(&export[i].limits));
}

void server_config_fini(struct server_config *config)
{
	free_limits(config);
	conf_free(server_config_keys, config);
	free(config->addresses);
	config->addresses = NULL;
	conf_strings_free(&config->restore);
	conf_strings_free(&config->files);
	conf_strings_free(&config->marks);
}

int server_config_read(struct server_config *config, const char *path, char *why, size_t whylen)
{
	struct export_config *export;
	int err;

	config->path = path;
	err = conf_read(path, server_config_keys, &client_file, config, why, whylen);
	export = config->exports.v;
	for (size_t i = 0; i < config->exports.n; i++)
		export[i].path = path;
	return err;
}

const struct export_config *server_config_find(const struct server_config *config, const char *name)
{
	for (size_t i = 0; i < config->exports.n; i++)
		if (strcmp(server_config_export(config, i)->name, name) == 0)
			return server_config_export(config, i);
	return NULL;
}

/* ---- the command line ------------------------------------------------------------------------ */

__attribute__((format(printf, 4, 5))) static int refuse_option(
	const char *option, char *why, size_t whylen, const char *format, ...)
{
	char reason[384];
	va_list args;

	va_start(args, format);
	vsnprintf(reason, sizeof(reason), format, args);
	va_end(args);
	snprintf(why, whylen, "%s: %s", option, reason);
	return -EINVAL;
}

int server_config_set(struct server_config *config, const char *option, const char *key,
	const char *text, char *why, size_t whylen)
{
	char must[256], quoted[WORD_QUOTED_BYTES];
	int err = conf_set(key_of(key), config, text, must, sizeof(must));

	if (err == -EINVAL)
		return refuse_option(option, why, whylen, "%s: %s", word_quote(text, quoted), must);
	return err;
}

/* NAME:SIZE. The last colon counts: then the text about a wrong name is about the name. */
static int add_export(struct server_config *config, const char *name_size, char *why, size_t whylen)
{
	static const char option[] = "--export";
	const char *colon = strrchr(name_size, ':');
	size_t namelen = colon ? (size_t)(colon - name_size) : 0;
	autofree char *name = strndup(name_size, namelen);
	char must[256], quoted[WORD_QUOTED_BYTES];
	struct export_config *export;
	int err;

	word_quote(name_size, quoted);
	if (!colon)
		return refuse_option(
			option, why, whylen, "%s: must be NAME:SIZE, as in data:64GiB", quoted);
	export = conf_add_group(key_of("exports"), &config->exports, 0);
	if (!name || !export)
		return -ENOMEM;
	err = conf_set(&export_keys[0], export, name, must, sizeof(must));
	if (err == -EINVAL)
		return refuse_option(option, why, whylen, "%s: the name %s", quoted, must);
	if (!err)
		err = conf_set(&export_keys[1], export, colon + 1, must, sizeof(must));
	if (err == -EINVAL)
		return refuse_option(option, why, whylen, "%s: the size %s", quoted, must);
	return err;
}

int server_config_set_exports(struct server_config *config, const char *const *names_sizes,
	size_t n, char *why, size_t whylen)
{
	int err = 0;

	free_limits(config);
	conf_clear(key_of("exports"), config);
	for (size_t i = 0; !err && i < n; i++)
		err = add_export(config, names_sizes[i], why, whylen);
	return err;
}

int server_config_set_clients(
	struct server_config *config, const char *file, char *why, size_t whylen)
{
	const struct conf_key *key = conf_find(export_keys, "clients");
	struct export_config *export = config->exports.v;
	int err = 0;

	for (size_t i = 0; !err && i < config->exports.n; i++)
		err = config_clients_add(key, &export[i].clients, file, why, whylen);
	return err;
}

int server_config_set_listen(struct server_config *config, const char *const *addresses, size_t n,
	char *why, size_t whylen)
{
	int err = 0;

	conf_clear(key_of("listen"), config);
	for (size_t i = 0; !err && i < n; i++)
		err = conf_add_string(&config->listen, addresses[i], 0);
	return err;
}

/* ---- all of it together ---------------------------------------------------------------------- */

/* The default: one export in memory, for root and the server's user on this machine only. */
static int fill_defaults(struct server_config *config, char *why, size_t whylen)
{
	static const char *const export = "default:1GiB";
	static const char *const listen[] = {"shm:" RMEMFS_DEFAULT_SOCKET};
	int err = 0;

	if (!config->memory_dir)
		err = server_config_set(
			config, "memory_dir", "memory_dir", "/dev/shm/rmemfs", why, whylen);
	if (!err && !config->snapshot_dir)
		err = server_config_set(
			config, "snapshot_dir", "snapshot_dir", "/var/lib/rmemfs", why, whylen);
	config->built_in = !config->exports.n;
	if (!err && config->built_in)
		err = server_config_set_exports(config, &export, 1, why, whylen);
	if (!err && !config->listen.n)
		err = server_config_set_listen(config, listen, ARRAY_SIZE(listen), why, whylen);
	return err;
}

/* For an element of a list; line 0: it is from the command line. */
__attribute__((format(printf, 6, 7))) static int refuse_element(const char *path, const char *key,
	unsigned line, char *why, size_t whylen, const char *format, ...)
{
	char reason[384];
	va_list args;

	va_start(args, format);
	vsnprintf(reason, sizeof(reason), format, args);
	va_end(args);
	if (line)
		snprintf(why, whylen, "%s:%u: %s: %s", path, line, key, reason);
	else
		snprintf(why, whylen, "--%s: %s", strcmp(key, "exports") == 0 ? "export" : key,
			reason);
	return -EINVAL;
}

static int check_names(const struct server_config *config, size_t i, char *why, size_t whylen)
{
	const struct export_config *export = server_config_export(config, i);
	const struct export_config *first = server_config_find(config, export->name);
	const char *before = first->path;

	if (first == export)
		return 0;
	if (!before || strcmp(before, export->path) == 0)
		return refuse_element(export->path, "exports", config->exports.lines[i], why,
			whylen, "'%s': there is another export of this name", export->name);
	return refuse_element(export->path, "exports", config->exports.lines[i], why, whylen,
		"'%s': there is another export of this name in %s, line %u", export->name, before,
		config->exports.lines[first - server_config_export(config, 0)]);
}

static int check_regions(
	const struct server_config *config, size_t i, uint64_t *regions, char *why, size_t whylen)
{
	const struct export_config *export = server_config_export(config, i);
	char size[32], region_size[32];

	*regions += div_round_up(export->size, config->region_size);
	if (*regions <= REGIONS_MAX)
		return 0;
	size_format(export->size, size, sizeof(size));
	size_format(config->region_size, region_size, sizeof(region_size));
	return refuse_element(export->path, "exports", config->exports.lines[i], why, whylen,
		"'%s': %s by a region_size of %s make %" PRIu64
		" regions in all, of at most %d; make region_size larger",
		export->name, size, region_size, *regions, REGIONS_MAX);
}

static int resolve_quotas(struct server_config *config, size_t i, char *why, size_t whylen)
{
	struct export_config *export = (struct export_config *)config->exports.v + i;

	free(steal_ptr(&export->limits));
	return config_quotas_resolve(&export->quotas, export->path, &export->limits, why, whylen);
}

/* Without a key nothing is protected. */
static int check_protection(const struct server_config *config, size_t i, char *why, size_t whylen)
{
	const struct export_config *export = server_config_export(config, i);

	for (size_t j = 0; export->protection && j < export->clients.n; j++)
		if (server_config_client(export, j)->insecure)
			return refuse_element(export->path, "clients", export->clients.lines[j],
				why, whylen,
				"'%s': is insecure, and export '%s' has protection = \"%s\", "
				"which needs keys: give it keys, or take one of the two away",
				server_config_client(export, j)->name, export->name,
				protection_name(export->protection));
	return 0;
}

static int finish_clients(struct server_config *config, size_t i, char *why, size_t whylen)
{
	struct export_config *export = (struct export_config *)config->exports.v + i;
	int err = config_clients_finish(&export->clients, export->path, why, whylen);

	return err ? err : check_protection(config, i, why, whylen);
}

static int check_exports(struct server_config *config, char *why, size_t whylen)
{
	uint64_t regions = 0;
	int err = 0;

	for (size_t i = 0; !err && i < config->exports.n; i++) {
		err = check_names(config, i, why, whylen);
		if (!err)
			err = check_regions(config, i, &regions, why, whylen);
		if (!err)
			err = resolve_quotas(config, i, why, whylen);
		if (!err)
			err = finish_clients(config, i, why, whylen);
	}
	return err;
}

static bool same_address(const struct transport_address *a, const struct transport_address *b)
{
	return a->kind == b->kind && a->addrlen == b->addrlen &&
	       memcmp(&a->addr, &b->addr, a->addrlen) == 0;
}

static int resolve_address(struct server_config *config, size_t i, struct transport_address *to,
	char *why, size_t whylen)
{
	const char *text = config->listen.v[i];
	unsigned line = config->listen.lines[i];
	char reason[256], quoted[WORD_QUOTED_BYTES];
	int err = address_parse_listen(text, to, reason, sizeof(reason));

	word_quote(text, quoted);
	if (err)
		refuse_element(config->path, "listen", line, why, whylen, "%s: %s", quoted, reason);
	return err;
}

/* Sockets of this machine come last: a client that finds one finds the whole server ready. */
static int resolve_addresses(struct server_config *config, char *why, size_t whylen)
{
	size_t n = config->listen.n, front = 0, back = n;

	free(config->addresses);
	config->addresses = calloc(n, sizeof(*config->addresses));
	if (!config->addresses)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		struct transport_address address;
		int err = resolve_address(config, i, &address, why, whylen);

		if (err)
			return err;
		for (size_t j = 0; j < n; j++)
			if (same_address(&config->addresses[j], &address))
				return refuse_element(config->path, "listen",
					config->listen.lines[i], why, whylen,
					"'%s': the same address is there twice",
					config->listen.v[i]);
		config->addresses[address.kind == TRANSPORT_SHM ? --back : front++] = address;
	}
	return 0;
}

static bool is_below(const char *path, const char *dir)
{
	size_t len = strlen(dir);

	while (len > 1 && dir[len - 1] == '/')
		len--;
	return strncmp(path, dir, len) == 0 && (path[len] == '/' || path[len] == '\0');
}

/* Snapshots in the memory directory would be lost with it. */
static int check_snapshots(const struct server_config *config, char *why, size_t whylen)
{
	if (is_below(config->snapshot_dir, config->memory_dir)) {
		snprintf(why, whylen,
			"%s: snapshot_dir: '%s': must not be in the memory directory, which is lost "
			"with the machine's memory",
			config->path ? config->path : "--memory-dir", config->snapshot_dir);
		return -EINVAL;
	}
	return 0;
}

/* If there are several devices, the first one counts. */
static int settle_numa(struct server_config *config, char *why, size_t whylen)
{
	bool only = config->numa_node != NUMA_AUTO;

	config->numa = (struct numa_place){.node = only ? (int)config->numa_node : -1, only};
	for (size_t i = 0; !only && config->numa.node < 0 && i < config->listen.n; i++)
		if (config->addresses[i].kind == TRANSPORT_VERBS)
			config->numa.node = numa_node_of(&config->addresses[i]);
	if (!only || numa_node_exists((unsigned)config->numa_node))
		return 0;
	snprintf(why, whylen, "%s: numa_node: this machine has no node %d: see 'lscpu'",
		config->path, config->numa.node);
	return -EINVAL;
}

int server_config_drop(struct server_config *config, const char *name, char *why, size_t whylen)
{
	const struct conf_key *key = conf_find(server_config_keys, "exports");
	const struct export_config *export = server_config_find(config, name);
	size_t i = export ? (size_t)(export - server_config_export(config, 0)) : 0;

	if (!export)
		return 0;
	free(steal_ptr(&((struct export_config *)config->exports.v)[i].limits));
	conf_remove_group(key, &config->exports, i);
	return config_shares_set(config, why, whylen);
}

int server_config_finish(struct server_config *config, char *why, size_t whylen)
{
	int err;

	snprintf(why, whylen, "out of memory");
	err = fill_defaults(config, why, whylen);
	if (!err)
		err = check_exports(config, why, whylen);
	if (!err)
		err = config_shares_set(config, why, whylen);
	if (!err)
		err = check_snapshots(config, why, whylen);
	if (!err)
		err = resolve_addresses(config, why, whylen);
	if (!err)
		err = settle_numa(config, why, whylen);
	return err;
}
