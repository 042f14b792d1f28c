#include "daemon/metrics/nameless.h"

#include <stdbool.h>
#include <string.h>

#include "common/base/util.h"

/* A member, and the member in which its object lies, itself or in an array; "": the whole. */
struct place {
	const char *in, *name;
};

static const struct place texts[] = {
	{"answer", "version"},
	{"answer", "transport"},
	{"answer", "protection"},
	{"answer", "state"},
	{"options", "cache"},
	{"options", "ack"},
	{"options", "names"},
	{"requests", "operation"},
	{"requests", "waits_for"},
	{"requests", "rpc"},
	{"", "version"},
	{"", "incarnation"},
	{"", "kind"},
	{"", "state"},
	{"", "result"},
	{"exports", "name"},
	{"exports", "protection"},
	{"snapshot", "state"},
	{"regions", "export"},
	{"sessions", "export"},
	{"sessions", "state"},
	{"channels", "transport"},
	{"channels", "protection"},
	{"channels", "state"},
};

/* Numbers of users. */
static const char *const people[] = {"uid", "user", "group", "anonuid", "anongid"};

static bool may_stay(const char *in, const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		if (strcmp(texts[i].in, in) == 0 && strcmp(texts[i].name, name) == 0)
			return true;
	return false;
}

static bool is_person(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(people); i++)
		if (strcmp(people[i], name) == 0)
			return true;
	return false;
}

static json_t *copy(const json_t *value, const char *in, const char *name);

static json_t *copy_object(const json_t *object, const char *in)
{
	json_t *to = json_object();
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)object, key, value)
		json_object_set_new(to, key, copy(value, in, key));
	return to;
}

static json_t *copy_array(const json_t *array, const char *in, const char *name)
{
	json_t *to = json_array();
	const json_t *value;
	size_t i;

	json_array_foreach(array, i, value) json_array_append_new(to, copy(value, in, name));
	return to;
}

/* The member `name` of an object that lies in `in`. jansson limits the depth. */
static json_t *copy(const json_t *value, const char *in, const char *name)
{
	switch (json_typeof(value)) {
	case JSON_OBJECT:
		return copy_object(value, name);
	case JSON_ARRAY:
		return copy_array(value, in, name);
	case JSON_STRING:
		return may_stay(in, name) ? json_copy((json_t *)value) : json_null();
	case JSON_INTEGER:
	case JSON_REAL:
		return is_person(name) ? json_null() : json_copy((json_t *)value);
	default:
		return json_copy((json_t *)value);
	}
}

json_t *nameless_copy(const json_t *answer)
{
	return answer ? copy(answer, "", "") : NULL;
}
