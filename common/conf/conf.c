/* conf.c - the table-driven reader over libconfig, which is used nowhere else. */
#include "common/conf/conf.h"

#include <errno.h>
#include <libconfig.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/conf/conf_text.h"
#include "common/base/log.h"
#include "common/base/util.h"

struct reader {
	const char *path;
	const struct conf_elsewhere *elsewhere; /* may be NULL */
	char *why;
	size_t whylen;
};

static int read_group(
	struct reader *r, config_setting_t *group, const struct conf_key *keys, void *out);

/* libconfig gives the file as a whole line 0. */
static unsigned line_of(const config_setting_t *at)
{
	unsigned line = config_setting_source_line(at);

	return line ? line : 1;
}

/* Writes the line for the user, with the setting's place in front. */
__attribute__((format(printf, 4, 5))) static int refuse(
	struct reader *r, const config_setting_t *at, const char *key, const char *format, ...)
{
	char reason[512];
	va_list args;

	va_start(args, format);
	vsnprintf(reason, sizeof(reason), format, args);
	va_end(args);
	snprintf(r->why, r->whylen, "%s:%u: %s: %s", r->path, line_of(at), key, reason);
	return -EINVAL;
}

/* ---- values ---------------------------------------------------------------------------------- */

static bool is_integer(const config_setting_t *s)
{
	return config_setting_type(s) == CONFIG_TYPE_INT ||
	       config_setting_type(s) == CONFIG_TYPE_INT64;
}

/* The setting's value as conf_set() takes it, written into buf if needed; NULL: the type is not one
 * that the key takes. */
static const char *value_text(
	const config_setting_t *s, const struct conf_key *key, char *buf, size_t len)
{
	switch (key->type) {
	case CONF_BOOL:
		if (config_setting_type(s) != CONFIG_TYPE_BOOL)
			return NULL;
		return config_setting_get_bool(s) ? "true" : "false";
	case CONF_SIZE:
	case CONF_ID:
		if (config_setting_type(s) == CONFIG_TYPE_STRING)
			return config_setting_get_string(s);
		/* fall through */
	case CONF_UINT:
		if (!is_integer(s))
			return NULL;
		snprintf(buf, len, "%lld", config_setting_get_int64(s));
		return buf;
	default:
		return config_setting_get_string(s);
	}
}

static int refuse_type(struct reader *r, const config_setting_t *s, const struct conf_key *key)
{
	switch (key->type) {
	case CONF_BOOL:
		return refuse(r, s, key->name, "must be true or false");
	case CONF_UINT:
		return refuse(r, s, key->name, "must be a whole number");
	case CONF_SIZE:
		return refuse(r, s, key->name, "must be a size like \"64GiB\"");
	case CONF_ID:
		return refuse(
			r, s, key->name, "must be a string in double quotes or a whole number");
	default:
		return refuse(r, s, key->name, "must be a string in double quotes");
	}
}

static int store_value(
	struct reader *r, const config_setting_t *s, const struct conf_key *key, void *out)
{
	char digits[32], must[256], quoted[WORD_QUOTED_BYTES];
	const char *text = value_text(s, key, digits, sizeof(digits));
	int err;

	if (!text)
		return refuse_type(r, s, key);
	err = conf_set(key, out, text, must, sizeof(must));
	if (err != -EINVAL)
		return err;
	if (text[0] == '\0')
		return refuse(r, s, key->name, "%s", must);
	return refuse(r, s, key->name, "%s: %s", word_quote(text, quoted), must);
}

/* ---- lists ----------------------------------------------------------------------------------- */

static int refuse_empty(struct reader *r, const config_setting_t *s, const struct conf_key *key)
{
	return refuse(r, s, key->name, "must not be empty; leave it out for the default");
}

static int store_string(struct reader *r, const config_setting_t *s, const struct conf_key *key,
	struct conf_strings *strings)
{
	const char *text = config_setting_get_string(s);

	if (!text)
		return refuse(r, s, key->name, "must be a string in double quotes");
	if (text[0] == '\0')
		return refuse(r, s, key->name, "must not be empty");
	return conf_add_string(strings, text, line_of(s));
}

static int store_strings(
	struct reader *r, const config_setting_t *s, const struct conf_key *key, void *out)
{
	struct conf_strings *strings = (void *)((char *)out + key->offset);
	int n = config_setting_length(s), err = 0;

	conf_clear(key, out);
	if (config_setting_type(s) == CONFIG_TYPE_STRING)
		return store_string(r, s, key, strings);
	if (!config_setting_is_array(s) && !config_setting_is_list(s))
		return refuse(r, s, key->name, "must be a string or a list of strings");
	if (n == 0)
		return refuse_empty(r, s, key);
	for (int i = 0; !err && i < n; i++)
		err = store_string(r, config_setting_get_elem(s, (unsigned)i), key, strings);
	return err;
}

static int store_group(struct reader *r, config_setting_t *s, const struct conf_key *key,
	struct conf_groups *groups)
{
	void *element;

	if (!config_setting_is_group(s))
		return refuse(r, s, key->name, "each element must be a group { ... }");
	element = conf_add_group(key, groups, line_of(s));
	return element ? read_group(r, s, key->keys, element) : -ENOMEM;
}

