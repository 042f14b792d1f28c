/* conf_value.c - checks one value against its key and stores it; lists that grow. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/conf/conf.h"
#include "common/base/util.h"

struct must {
	char *text;
	size_t len;
};

__attribute__((format(printf, 2, 3))) static int refuse(
	const struct must *must, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(must->text, must->len, format, args);
	va_end(args);
	return -EINVAL;
}

static bool out_of_bounds(const struct conf_key *key, uint64_t n)
{
	return n < key->min || (key->max && n > key->max);
}

/* ---- scalars --------------------------------------------------------------------------------- */

static int set_bool(const struct conf_key *key, bool *to, const char *text, const struct must *must)
{
	bool value = strcmp(text, "true") == 0;

	if (!value && strcmp(text, "false") != 0)
		return refuse(must, "must be true or false");
	*to = value;
	return 0;
}

/* Takes digits only: strtoull() alone accepts signs and blanks. */
static bool parse_number(const char *text, uint64_t *n)
{
	size_t len = strlen(text);

	if (len == 0 || strspn(text, "0123456789") != len)
		return false;
	errno = 0;
	*n = strtoull(text, NULL, 10);
	return errno == 0;
}

static int set_uint(
	const struct conf_key *key, uint64_t *to, const char *text, const struct must *must)
{
	uint64_t n;

	if (parse_number(text, &n) && !out_of_bounds(key, n)) {
		*to = n;
		return 0;
	}
	if (!key->max)
		return refuse(must, "must be a whole number of at least %" PRIu64, key->min);
	return refuse(
		must, "must be a whole number from %" PRIu64 " to %" PRIu64, key->min, key->max);
}

static int refuse_size(const struct conf_key *key, const struct must *must)
{
	char min[32], max[32];

	size_format(key->min, min, sizeof(min));
	size_format(key->max, max, sizeof(max));
	if (!key->max)
		return refuse(must, "must be at least %s", min);
	return refuse(must, "must be %s to %s", min, max);
}

static int conf_value_set_size(
	const struct conf_key *key, uint64_t *to, const char *text, const struct must *must)
{
	char multiple[32];
	uint64_t n;

	switch (size_parse(text, &n)) {
	case 0:
		break;
	case -ERANGE:
		return key->max ? refuse_size(key, must) : refuse(must, "is too large");
	default:
		return refuse(must, "must be a whole number and B, KiB, MiB, GiB or TiB, "
				    "as in 512MiB or 64GiB");
	}
	if (out_of_bounds(key, n))
		return refuse_size(key, must);
	if (key->multiple && n % key->multiple) {
		size_format(key->multiple, multiple, sizeof(multiple));
		return refuse(must, "must be a multiple of %s", multiple);
	}
	*to = n;
	return 0;
}

static int set_enum(const struct conf_key *key, int *to, const char *text, const struct must *must)
{
	char list[128];

	if (word_find(key->words, text, to))
		return 0;
	word_list(key->words, list, sizeof(list));
	return refuse(must, "must be %s", list);
}

static int set_string(
	const struct conf_key *key, char **to, const char *text, const struct must *must)
{
	const char *wrong;
	char *copy;

	if (text[0] == '\0' && key->min)
		return refuse(must, "must not be empty");
	if (out_of_bounds(key, strlen(text)))
		return refuse(
			must, "must be %" PRIu64 " to %" PRIu64 " bytes long", key->min, key->max);
	wrong = key->check ? key->check(text) : NULL;
	if (wrong)
		return refuse(must, "%s", wrong);
	copy = strdup(text);
	if (!copy)
		return -ENOMEM;
	free(*to);
	*to = copy;
	return 0;
}

