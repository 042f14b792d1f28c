/* config.c - keys, defaults and checks of the server's configuration. */
#include "server/config.h"

#include <errno.h>
#include <stdio.h>

#include "common/address.h"
#include "common/types.h"
#include "common/util.h"

#define MIB (1ull << 20)
#define GIB (1ull << 30)
#define TIB (1ull << 40)

/* Region numbers have 16 bits, page numbers within a region 32. */
enum { REGIONS_MAX = 1 << 16 };
#define REGION_SIZE_MIN (2 * MIB)
#define REGION_SIZE_MAX (8 * TIB)
#define METADATA_MIN    (64 * MIB)
#define METADATA_SHARE  16

static const struct conf_key export_keys[] = {
	{"name", CONF_STRING, offsetof(struct export_config, name), 1, EXPORT_NAME_MAX,
		.required = true},
	{"size", CONF_SIZE, offsetof(struct export_config, size), PAGE_BYTES, INT64_MAX,
		.required = true},
	{0},
};

static const struct conf_key server_keys[] = {
	{"memory_dir", CONF_STRING, offsetof(struct server_config, memory_dir), 1, 1024},
	{"listen", CONF_STRINGS, offsetof(struct server_config, listen)},
	{"exports", CONF_GROUPS, offsetof(struct server_config, exports), .keys = export_keys,
		.element_bytes = sizeof(struct export_config)},
	{"region_size", CONF_SIZE, offsetof(struct server_config, region_size), REGION_SIZE_MIN,
		REGION_SIZE_MAX},
	{"huge_pages", CONF_STRING, offsetof(struct server_config, huge_pages_name), 1, 16},
	{"lease_time", CONF_UINT, offsetof(struct server_config, lease_time), 1, 3600},
	{"peer_timeout", CONF_UINT, offsetof(struct server_config, peer_timeout), 1, 3600},
	{"io_threads", CONF_UINT, offsetof(struct server_config, io_threads), 1, 256},
	{"log_level", CONF_STRING, offsetof(struct server_config, log_level_name), 1, 16},
	{"metadata_reserve", CONF_SIZE, offsetof(struct server_config, metadata_reserve), MIB, TIB},
	{0},
};

void server_config_init(struct server_config *config)
{
	*config = (struct server_config){
		.region_size = GIB, .lease_time = 10, .peer_timeout = 5, .io_threads = 1};
}

void server_config_fini(struct server_config *config)
{
	conf_free(server_keys, config);
	free(config->addresses);
	config->addresses = NULL;
}

int server_config_read(struct server_config *config, const char *path, char *why, size_t whylen)
{
	return conf_read(path, server_keys, config, why, whylen);
}

void server_config_clear_exports(struct server_config *config)
{
	for (size_t i = 0; i < config->exports.n; i++)
		free(((struct export_config *)config->exports.v)[i].name);
	free(config->exports.v);
	config->exports = (struct conf_groups){0};
}

void server_config_clear_listen(struct server_config *config)
{
	for (size_t i = 0; i < config->listen.n; i++)
		free(config->listen.v[i]);
	free(config->listen.v);
	config->listen = (struct conf_strings){0};
}

int server_config_add_export(
	struct server_config *config, const char *name_size, char *why, size_t whylen)
{
	const char *colon = strrchr(name_size, ':');
	struct export_config *grown, export = {0};
	int err;