static int store_groups(
	struct reader *r, const config_setting_t *s, const struct conf_key *key, void *out)
{
	struct conf_groups *groups = (void *)((char *)out + key->offset);
	int n = config_setting_length(s), err = 0;

	if (!config_setting_is_list(s))
		return refuse(r, s, key->name, "must be a list of groups: ( { ... }, { ... } )");
	conf_clear(key, out);
	if (n == 0)
		return refuse_empty(r, s, key);
	for (int i = 0; !err && i < n; i++)
		err = store_group(r, config_setting_get_elem(s, (unsigned)i), key, groups);
	return err;
}

/* ---- groups ---------------------------------------------------------------------------------- */

const struct conf_key *conf_find(const struct conf_key *keys, const char *name)
{
	for (; keys->name; keys++)
		if (strcmp(keys->name, name) == 0)
			return keys;
	return NULL;
}

static bool equal_strings(const struct conf_strings *a, const struct conf_strings *b)
{
	for (size_t i = 0; a->n == b->n && i < a->n; i++)
		if (strcmp(a->v[i], b->v[i]) != 0)
			return false;
	return a->n == b->n;
}

static bool equal_texts(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

bool conf_equal(const struct conf_key *key, const void *a, const void *b)
{
	const void *x = (const char *)a + key->offset, *y = (const char *)b + key->offset;

	switch (key->type) {
	case CONF_BOOL:
		return *(const bool *)x == *(const bool *)y;
	case CONF_UINT:
	case CONF_SIZE:
		return *(const uint64_t *)x == *(const uint64_t *)y;
	case CONF_ENUM:
		return *(const int *)x == *(const int *)y;
	case CONF_STRING:
	case CONF_ID:
		return equal_texts(*(char *const *)x, *(char *const *)y);
	case CONF_STRINGS:
		return equal_strings(x, y);
	case CONF_GROUPS:
		break;
	}
	return false;
}

bool conf_is_elsewhere(const struct conf_elsewhere *elsewhere, const char *name)
{
	for (const char *const *at = elsewhere->names; *at; at++)
		if (strcmp(*at, name) == 0)
			return true;
	return false;
}

/* Within a group the other file's names are far. */
static bool is_elsewhere(const struct reader *r, const config_setting_t *s)
{
	return r->elsewhere && config_setting_is_root(config_setting_parent(s)) &&
	       conf_is_elsewhere(r->elsewhere, config_setting_name(s));
}

static int refuse_unknown(struct reader *r, const config_setting_t *s, const struct conf_key *keys)
{
	struct word_guess guess = {.unknown = config_setting_name(s)};

	if (is_elsewhere(r, s))
		return refuse(r, s, guess.unknown, "belongs to %s", r->elsewhere->file);
	for (; keys->name; keys++)
		word_guess_offer(&guess, keys->name);
	if (!guess.nearest)
		return refuse(r, s, guess.unknown, "unknown key; see rmemfs.conf(5)");
	return refuse(r, s, guess.unknown, "unknown key; did you mean '%s'?", guess.nearest);
}

static int store(struct reader *r, const config_setting_t *s, const struct conf_key *key, void *out)
{
	if (key->type == CONF_STRINGS)
		return store_strings(r, s, key, out);
	if (key->type == CONF_GROUPS)
		return store_groups(r, s, key, out);
	return store_value(r, s, key, out);
}

static int read_group(
	struct reader *r, config_setting_t *group, const struct conf_key *keys, void *out)
{
	int n = config_setting_length(group);

	for (int i = 0; i < n; i++) {
		config_setting_t *s = config_setting_get_elem(group, (unsigned)i);
		const struct conf_key *key = conf_find(keys, config_setting_name(s));
		int err = key ? store(r, s, key, out) : refuse_unknown(r, s, keys);

		if (err)
			return err;
	}
	for (; keys->name; keys++)
		if (keys->required && !config_setting_get_member(group, keys->name))
			return refuse(r, group, keys->name, "is missing");
	return 0;
}

/* ---- the file -------------------------------------------------------------------------------- */

/* libconfig says on which line it stopped, but not at which word. */
static int refuse_syntax(struct reader *r, const config_t *config, const char *text)
{
	int line = config_error_line(config);
	char quoted[WORD_QUOTED_BYTES];
	autofree char *at = NULL;

	for (int i = 1; i < line && *text; i++)
		text += strcspn(text, "\n") + (strchr(text, '\n') != NULL);
	text += strspn(text, " \t");
	at = strndup(text, strcspn(text, "\n"));
	if (!at)
		return -ENOMEM;
	snprintf(r->why, r->whylen, "%s:%d: %s: %s", r->path, line, config_error_text(config),
		*at ? word_quote(at, quoted) : "a line before it is not complete");
	return -EINVAL;
}

static int parse_text(struct reader *r, const char *text, const struct conf_key *keys, void *out)
{
	config_t config;
	int err;

	config_init(&config);
	if (config_read_string(&config, text) == CONFIG_TRUE)
		err = read_group(r, config_root_setting(&config), keys, out);
	else
		err = refuse_syntax(r, &config, text);
	config_destroy(&config);
	return err;
}

int conf_read(const char *path, const struct conf_key *keys, const struct conf_elsewhere *elsewhere,
	void *out, char *why, size_t whylen)
{
	struct reader r = {.path = path, .elsewhere = elsewhere, .why = why, .whylen = whylen};
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
