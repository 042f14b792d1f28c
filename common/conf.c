/* conf.c - the table-driven reader over libconfig, which is used nowhere else. */
#include "common/conf.h"

#include <errno.h>
#include <inttypes.h>
#include <libconfig.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/conf_text.h"
#include "common/log.h"
#include "common/util.h"

struct reader {
	const char *path;
	char *why;
	size_t whylen;
};

static int read_group(
	struct reader *r, config_setting_t *group, const struct conf_key *keys, void *out);

/* The line for people, prefixed by where the setting stands. */
__attribute__((format(printf, 4, 5))) static int refuse(
	struct reader *r, const config_setting_t *at, const char *key, const char *format, ...)
{
	unsigned line = config_setting_source_line(at);
	char reason[256];
	va_list args;

	va_start(args, format);
	vsnprintf(reason, sizeof(reason), format, args);
	va_end(args);
	/* The file as a whole has line 0. */
	snprintf(r->why, r->whylen, "%s:%u: %s: %s", r->path, line ? line : 1, key, reason);
	return -EINVAL;
}

/* ---- one value ------------------------------------------------------------------------------- */

static int store_bool(struct reader *r, config_setting_t *s, const struct conf_key *key, void *to)
{
	if (config_setting_type(s) != CONFIG_TYPE_BOOL)
		return refuse(r, s, key->name, "must be true or false");
	*(bool *)to = config_setting_get_bool(s);
	return 0;
}

static bool is_integer(const config_setting_t *s)
{
	return config_setting_type(s) == CONFIG_TYPE_INT ||
	       config_setting_type(s) == CONFIG_TYPE_INT64;
}

static bool out_of_bounds(const struct conf_key *key, uint64_t n)
{
	return n < key->min || (key->max && n > key->max);
}

static int store_uint(struct reader *r, config_setting_t *s, const struct conf_key *key, void *to)
{
	long long n;

	if (!is_integer(s))
		return refuse(r, s, key->name, "must be a whole number");
	n = config_setting_get_int64(s);
	if (n < 0 || out_of_bounds(key, (uint64_t)n)) {
		if (!key->max)
			return refuse(
				r, s, key->name, "%lld: must be at least %" PRIu64, n, key->min);
		return refuse(r, s, key->name, "%lld: must be %" PRIu64 " to %" PRIu64, n, key->min,
			key->max);
	}
	*(uint64_t *)to = (uint64_t)n;
	return 0;
}

static int refuse_size(
	struct reader *r, config_setting_t *s, const struct conf_key *key, const char *text)
{
	char min[32], max[32];

	size_format(key->min, min, sizeof(min));
	size_format(key->max, max, sizeof(max));
	if (!key->max)
		return refuse(r, s, key->name, "%s: must be at least %s", text, min);
	return refuse(r, s, key->name, "%s: must be %s to %s", text, min, max);
}

static int store_size(struct reader *r, config_setting_t *s, const struct conf_key *key, void *to)
{
	char digits[32];
	const char *text;
	uint64_t n;
	int err;

	if (config_setting_type(s) == CONFIG_TYPE_STRING) {
		text = config_setting_get_string(s);
	} else if (is_integer(s)) {
		snprintf(digits, sizeof(digits), "%lld", config_setting_get_int64(s));
		text = digits;
	} else {
		return refuse(r, s, key->name, "must be a size like \"64GiB\"");
	}
	err = size_parse(text, &n);
	if (err == -EINVAL)
		return refuse(
			r, s, key->name, "'%s' is no size; write \"512MiB\" or \"64GiB\"", text);
	if (err)
		return refuse(r, s, key->name, "%s: too large", text);
	if (out_of_bounds(key, n))
		return refuse_size(r, s, key, text);
	*(uint64_t *)to = n;
	return 0;
}

/* A copy of a string setting, checked; the key's bounds are for its length. */
static int copy_string(
	struct reader *r, config_setting_t *s, const struct conf_key *key, char **copy)
{
	const char *text = config_setting_get_string(s);

	if (!text)
		return refuse(r, s, key->name, "must be a string in double quotes");
	if (out_of_bounds(key, strlen(text))) {
		if (text[0] == '\0')
			return refuse(r, s, key->name, "must not be empty");
		return refuse(r, s, key->name,
			"'%s': must be %" PRIu64 " to %" PRIu64 " bytes long", text, key->min,
			key->max);
	}
	*copy = strdup(text);
	return *copy ? 0 : -ENOMEM;
}

static int store_string(struct reader *r, config_setting_t *s, const struct conf_key *key, void *to)
{
	char **field = to;
	char *copy;
	int err;

	err = copy_string(r, s, key, &copy);
	if (err)
		return err;
	free(*field);
	*field = copy;
	return 0;
}

static void free_strings(struct conf_strings *strings)
{
	for (size_t i = 0; i < strings->n; i++)
		free(strings->v[i]);
	free(strings->v);
	*strings = (struct conf_strings){0};
}