int conf_set(const struct conf_key *key, void *out, const char *text, char *why, size_t whylen)
{
	const struct must must = {why, whylen};
	void *to = (char *)out + key->offset;

	switch (key->type) {
	case CONF_BOOL:
		return set_bool(key, to, text, &must);
	case CONF_UINT:
		return set_uint(key, to, text, &must);
	case CONF_SIZE:
		return conf_value_set_size(key, to, text, &must);
	case CONF_ENUM:
		return set_enum(key, to, text, &must);
	case CONF_STRING:
	case CONF_ID:
		return set_string(key, to, text, &must);
	case CONF_STRINGS:
	case CONF_GROUPS:
		break;
	}
	return refuse(&must, "cannot be set like this");
}

/* ---- lists ----------------------------------------------------------------------------------- */

/* Makes room for one more element and its line; n does not count it yet. */
static int conf_value_grow(void **v, unsigned **lines, size_t n, size_t element_bytes)
{
	void *grown = reallocarray(*v, n + 1, element_bytes);
	unsigned *more;

	if (!grown)
		return -ENOMEM;
	*v = grown;
	more = reallocarray(*lines, n + 1, sizeof(*more));
	if (!more)
		return -ENOMEM;
	*lines = more;
	return 0;
}

int conf_add_string(struct conf_strings *strings, const char *text, unsigned line)
{
	void *v = strings->v;
	int err = conf_value_grow(&v, &strings->lines, strings->n, sizeof(*strings->v));

	strings->v = v;
	if (err)
		return err;
	strings->v[strings->n] = strdup(text);
	if (!strings->v[strings->n])
		return -ENOMEM;
	strings->lines[strings->n++] = line;
	return 0;
}

void *conf_add_group(const struct conf_key *key, struct conf_groups *groups, unsigned line)
{
	void *element;

	if (conf_value_grow(&groups->v, &groups->lines, groups->n, key->element_bytes))
		return NULL;
	element = (char *)groups->v + groups->n * key->element_bytes;
	memset(element, 0, key->element_bytes);
	groups->lines[groups->n++] = line;
	return element;
}

int conf_move_groups(const struct conf_key *key, struct conf_groups *from, struct conf_groups *to)
{
	size_t bytes = key->element_bytes, n = to->n + from->n;

	if (!from->n)
		return 0;
	if (conf_value_grow(&to->v, &to->lines, n - 1, bytes))
		return -ENOMEM;
	memcpy((char *)to->v + to->n * bytes, from->v, from->n * bytes);
	memcpy(to->lines + to->n, from->lines, from->n * sizeof(*to->lines));
	to->n = n;
	free(from->v);
	free(from->lines);
	*from = (struct conf_groups){0};
	return 0;
}

void conf_remove_group(const struct conf_key *key, struct conf_groups *groups, size_t i)
{
	size_t bytes = key->element_bytes, behind = --groups->n - i;
	char *element = (char *)groups->v + i * bytes;

	conf_free(key->keys, element);
	memmove(element, element + bytes, behind * bytes);
	memmove(groups->lines + i, groups->lines + i + 1, behind * sizeof(*groups->lines));
}

void conf_strings_free(struct conf_strings *strings)
{
	for (size_t i = 0; i < strings->n; i++)
		free(strings->v[i]);
	free(strings->v);
	free(strings->lines);
	*strings = (struct conf_strings){0};
}

static void free_groups(const struct conf_key *key, struct conf_groups *groups)
{
	for (size_t i = 0; i < groups->n; i++)
		conf_free(key->keys, (char *)groups->v + i * key->element_bytes);
	free(groups->v);
	free(groups->lines);
	*groups = (struct conf_groups){0};
}

void conf_clear(const struct conf_key *key, void *out)
{
	void *field = (char *)out + key->offset;

	if (key->type == CONF_STRING || key->type == CONF_ID) {
		free(*(char **)field);
		*(char **)field = NULL;
	} else if (key->type == CONF_STRINGS) {
		conf_strings_free(field);
	} else if (key->type == CONF_GROUPS) {
		free_groups(key, field);
	}
}

void conf_free(const struct conf_key *keys, void *out)
{
	for (; keys->name; keys++)
		conf_clear(keys, out);
}
