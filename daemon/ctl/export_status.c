/* export_status.c - see export_status.h. */
#include "daemon/ctl/export_status.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/log.h"
#include "daemon/ctl/client.h"
#include "daemon/ctl/json.h"

enum { TIMEOUT_MS = 5000 };

json_t *export_status_fetch(const char *where)
{
	int64_t round_trip_ns;
	char *text, why[256];
	json_t *root;

	if (ctl_fetch_status(where, NULL, TIMEOUT_MS, &text, &round_trip_ns, why, sizeof(why))) {
		log_error("%s: %s", where, why);
		return NULL;
	}
	root = ctl_json_read(text);
	free(text);
	if (!root)
		log_error("%s: the server's answer is malformed", where);
	return root;
}

const char *export_status_name(const json_t *export)
{
	const char *name = json_string_value(json_object_get(export, "name"));

	return name ? name : "";
}

const json_t *export_status_find(const json_t *root, const char *name)
{
	const json_t *export;
	size_t i;

	json_array_foreach(json_object_get(root, "exports"), i, export)
	{
		if (strcmp(export_status_name(export), name) == 0)
			return export;
	}
	return NULL;
}

unsigned export_status_mounts(const json_t *root, const char *export)
{
	const json_t *session;
	unsigned n = 0;
	size_t i;

	json_array_foreach(json_object_get(root, "sessions"), i, session)
	{
		const char *at = json_string_value(json_object_get(session, "export"));

		n += at && strcmp(at, export) == 0;
	}
	return n;
}