	if (!colon || colon == name_size) {
		snprintf(why, whylen, "'%s' is not NAME:SIZE", name_size);
		return -EINVAL;
	}
	err = size_parse(colon + 1, &export.size);
	if (err) {
		snprintf(why, whylen, "'%s' is not a size such as 512MiB or 64GiB", colon + 1);
		return err;
	}
	grown = reallocarray(config->exports.v, config->exports.n + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	config->exports.v = grown;
	export.name = strndup(name_size, (size_t)(colon - name_size));
	if (!export.name)
		return -ENOMEM;
	grown[config->exports.n++] = export;
	return 0;
}

int server_config_add_listen(struct server_config *config, const char *address)
{
	char **grown = reallocarray(config->listen.v, config->listen.n + 1, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	config->listen.v = grown;
	grown[config->listen.n] = strdup(address);
	if (!grown[config->listen.n])
		return -ENOMEM;
	config->listen.n++;
	return 0;
}

int server_config_set_memory_dir(struct server_config *config, const char *dir)
{
	char *copy = strdup(dir);

	if (!copy)
		return -ENOMEM;
	free(config->memory_dir);
	config->memory_dir = copy;
	return 0;
}

/* One export in memory, reachable from this machine only. */
static int fill_defaults(struct server_config *config, char *why, size_t whylen)
{
	int err = 0;

	if (!config->memory_dir)
		err = server_config_set_memory_dir(config, "/dev/shm/rmemfs");
	if (!err && !config->exports.n)
		err = server_config_add_export(config, "default:1GiB", why, whylen);
	if (!err && !config->listen.n) {
		err = server_config_add_listen(config, "shm:" RMEMFS_DEFAULT_SOCKET);
		if (!err)
			err = server_config_add_listen(config, "tcp:127.0.0.1");
	}
	return err;
}

static int check_words(struct server_config *config, char *why, size_t whylen)
{
	static const char *const words[] = {
		[HUGE_PAGES_NEVER] = "never",
		[HUGE_PAGES_ADVISE] = "advise",
		[HUGE_PAGES_ALWAYS] = "always",
	};
	const char *word = config->huge_pages_name ? config->huge_pages_name : "advise";
	const char *level = config->log_level_name ? config->log_level_name : "info";
	unsigned i = 0;

	while (i < ARRAY_SIZE(words) && strcmp(words[i], word) != 0)
		i++;
	if (i == ARRAY_SIZE(words)) {
		snprintf(why, whylen, "huge_pages: '%s' is none of never, advise, always", word);
		return -EINVAL;
	}
	config->huge_pages = (enum huge_pages)i;
	if (log_level_parse(level, &config->log_level)) {
		snprintf(why, whylen,
			"log_level: '%s' is none of error, warning, notice, info, debug", level);
		return -EINVAL;
	}
	return 0;
}

/* Names become parts of file names and of SOURCE operands. */
static bool export_name_ok(const char *name)
{
	size_t len = strlen(name);

	return len >= 1 && len <= EXPORT_NAME_MAX && name[0] != '.' &&
	       strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") ==
		       len;
}

static int check_export(
	const struct server_config *config, size_t i, uint64_t *regions, char *why, size_t whylen)
{
	const struct export_config *export = server_config_export(config, i);

	if (!export_name_ok(export->name)) {
		snprintf(why, whylen,
			"exports: '%s' is no name: 1 to %d letters, digits, '.', '_', '-'",
			export->name, EXPORT_NAME_MAX);
		return -EINVAL;
	}
	for (size_t j = 0; j < i; j++) {
		if (strcmp(server_config_export(config, j)->name, export->name) == 0) {
			snprintf(why, whylen, "exports: '%s' is there twice", export->name);
			return -EINVAL;
		}
	}
	if (export->size < PAGE_BYTES || export->size % PAGE_BYTES) {
		snprintf(why, whylen,
			"exports: the size of '%s' is not a whole number of pages (%d bytes)",
			export->name, PAGE_BYTES);
		return -EINVAL;
	}
	*regions += div_round_up(export->size, config->region_size);
	return 0;
}

static int check_exports(const struct server_config *config, char *why, size_t whylen)
{
	uint64_t regions = 0;

	if (config->region_size % PAGE_BYTES) {
		snprintf(why, whylen, "region_size: not a whole number of pages (%d bytes)",
			PAGE_BYTES);
		return -EINVAL;
	}
	for (size_t i = 0; i < config->exports.n; i++) {
		int err = check_export(config, i, &regions, why, whylen);

		if (err)
			return err;
	}
	if (regions > REGIONS_MAX) {
		snprintf(why, whylen, "region_size: makes %llu regions, at most %d are possible",
			(unsigned long long)regions, REGIONS_MAX);
		return -EINVAL;
	}
	return 0;
}

/* Sockets of this machine come last: who finds one there finds the whole server ready. */
static int resolve_addresses(struct server_config *config, char *why, size_t whylen)
{
	struct transport_address *sorted;
	size_t front = 0, back = config->listen.n;

	sorted = calloc(config->listen.n, sizeof(*sorted));
	if (!sorted)
		return -ENOMEM;
	free(config->addresses);
	config->addresses = sorted;
	for (size_t i = 0; i < config->listen.n; i++) {
		struct transport_address address;
		char reason[256] = "";
		int err =
			address_parse_listen(config->listen.v[i], &address, reason, sizeof(reason));

		if (err) {
			snprintf(why, whylen, "listen: '%s': %s", config->listen.v[i], reason);
			return err;
		}
		sorted[address.kind == TRANSPORT_SHM ? --back : front++] = address;
	}
	return 0;
}

int server_config_finish(struct server_config *config, char *why, size_t whylen)
{
	int err;

	snprintf(why, whylen, "out of memory");
	err = fill_defaults(config, why, whylen);
	if (!err)
		err = check_words(config, why, whylen);
	if (!err)
		err = check_exports(config, why, whylen);
	if (!err)
		err = resolve_addresses(config, why, whylen);
	return err;
}

uint64_t server_config_store_bytes(const struct server_config *config)
{
	uint64_t data = 0;

	if (config->metadata_reserve)
		return config->metadata_reserve / PAGE_BYTES * PAGE_BYTES;
	for (size_t i = 0; i < config->exports.n; i++)
		data += server_config_export(config, i)->size;
	return max_u64(METADATA_MIN, div_round_up(data / METADATA_SHARE, PAGE_BYTES) * PAGE_BYTES);
}
