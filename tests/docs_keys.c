/* docs_keys.c - the keys of a configuration file in the words of rmemfs.conf(5): "KEY<tab>TYPE,
 * RANGE; DEFAULT." for each. They come from the program's own table and defaults, whose source is
 * compiled in here, once for each program.
 */
#ifdef DOCS_SERVER
#include "server/config.c" /* NOLINT(bugprone-suspicious-include): its table is static */
typedef struct server_config docs_config;
static const struct conf_key *const table = server_keys;
#else
#include "daemon/config.c" /* NOLINT(bugprone-suspicious-include) */
typedef struct client_config docs_config;
static const struct conf_key *const table = keys;
#endif

#include <inttypes.h>
#include <stdlib.h>

static docs_config defaults;

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
	if (key->max == INT64_MAX)
		printf(", at least %s", min);
	else
		printf(", %s to %s", min, max);
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
	case CONF_STRING:
		printf("String");
		print_range(key);
		printf(" bytes");
		break;
	case CONF_STRINGS:
		printf("List of strings");
		break;
	case CONF_GROUPS:
		printf("List of groups");
		break;
	default:
		break;
	}
}

static void print_strings(const struct conf_strings *list)
{
	for (size_t i = 0; i < list->n; i++)
		printf("%s \"%s\"", i ? "," : "[", list->v[i]);
	printf(" ]");
}

#ifdef DOCS_SERVER
static void print_groups(const struct conf_groups *list)
{
	char size[32];

	for (size_t i = 0; i < list->n; i++) {
		const struct export_config *export = (const struct export_config *)list->v + i;

		size_format(export->size, size, sizeof(size));
		printf("%s { name = \"%s\"; size = \"%s\"; }", i ? "," : "(", export->name, size);
	}
	printf(" )");
}
#else
static void print_groups(const struct conf_groups *list)
{
	printf("%zu", list->n);
}
#endif

/* Where the value is outside of its range, it is found out at the start. */
static void print_number(const struct conf_key *key, uint64_t n)
{
	char size[32];

	size_format(n, size, sizeof(size));
	if (n < key->min || n > key->max)
		printf("automatic");
	else if (key->type == CONF_SIZE)
		printf("%s", size);
	else
		printf("%" PRIu64, n);
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
	case CONF_STRING:
		printf("%s", *(char *const *)field);
		break;
	case CONF_STRINGS:
		print_strings(field);
		break;
	case CONF_GROUPS:
		print_groups(field);
		break;
	default:
		break;
	}
}

static void print_keys(const struct conf_key *keys_of, bool nested)
{
	for (const struct conf_key *key = keys_of; key->name; key++) {
		printf("%s\t", key->name);
		print_type(key);
		if (nested) {
			printf("; %s.\n", key->required ? "required" : "optional");
			continue;
		}
		printf("; default ");
		print_default(key);
		printf(".\n");
		if (key->keys)
			print_keys(key->keys, true);
	}
}

int main(void)
{
#ifdef DOCS_SERVER
	char why[512];

	server_config_init(&defaults);
	if (server_config_finish(&defaults, why, sizeof(why))) {
		fprintf(stderr, "%s\n", why);
		return EXIT_FAILURE;
	}
#else
	client_config_init(&defaults);
#endif
	print_keys(table, false);
#ifdef DOCS_SERVER
	server_config_fini(&defaults);
#else
	client_config_fini(&defaults);
#endif
	return EXIT_SUCCESS;
}
