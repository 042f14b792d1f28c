/* ctl_print.c - tables from the JSON of status. What is missing there prints as empty or 0. */
#include "daemon/ctl_print.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>

#include "common/conf.h"

enum { SIZE_CHARS = 32 };

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

static uint64_t number_of(const json_t *object, const char *key)
{
	return (uint64_t)json_integer_value(json_object_get(object, key));
}

static const char *size_of(const json_t *object, const char *key, char buf[SIZE_CHARS])
{
	size_format(number_of(object, key), buf, SIZE_CHARS);
	return buf;
}

static void print_server(const json_t *root)
{
	const json_t *store = json_object_get(root, "store"), *address;
	char used[SIZE_CHARS], bytes[SIZE_CHARS];
	size_t i;

	printf("rmemfs-server %s, pid %" PRIu64 ", up %" PRIu64 " s, incarnation %" PRIu64 "\n",
		text_of(root, "version"), number_of(root, "pid"),
		number_of(root, "uptime_ms") / 1000, number_of(root, "incarnation"));
	printf("memory in %s, store %s, metadata %s of %s\n", text_of(root, "memory_dir"),
		text_of(root, "store_id"), size_of(store, "used", used),
		size_of(store, "bytes", bytes));
	json_array_foreach(json_object_get(root, "listen"), i, address)
		printf("listening on %s\n", json_string_value(address));
}

static void print_exports(const json_t *root)
{
	const json_t *export;
	size_t i;

	printf("\n%-20s %10s %10s %10s %10s %10s %8s %7s\n", "EXPORT", "SIZE", "USED", "FREE",
		"GRANTED", "DIRTY", "FILES", "REGIONS");
	json_array_foreach(json_object_get(root, "exports"), i, export)
	{
		char size[SIZE_CHARS], used[SIZE_CHARS], unused[SIZE_CHARS], granted[SIZE_CHARS],
			dirty[SIZE_CHARS];

		printf("%-20s %10s %10s %10s %10s %10s %8" PRIu64 " %7" PRIu64 "\n",
			text_of(export, "name"), size_of(export, "bytes", size),
			size_of(export, "used", used), size_of(export, "free", unused),
			size_of(export, "granted", granted), size_of(export, "dirty", dirty),
			number_of(export, "files"), number_of(export, "regions"));
	}
}

static void print_counters(const char *indent, const json_t *n)
{
	char in[SIZE_CHARS], out[SIZE_CHARS];

	printf("%sREADs %" PRIu64 " (%s), WRITEs %" PRIu64 " (%s), RPCs %" PRIu64
	       ", data bytes in RPCs %" PRIu64 "\n",
		indent, number_of(n, "reads"), size_of(n, "read_bytes", in), number_of(n, "writes"),
		size_of(n, "write_bytes", out), number_of(n, "rpcs"),
		number_of(n, "rpc_data_bytes"));
}

static void print_session(const json_t *session)
{
	const json_t *channel;
	size_t i;

	printf("\nSESSION %" PRIu64 ": %s at export %s, %s%s%s\n", number_of(session, "id"),
		text_of(session, "client"), text_of(session, "export"), text_of(session, "state"),
		json_is_true(json_object_get(session, "read_only")) ? ", read-only" : "",
		json_is_true(json_object_get(session, "exclusive")) ? ", exclusive" : "");
	json_array_foreach(json_object_get(session, "channels"), i, channel)
		printf("  channel %" PRIu64 ": %s, %s\n", number_of(channel, "index"),
			text_of(channel, "peer"), text_of(channel, "state"));
	print_counters("  ", json_object_get(session, "counters"));
}

int ctl_print_status(const char *json)
{
	json_t *root = json_loads(json, 0, NULL);
	const json_t *session;
	size_t i;

	if (!json_is_object(root)) {
		json_decref(root);
		return -EPROTO;
	}
	print_server(root);
	print_exports(root);
	json_array_foreach(json_object_get(root, "sessions"), i, session) print_session(session);
	print_counters("\nTOTAL ", json_object_get(root, "totals"));
	json_decref(root);
	return 0;
}