static int store_strings(
	struct reader *r, config_setting_t *s, const struct conf_key *key, void *to)
{
	struct conf_strings *strings = to;
	bool single = config_setting_type(s) == CONFIG_TYPE_STRING;
	size_t n = single ? 1 : (size_t)config_setting_length(s);
	int err;

	if (!single && !config_setting_is_array(s) && !config_setting_is_list(s))
		return refuse(r, s, key->name, "must be a string or a list of strings");
	free_strings(strings);
	if (n == 0)
		return 0;
	strings->v = calloc(n, sizeof(*strings->v));
	if (!strings->v)
		return -ENOMEM;
	strings->n = n;
	for (size_t i = 0; i < n; i++) {
		err = copy_string(r, single ? s : config_setting_get_elem(s, (unsigned)i), key,
			&strings->v[i]);
		if (err)
			return err;
	}
	return 0;
}

static void free_groups(const struct conf_key *key, struct conf_groups *groups)
{
	for (size_t i = 0; i < groups->n; i++)
		conf_free(key->keys, (char *)groups->v + i * key->element_bytes);
	free(groups->v);
	*groups = (struct conf_groups){0};
}

static int store_groups(struct reader *r, config_setting_t *s, const struct conf_key *key, void *to)
{
	struct conf_groups *groups = to;
	size_t n = (size_t)config_setting_length(s);
	config_setting_t *group;
	int err;

	if (!config_setting_is_list(s))
		return refuse(r, s, key->name, "must be a list of groups: ( { ... }, { ... } )");
	free_groups(key, groups);
	if (n == 0)
		return 0;
	groups->v = calloc(n, key->element_bytes);
	if (!groups->v)
		return -ENOMEM;
	groups->n = n;
	for (size_t i = 0; i < n; i++) {
		group = config_setting_get_elem(s, (unsigned)i);
		if (!config_setting_is_group(group))
			return refuse(r, group, key->name, "each element must be a group { ... }");
		err = read_group(r, group, key->keys, (char *)groups->v + i * key->element_bytes);
		if (err)
			return err;
	}
	return 0;
}

/* ---- groups ---------------------------------------------------------------------------------- */

static int store(struct reader *r, config_setting_t *s, const struct conf_key *key, void *to)
{
	switch (key->type) {
	case CONF_BOOL:
		return store_bool(r, s, key, to);
	case CONF_UINT:
		return store_uint(r, s, key, to);
	case CONF_SIZE:
		return store_size(r, s, key, to);
	case CONF_STRING:
		return store_string(r, s, key, to);
	case CONF_STRINGS:
		return store_strings(r, s, key, to);
	case CONF_GROUPS:
		return store_groups(r, s, key, to);
	}
	return -EINVAL;
}

static const struct conf_key *find_key(const struct conf_key *keys, const char *name)
{
	for (; keys->name; keys++)
		if (strcmp(keys->name, name) == 0)
			return keys;
	return NULL;
}

static int read_group(
	struct reader *r, config_setting_t *group, const struct conf_key *keys, void *out)
{
	int n = config_setting_length(group);

	for (int i = 0; i < n; i++) {
		config_setting_t *s = config_setting_get_elem(group, (unsigned)i);
		const struct conf_key *key = find_key(keys, config_setting_name(s));
		int err;

		if (!key)
			return refuse(r, s, config_setting_name(s), "unknown key");
		err = store(r, s, key, (char *)out + key->offset);
		if (err)
			return err;
	}
	for (; keys->name; keys++)
		if (keys->required && !config_setting_get_member(group, keys->name))
			return refuse(r, group, keys->name, "is missing");
	return 0;
}

/* ---- the file -------------------------------------------------------------------------------- */

static int parse_text(struct reader *r, const char *text, const struct conf_key *keys, void *out)
{
	config_t config;
	int err;

	config_init(&config);
	if (config_read_string(&config, text) == CONFIG_TRUE) {
		err = read_group(r, config_root_setting(&config), keys, out);
	} else {
		snprintf(r->why, r->whylen, "%s:%d: %s", r->path, config_error_line(&config),
			config_error_text(&config));
		err = -EINVAL;
	}
	config_destroy(&config);
	return err;
}

int conf_read(const char *path, const struct conf_key *keys, void *out, char *why, size_t whylen)
{
	struct reader r = {.path = path, .why = why, .whylen = whylen};
	autofree char *text = NULL;
	int err;

	err = conf_text_load(path, &text, why, whylen);
	if (err)
		return err;
	err = parse_text(&r, text, keys, out);
	if (err == -ENOMEM)
		snprintf(why, whylen, "%s: %s", path, errno_text(err));
	return err;
}

void conf_free(const struct conf_key *keys, void *out)
{
	for (; keys->name; keys++) {
		void *field = (char *)out + keys->offset;

		if (keys->type == CONF_STRING) {
			free(*(char **)field);
			*(char **)field = NULL;
		} else if (keys->type == CONF_STRINGS) {
			free_strings(field);
		} else if (keys->type == CONF_GROUPS) {
			free_groups(keys, field);
		}
	}
}
