/* docs_keys.c - the keys of a configuration file in the words of rmemfs.conf(5): "KEY<tab>TYPE,
 * RANGE; DEFAULT." for each, from the program's own table and defaults. Linked with each program's
 * library in turn.
 */
#ifdef DOCS_server
#include "server/config/config.h"
#else
#include "daemon/mount/config.h"
#endif

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/util.h"

/* ---- what differs between the programs ------------------------------------------------------- */

#ifdef DOCS_server
static struct server_config defaults;
static const struct conf_key *const table = server_config_keys;

static bool settle_defaults(void)
{
	char why[512];

	server_config_init(&defaults);
	if (server_config_finish(&defaults, why, sizeof(why)) == 0)
		return true;
	fprintf(stderr, "%s\n", why);
	return false;
}

static void free_defaults(void)
{
	server_config_fini(&defaults);
}

static void print_groups(void)
{
	char size[32];

	for (size_t i = 0; i < defaults.exports.n; i++) {
		const struct export_config *export = server_config_export(&defaults, i);

		size_format(export->size, size, sizeof(size));
		printf("%s { name = \"%s\"; size = \"%s\"; }", i ? "," : "(", export->name, size);
	}
	printf(" )");
}
#else
static struct client_config defaults;
static const struct conf_key *const table = client_config_keys;

static bool settle_defaults(void)
{
	client_config_init(&defaults);
	return true;
}

static void free_defaults(void)
{
	client_config_fini(&defaults);
}

static void print_groups(void)
{
}
#endif

/* ---- types and ranges ------------------------------------------------------------------------ */

static void print_range(const struct conf_key *key)
{
	char min[32], max[32];

	if (key->type == CONF_SIZE) {
		size_format(key->min, min, sizeof(min));
		size_format(key->max, max, sizeof(max));
	} else {
		snprintf(min, sizeof(min), "%" PRIu64, key->min);
		snprintf(max, sizeof(max), "%" PRIu64, key->max);
	}
	if (!key->max)
		printf(", at least %s", min);
	else
		printf(", %s to %s", min, max);
}

static void print_words(const struct word *words)
{
	printf("One of ");
	for (const struct word *word = words; word->text; word++)
		printf("%s%s", word == words ? "" : ", ", word->text);
}

static void print_type(const struct conf_key *key)
{
	switch (key->type) {
	case CONF_BOOL:
		printf("Flag");
		break;
	case CONF_UINT:
		printf("Whole number");
		print_range(key);
		break;
	case CONF_SIZE:
		printf("Size");
		print_range(key);
		break;
	case CONF_ENUM:
		print_words(key->words);
		break;
	case CONF_STRING:
		printf("String");
		print_range(key);
		printf(" bytes");
		break;
	case CONF_ID:
		printf("String");
		print_range(key);
		printf(" bytes, or whole number");
		break;
	case CONF_STRINGS:
		printf("List of strings");
		break;
	case CONF_GROUPS:
		printf("List of groups");
		break;
	}
}

/* ---- defaults -------------------------------------------------------------------------------- */

/* A default outside the range means that the program finds the value at its start. */
static void print_number(const struct conf_key *key, uint64_t n)
{
	char size[32];

	size_format(n, size, sizeof(size));
	if (n < key->min || (key->max && n > key->max))
		printf("automatic");
	else if (key->type == CONF_SIZE)
		printf("%s", size);
	else
		printf("%" PRIu64, n);
}

static void print_word(const struct word *words, int value)
{
	while (words->text && words->value != value)
		words++;
	printf("%s", words->text ? words->text : "automatic");
}

static void print_strings(const struct conf_strings *list)
{
	for (size_t i = 0; i < list->n; i++)
		printf("%s \"%s\"", i ? "," : "[", list->v[i]);
	printf(" ]");
}

static void print_default(const struct conf_key *key)
{
	const void *field = (const char *)&defaults + key->offset;

	switch (key->type) {
	case CONF_BOOL:
		printf("%s", *(const bool *)field ? "true" : "false");
		break;
	case CONF_UINT:
	case CONF_SIZE:
		print_number(key, *(const uint64_t *)field);
		break;
	case CONF_ENUM:
		print_word(key->words, *(const int *)field);
		break;
	case CONF_STRING:
	case CONF_ID:
		printf("%s", *(char *const *)field ? *(char *const *)field : "none");
		break;
	case CONF_STRINGS:
		print_strings(field);
		break;
	case CONF_GROUPS:
		print_groups();
		break;
	}
}

static void print_parts(const struct conf_key *part)
{
	for (; part && part->name; part++) {
		printf("%s\t", part->name);
		print_type(part);
		printf("; %s.\n", part->required ? "required" : "optional");
		print_parts(part->keys);
	}
}

static void print_keys(void)
{
	for (const struct conf_key *key = table; key->name; key++) {
		printf("%s\t", key->name);
		print_type(key);
		printf("; default ");
		print_default(key);
		printf(".\n");
		print_parts(key->keys);
	}
}

int main(void)
{
	bool settled = settle_defaults();

	if (settled)
		print_keys();
	free_defaults();
	return settled ? EXIT_SUCCESS : EXIT_FAILURE;
}
