#include "daemon/config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "common/conf.h"
#include "common/util.h"
#include "daemon/request.h"

enum { THREADS_MAX = 16, THREADS_DEFAULT_MAX = 4, SPIN_DEFAULT_US = 20 };

#define KEY(type, name, field, min, max)                                                    \
	{                                                                                   \
		name, type, offsetof(struct client_config, field), min, max, NULL, 0, false \
	}

static const struct conf_key keys[] = {
	KEY(CONF_STRING, "transport", transport_name, 1, 16),
	KEY(CONF_UINT, "port", port, 1, 65535),
	KEY(CONF_UINT, "connect_timeout", connect_timeout, 1, 3600),
	KEY(CONF_UINT, "peer_timeout", peer_timeout, 1, 3600),
	KEY(CONF_BOOL, "soft", soft, 0, 0),
	KEY(CONF_UINT, "timeo", timeo, 1, 3600),
	KEY(CONF_BOOL, "debug_io", debug_io, 0, 0),
	KEY(CONF_UINT, "io_threads", io_threads, 1, THREADS_MAX),
	KEY(CONF_UINT, "buffers", buffers, 2, 256),
	KEY(CONF_UINT, "merge_pages", merge_pages, 1, IO_PAGES_MAX),
	KEY(CONF_UINT, "spin_us", spin_us, 0, 10000),
	KEY(CONF_STRING, "log_level", log_level_name, 1, 16),
	{0},
};

void client_config_init(struct client_config *config)
{
	*config = (struct client_config){
		.connect_timeout = 5,
		.peer_timeout = 5,
		.timeo = 60,
		.buffers = 16,
		.merge_pages = IO_PAGES_MAX,
		.spin_us = SPIN_AUTO,
	};
}

void client_config_fini(struct client_config *config)
{
	conf_free(keys, config);
}

/* ---- words -------------------------------------------------------------------------------------
 */

static int check_transport(struct client_config *config, const char *word, char *why, size_t whylen)
{
	config->auto_transport = strcmp(word, "auto") == 0;
	if (config->auto_transport)
		return 0;
	for (int kind = 0; kind < TRANSPORT_NKINDS; kind++) {
		config->transport = (enum transport_kind)kind;
		if (strcmp(word, transport_kind_name(config->transport)) == 0)
			return 0;
	}
	snprintf(why, whylen, "must be auto, verbs, tcp or shm");
	return -EINVAL;
}

static int check_log_level(struct client_config *config, const char *word, char *why, size_t whylen)
{
	if (log_level_parse(word, &config->log_level) == 0)
		return 0;
	snprintf(why, whylen, "must be error, warning, notice, info or debug");
	return -EINVAL;
}

static int check_words(struct client_config *config, const char **key, char *why, size_t whylen)
{
	int err;

	*key = "transport";
	err = check_transport(
		config, config->transport_name ? config->transport_name : "auto", why, whylen);
	if (err)
		return err;
	*key = "log_level";
	return check_log_level(
		config, config->log_level_name ? config->log_level_name : "info", why, whylen);
}

int client_config_read(struct client_config *config, const char *path, char *why, size_t whylen)
{
	const char *key;
	char must[64];
	int err;

	err = conf_read(path, keys, config, why, whylen);
	if (err)
		return err;
	err = check_words(config, &key, must, sizeof(must));
	if (err)
		snprintf(why, whylen, "%s: %s: %s", path, key, must);
	return err;
}

/* ---- mount options -----------------------------------------------------------------------------
 */

static const struct conf_key *find_key(const char *name)
{
	for (const struct conf_key *key = keys; key->name; key++)
		if (strcmp(key->name, name) == 0)
			return key;
	return NULL;
}

bool client_config_has(const char *name)
{
	return find_key(name) != NULL;
}

/* Digits and nothing else: strtoull alone takes signs and blanks. */
static bool parse_number(const char *text, uint64_t *n)
{
	size_t len = strlen(text);

	if (len == 0 || len > 18 || strspn(text, "0123456789") != len)
		return false;
	*n = strtoull(text, NULL, 10);
	return true;
}

int client_config_set(
	struct client_config *config, const char *name, const char *value, char *why, size_t whylen)
{
	const struct conf_key *key = find_key(name);
	void *field = (char *)config + key->offset;
	const char *wrong;
	uint64_t n;
	char *copy;

	if (key->type == CONF_STRING) {
		copy = strdup(value);
		if (!copy)
			return -ENOMEM;
		free(*(char **)field);
		*(char **)field = copy;
		return check_words(config, &wrong, why, whylen);
	}
	if (!parse_number(value, &n) || n < key->min || n > key->max) {
		snprintf(why, whylen, "must be %" PRIu64 "..%" PRIu64, key->min, key->max);
		return -EINVAL;
	}
	*(uint64_t *)field = n;
	return 0;
}

int client_config_finish(struct client_config *config, unsigned ncpus, char *why, size_t whylen)
{
	const char *key;
	char must[64];
	int err;

	err = check_words(config, &key, must, sizeof(must));
	if (err) {
		snprintf(why, whylen, "%s: %s", key, must);
		return err;
	}
	if (!config->io_threads)
		config->io_threads = max_u64(min_u64(ncpus, THREADS_DEFAULT_MAX), 1);
	/* Where others need the CPU, spinning costs more than waking. */
	if (config->spin_us == SPIN_AUTO)
		config->spin_us = ncpus >= 2 * config->io_threads ? SPIN_DEFAULT_US : 0;
	return 0;
}
