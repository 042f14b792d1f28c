/* config_shares.c - see config_shares.h. */
#include "server/config/config_shares.h"

#include <errno.h>
#include <stdio.h>

#include "common/base/util.h"
#include "server/config/config.h"

enum { SIZE_BYTES = 32, METADATA_SHARE = 16 };
#define METADATA_AUTO (64ull << 20)

uint64_t server_config_store_bytes(const struct server_config *config)
{
	uint64_t data = 0;

	if (config->metadata_reserve)
		return config->metadata_reserve / PAGE_BYTES * PAGE_BYTES;
	for (size_t i = 0; i < config->exports.n; i++)
		data += server_config_export(config, i)->size;
	data = div_round_up(data / METADATA_SHARE, PAGE_BYTES) * PAGE_BYTES;
	return max_u64(max_u64(METADATA_AUTO, config->exports.n * METADATA_MIN), data);
}

/* The exports without a key of their own. */
struct others {
	uint64_t n, bytes; /* how many, and their data */
	size_t last;
};

static struct export_config *export_at(struct server_config *config, size_t i)
{
	return (struct export_config *)config->exports.v + i;
}

/* The place of an export; line 0: it is from the command line, which has none. */
static int place(const struct server_config *config, size_t i, char *text, size_t len)
{
	unsigned line = config->exports.lines[i];

	if (line)
		return snprintf(text, len, "%s:%u: ", server_config_export(config, i)->path, line);
	return snprintf(text, len, "%s: ", config->path ? config->path : "--export");
}

static int refuse_sum(
	const struct server_config *config, size_t i, uint64_t sum, char *why, size_t whylen)
{
	const struct export_config *export = server_config_export(config, i);
	char own[SIZE_BYTES], all[SIZE_BYTES], there[SIZE_BYTES];
	size_t at = (size_t)place(config, i, why, whylen);

	size_format(export->metadata, own, sizeof(own));
	size_format(sum, all, sizeof(all));
	size_format(server_config_store_bytes(config), there, sizeof(there));
	if (at < whylen)
		snprintf(why + at, whylen - at,
			"metadata: '%s' has %s, and with the exports before it that makes %s of %s: "
			"make the shares smaller, or metadata_reserve larger",
			export->name, own, all, there);
	return -EINVAL;
}

static int refuse_rest(const struct server_config *config, const struct others *others,
	uint64_t rest, char *why, size_t whylen)
{
	char left[SIZE_BYTES], need[SIZE_BYTES];
	size_t at = (size_t)place(config, others->last, why, whylen);

	size_format(rest, left, sizeof(left));
	size_format(others->n * SHARE_MIN, need, sizeof(need));
	if (at < whylen)
		snprintf(why + at, whylen - at,
			"metadata: %s is left for the exports without a share, such as '%s', which "
			"need %s: make the shares smaller, or metadata_reserve larger",
			left, server_config_export(config, others->last)->name, need);
	return -EINVAL;
}

/* Sets the shares that have a key, and finds the others. */
static int set_given(struct server_config *config, struct others *others, uint64_t *given,
	char *why, size_t whylen)
{
	for (size_t i = 0; i < config->exports.n; i++) {
		struct export_config *export = export_at(config, i);

		export->share = export->metadata;
		*given += export->metadata;
		if (*given > server_config_store_bytes(config))
			return refuse_sum(config, i, *given, why, whylen);
		if (export->metadata)
			continue;
		others->n++;
		others->bytes += export->size;
		others->last = i;
	}
	return 0;
}

/* Whole pages. */
static uint64_t part(uint64_t bytes, uint64_t of, uint64_t size)
{
	return (uint64_t)((unsigned __int128)bytes * size / of) / PAGE_BYTES * PAGE_BYTES;
}

int config_shares_set(struct server_config *config, char *why, size_t whylen)
{
	struct others others = {0};
	uint64_t given = 0, rest;
	int err = set_given(config, &others, &given, why, whylen);

	if (err || !others.n || config->exports.n == 1)
		return err;
	rest = server_config_store_bytes(config) - given;
	if (rest < others.n * SHARE_MIN)
		return refuse_rest(config, &others, rest, why, whylen);
	rest -= others.n * SHARE_MIN;
	for (size_t i = 0; i < config->exports.n; i++) {
		struct export_config *export = export_at(config, i);

		if (!export->metadata)
			export->share = SHARE_MIN + part(rest, others.bytes, export->size);
	}
	return 0;
}
