#include "daemon/ctl/json.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/base/printable.h"
#include "common/base/util.h"

json_t *ctl_json_read(const char *text)
{
	json_t *root = json_loads(text, 0, NULL);

	if (json_is_object(root))
		return root;
	json_decref(root);
	return NULL;
}

const char *ctl_json_text(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

uint64_t ctl_json_number(const json_t *object, const char *key)
{
	json_int_t value = json_integer_value(json_object_get(object, key));

	return value > 0 ? (uint64_t)value : 0;
}

static void clean_string(json_t *string)
{
	autofree char *text = strdup(json_string_value(string));

	if (text)
		json_string_set_nocheck(string, printable_clean_string(text));
	else
		json_string_set_nocheck(string, "");
}

/* A member whose name is not to be shown gets another name. */
static void clean_keys(json_t *object)
{
	const char *key;
	json_t *value;
	void *next;

	json_object_foreach_safe(object, next, key, value)
	{
		autofree char *clean = strdup(key);

		if (clean && strcmp(printable_clean_string(clean), key) == 0)
			continue;
		if (clean)
			json_object_set(object, clean, value);
		json_object_del(object, key);
	}
}

/* The reader limits the depth. */
void ctl_json_clean(json_t *root)
{
	const char *key;
	json_t *value;
	size_t i;

	if (json_is_string(root))
		clean_string(root);
	clean_keys(root);
	json_object_foreach(root, key, value) ctl_json_clean(value);
	json_array_foreach(root, i, value) ctl_json_clean(value);
}

/* A bad character stands in strings only. */
int ctl_json_print(const json_t *root)
{
	autofree char *text = json_dumps(root, JSON_COMPACT);
	size_t len = text ? strlen(text) : 0;

	if (!text)
		return -ENOMEM;
	for (size_t at = 0; at < len;) {
		struct printable_char c = printable_char(text + at, len - at);

		if (c.bad)
			printf("\\u%04x", (unsigned)c.code);
		else
			fwrite(text + at, 1, c.len, stdout);
		at += c.len;
	}
	putchar('\n');
	return 0;
}
