#include "daemon/metrics/openmetrics.h"

#include <inttypes.h>
#include <string.h>

#include "common/base/util.h"
#include "daemon/ctl/json.h"
#include "daemon/ctl/survey/health_server.h"
#include "daemon/ctl/survey/health_waits.h"

enum { LABELS_BYTES = 20 << 10, NS_PER_S = 1000000000 };

/* A number of a JSON object: its path of members, and what one unit of the metric is there. */
struct number {
	const char *family, *type, *help;
	const char *path;
	double unit;
};

/* ---- text ------------------------------------------------------------------------------------ */

static void put_family(FILE *out, const char *family, const char *type, const char *help)
{
	fprintf(out, "# TYPE %s %s\n# HELP %s %s\n", family, type, family, help);
}

static bool is_counter(const char *type)
{
	return strcmp(type, "counter") == 0;
}

static void put_sample(
	FILE *out, const char *family, const char *suffix, const char *labels, double value)
{
	fprintf(out, "%s%s{%s} %.16g\n", family, suffix, labels, value);
}

/* Appends name="value", with escapes where a value needs them. A label that has no room is left
 * out. */
static void add_label(char labels[LABELS_BYTES], const char *name, const char *value)
{
	size_t begin = strlen(labels), at = begin, room = LABELS_BYTES - 2;

	/* A value needs twice its length at most. */
	if (at + strlen(name) + 2 * strlen(value) + 4 > room)
		return;
	at += (size_t)sprintf(labels + at, "%s%s=\"", at ? "," : "", name);
	for (; *value; value++) {
		if (strchr("\\\"\n", *value))
			labels[at++] = '\\';
		labels[at++] = *value == '\n' ? 'n' : *value;
	}
	strcpy(labels + at, "\"");
}

/* ---- JSON ------------------------------------------------------------------------------------ */

/* "session.losses" */
static const json_t *find(const json_t *root, const char *path)
{
	char name[64];

	while (root && *path) {
		size_t len = strcspn(path, ".");

		snprintf(name, sizeof(name), "%.*s", (int)len, path);
		root = json_object_get(root, name);
		path += len + (path[len] == '.');
	}
	return root;
}

static double number_of(const json_t *root, const char *path)
{
	return json_number_value(find(root, path));
}

/* ---- mounts ---------------------------------------------------------------------------------- */

static const struct number mount_numbers[] = {
	{"rmemfs_mount_connection_losses", "counter",
		"How often the connection to the server was lost.", "session.losses", 1},
	{"rmemfs_mount_oldest_request_seconds", "gauge",
		"How long the oldest request of the kernel has waited.", "oldest_request_ms", 1000},
	{"rmemfs_mount_sharing_begun", "counter",
		"How often a mount that was alone has begun to share its export.", "sharing.begun",
		1},
	{"rmemfs_mount_sharing_ended", "counter", "How often one that shared was alone again.",
		"sharing.ended", 1},
	{"rmemfs_mount_keep_out_files", "gauge",
		"Files that are open for writing and keep out another mount, which waits.",
		"sharing.keep_out", 1},
	{"rmemfs_mount_granted_bytes", "gauge",
		"Free memory that the server has lent and no file has yet.", "granted", 1},
	{"rmemfs_mount_seconds", "gauge", "For how long it has been mounted.", "mounted_ms", 1000},
	{"rmemfs_mount_cpu_wait_seconds", "counter",
		"For how long the mount's threads have waited for a CPU.", "cpu.total_wait_ms",
		1000},
	{"rmemfs_mount_late_seconds", "gauge",
		"How late the mount was at most, in the last 10 s, with something that was due.",
		"cpu.late_ms", 1000},
};

static const struct number operation_numbers[] = {
	{"rmemfs_mount_operations", "counter", "Operations that the kernel has asked for.", "count",
		1},
	{"rmemfs_mount_operation_errors", "counter", "Operations that ended with an error.",
		"errors", 1},
	{"rmemfs_mount_operation_bytes", "counter", "Bytes of files that were moved.", "bytes", 1},
};

static const char *const states[] = {
	"connected", "silent", "connecting", "reconnecting", "renewing", "stopped", "lost"};

static void mount_labels(const struct observed *seen, const json_t *mount, char *labels)
{
	char number[24];

	*labels = '\0';
	snprintf(number, sizeof(number), "%" PRId64,
		(int64_t)json_integer_value(json_object_get(mount, "connection")));
	add_label(labels, "mount", number);
	if (!seen->details)
		return;
	add_label(labels, "mountpoint", ctl_json_text(mount, "mountpoint"));
	add_label(labels, "source", ctl_json_text(mount, "source"));
}

static void put_up(FILE *out, const struct observed *seen)
{
	const json_t *mount;
	size_t i;

	put_family(out, "rmemfs_mount_up", "gauge", "Whether the mount's daemon has answered.");
	json_array_foreach(seen->mounts, i, mount)
	{
		char labels[LABELS_BYTES];

		mount_labels(seen, mount, labels);
		put_sample(out, "rmemfs_mount_up", "", labels,
			json_is_object(json_object_get(mount, "answer")));
	}
	put_family(out, "rmemfs_mounts_hidden", "gauge",
		"Mounts of root that this program may not ask.");
	fprintf(out, "rmemfs_mounts_hidden %u\n", seen->hidden);
	put_family(out, "rmemfs_mounts_missing", "gauge",
		"Mounts that are configured, as services or in fstab, and not there.");
	fprintf(out, "rmemfs_mounts_missing %u\n", seen->missing);
}

/* Calls put() for each mount that has answered, with its labels, to which put() may add. */
static void each_answer(FILE *out, const struct observed *seen,
	void (*put)(FILE *out, char *labels, const json_t *answer, const void *arg),
	const void *arg)
{
	const json_t *mount;
	size_t i;

	json_array_foreach(seen->mounts, i, mount)
	{
		const json_t *answer = json_object_get(mount, "answer");
		char labels[LABELS_BYTES];

		if (!json_is_object(answer))
			continue;
		mount_labels(seen, mount, labels);
		put(out, labels, answer, arg);
	}
}

static void put_info(FILE *out, char *labels, const json_t *answer, const void *arg)
{
	add_label(labels, "transport", ctl_json_text(answer, "transport"));
	add_label(labels, "protection", ctl_json_text(answer, "protection"));
	add_label(labels, "version", ctl_json_text(answer, "version"));
	put_sample(out, "rmemfs_mount", "_info", labels, 1);
}

static void put_states(FILE *out, char *labels, const json_t *answer, const void *arg)
{
	size_t len = strlen(labels);

	for (size_t k = 0; k < ARRAY_SIZE(states); k++) {
		labels[len] = '\0';
		add_label(labels, "rmemfs_mount_state", states[k]);
		put_sample(out, "rmemfs_mount_state", "", labels,
			strcmp(ctl_json_text(answer, "state"), states[k]) == 0);
	}
}

static void put_mount_number(FILE *out, char *labels, const json_t *answer, const void *arg)
{
	const struct number *n = arg;

	put_sample(out, n->family, is_counter(n->type) ? "_total" : "", labels,
		number_of(answer, n->path) / n->unit);
}

static void put_sharing(FILE *out, char *labels, const json_t *answer, const void *arg)
{
	put_sample(out, "rmemfs_mount_sharing", "", labels,
		json_is_true(find(answer, "options.share")));
}

/* By the cause of the wait. */
static void put_waiting(FILE *out, char *labels, const json_t *answer, const void *arg)
{
	size_t len = strlen(labels);
	const char *cause;
	json_t *n;

	json_object_foreach(json_object_get(answer, "waiting"), cause, n)
	{
		labels[len] = '\0';
		add_label(labels, "waits_for", cause);
		put_sample(out, "rmemfs_mount_waiting_requests", "", labels, json_number_value(n));
	}
}

static void put_waiting_for_mounts(FILE *out, char *labels, const json_t *answer, const void *arg)
{
	const json_t *request;
	unsigned n = 0;
	size_t i;

	json_array_foreach(json_object_get(answer, "requests"), i, request)
	{
		n += json_is_true(json_object_get(request, "for_mounts"));
	}
	put_sample(out, "rmemfs_mount_waiting_for_mounts", "", labels, n);
}

static void put_mounts(FILE *out, const struct observed *seen)
{
	put_family(out, "rmemfs_mount", "info", "Transport, protection and version of a mount.");
	each_answer(out, seen, put_info, NULL);
	put_family(out, "rmemfs_mount_state", "stateset", "The worst that holds for the mount.");
	each_answer(out, seen, put_states, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(mount_numbers); i++) {
		const struct number *n = &mount_numbers[i];

		put_family(out, n->family, n->type, n->help);
		each_answer(out, seen, put_mount_number, n);
	}
	put_family(out, "rmemfs_mount_sharing", "gauge",
		"Whether the mount shares its export now, and goes by leases.");
	each_answer(out, seen, put_sharing, NULL);
	put_family(out, "rmemfs_mount_waiting_requests", "gauge",
		"Requests of the kernel whose callers wait now, by what they wait for.");
	each_answer(out, seen, put_waiting, NULL);
	put_family(out, "rmemfs_mount_waiting_for_mounts", "gauge",
		"Listed requests that wait for the server, perhaps until another mount gives back a file.");
	each_answer(out, seen, put_waiting_for_mounts, NULL);
}

/* ---- operations ------------------------------------------------------------------------------ */

struct operation_putter {
	void (*put)(FILE *out, const char *labels, const json_t *op, const void *arg);
	const void *arg;
};

static void put_each_operation(FILE *out, char *labels, const json_t *answer, const void *arg)
{
	const struct operation_putter *putter = arg;
	size_t len = strlen(labels);
	const char *name;
	json_t *op;

	json_object_foreach(json_object_get(answer, "operations"), name, op)
	{
		labels[len] = '\0';
		add_label(labels, "operation", name);
		putter->put(out, labels, op, putter->arg);
	}
}

static void each_operation(FILE *out, const struct observed *seen,
	void (*put)(FILE *out, const char *labels, const json_t *op, const void *arg),
	const void *arg)
{
	const struct operation_putter putter = {put, arg};

	each_answer(out, seen, put_each_operation, &putter);
}

static void put_operation(FILE *out, const char *labels, const json_t *op, const void *arg)
{
	const struct number *n = arg;

	put_sample(out, n->family, "_total", labels, number_of(op, n->path) / n->unit);
}

/* A bucket has all that took no longer than its bound: one for each doubling from 1 µs on, so that
 * their number is the same each time. */
static void put_latency(FILE *out, const char *labels, const json_t *op, const void *arg)
{
	const char *family = arg;
	const json_t *pairs = json_object_get(op, "latency_ns");
	double below = 0;
	size_t i = 0;

	for (double bound = 1024; bound <= 64.0 * NS_PER_S; bound *= 2) {
		char with_bound[LABELS_BYTES], text[32];
		const json_t *pair;

		for (; (pair = json_array_get(pairs, i)) &&
			json_is_integer(json_array_get(pair, 0)) &&
			json_number_value(json_array_get(pair, 0)) <= bound;
			i++)
			below += json_number_value(json_array_get(pair, 1));
		strcpy(with_bound, labels);
		snprintf(text, sizeof(text), "%.9g", bound / NS_PER_S);
		add_label(with_bound, "le", text);
		put_sample(out, family, "_bucket", with_bound, below);
	}
	for (const json_t *pair; (pair = json_array_get(pairs, i)); i++)
		below += json_number_value(json_array_get(pair, 1));
	fprintf(out, "%s_bucket{%s,le=\"+Inf\"} %.16g\n", family, labels, below);
	put_sample(out, family, "_count", labels, below);
	put_sample(out, family, "_sum", labels, number_of(op, "total_ns") / NS_PER_S);
}

static void put_operations(FILE *out, const struct observed *seen)
{
	static const char latency[] = "rmemfs_mount_operation_seconds";

	for (size_t i = 0; i < ARRAY_SIZE(operation_numbers); i++) {
		const struct number *n = &operation_numbers[i];

		put_family(out, n->family, n->type, n->help);
		each_operation(out, seen, put_operation, n);
	}
	put_family(out, latency, "histogram",
		"Time from reading a request of the kernel to its answer.");
	each_operation(out, seen, put_latency, latency);
}

/* ---- server ---------------------------------------------------------------------------------- */

static const struct number server_numbers[] = {
	{"rmemfs_server_seconds", "gauge", "For how long the server has run.", "uptime_ms", 1000},
	{"rmemfs_server_metadata_bytes", "gauge", "Size of the metadata reserve.", "store.bytes",
		1},
	{"rmemfs_server_metadata_used_bytes", "gauge", "Used bytes of the metadata reserve.",
		"store.used", 1},
	{"rmemfs_server_refused", "counter",
		"READs and WRITEs to memory to which their client had no right (any more).",
		"refused", 1},
	{"rmemfs_server_cpu_wait_seconds", "counter",
		"For how long the server's thread has waited for a CPU.", "cpu.total_wait_ms",
		1000},
	{"rmemfs_server_late_seconds", "gauge",
		"How late the server was at most, in the last 10 s, with something that was due.",
		"cpu.late_ms", 1000},
};

static const struct number export_numbers[] = {
	{"rmemfs_export_bytes", "gauge", "Size of an export.", "bytes", 1},
	{"rmemfs_export_used_bytes", "gauge", "Bytes that files have.", "used", 1},
	{"rmemfs_export_free_bytes", "gauge", "Free bytes.", "free", 1},
	{"rmemfs_export_granted_bytes", "gauge", "Free bytes that are lent to mounts.", "granted",
		1},
	{"rmemfs_export_dirty_bytes", "gauge", "Free bytes that are to be cleared first.", "dirty",
		1},
	{"rmemfs_export_files", "gauge", "Inodes.", "files", 1},
	{"rmemfs_export_files_max", "gauge", "The most inodes; 0: no limit.", "max_inodes", 1},
	{"rmemfs_export_lost_regions", "gauge", "Regions that have lost bytes.", "lost_regions", 1},
	{"rmemfs_export_metadata_bytes", "gauge", "The export's share of the metadata reserve.",
		"metadata.bytes", 1},
	{"rmemfs_export_metadata_used_bytes", "gauge", "Used bytes of that share.", "metadata.used",
		1},
	{"rmemfs_export_metadata_left_bytes", "gauge",
		"Metadata that new files can still take; the rest is used or kept.",
		"metadata.left", 1},
	{"rmemfs_export_waiting_leases", "gauge", "Requests that wait for another mount's leases.",
		"leases.waiting", 1},
	{"rmemfs_export_waiting_locks", "gauge", "Requests that wait for locks.",
		"leases.lock_waits", 1},
	{"rmemfs_export_recalls", "counter", "Leases that were asked back.", "leases.recalled", 1},
	{"rmemfs_export_reads", "counter", "One-sided READs that mounts have told of.",
		"counters.reads", 1},
	{"rmemfs_export_writes", "counter", "One-sided WRITEs that mounts have told of.",
		"counters.writes", 1},
	{"rmemfs_export_read_bytes", "counter", "Bytes of these READs.", "counters.read_bytes", 1},
	{"rmemfs_export_write_bytes", "counter", "Bytes of these WRITEs.", "counters.write_bytes",
		1},
	{"rmemfs_export_rpcs", "counter", "Calls that mounts have told of.", "counters.rpcs", 1},
	{"rmemfs_export_snapshot_timestamp_seconds", "gauge",
		"When the last snapshot of this run was completed; 0: there was none.",
		"last_snapshot.completed", 1},
};

static void put_export_number(FILE *out, const json_t *server, const struct number *n)
{
	const json_t *export;
	size_t i;

	put_family(out, n->family, n->type, n->help);
	json_array_foreach(json_object_get(server, "exports"), i, export)
	{
		char labels[LABELS_BYTES] = "";

		add_label(labels, "export", ctl_json_text(export, "name"));
		put_sample(out, n->family, is_counter(n->type) ? "_total" : "", labels,
			number_of(export, n->path) / n->unit);
	}
}

/* A figure of an export, or of the server, that is more than one member of the JSON. */
struct figure {
	const char *family, *type, *help;
	double (*of)(const json_t *server, const json_t *export);
};

static bool is_at(const json_t *session, const json_t *export)
{
	return strcmp(ctl_json_text(session, "export"), ctl_json_text(export, "name")) == 0;
}

static double sessions_of(const json_t *server, const json_t *export)
{
	const json_t *session;
	unsigned n = 0;
	size_t i;

	json_array_foreach(json_object_get(server, "sessions"), i, session)
	{
		n += is_at(session, export);
	}
	return n;
}

static double count_true(const json_t *server, const json_t *export, const char *name)
{
	const json_t *session;
	unsigned n = 0;
	size_t i;

	json_array_foreach(json_object_get(server, "sessions"), i, session)
	{
		n += is_at(session, export) && json_is_true(json_object_get(session, name));
	}
	return n;
}

static double sharing_sessions_of(const json_t *server, const json_t *export)
{
	return count_true(server, export, "shared");
}

static double keep_out_sessions_of(const json_t *server, const json_t *export)
{
	return count_true(server, export, "keeps_out");
}

static double larger(double a, double b)
{
	return a > b ? a : b;
}

static double silence_of(const json_t *server, const json_t *export)
{
	const json_t *session;
	double ms = 0;
	size_t i;

	json_array_foreach(json_object_get(server, "sessions"), i, session)
	{
		if (is_at(session, export))
			ms = larger(ms, number_of(session, "silent_ms"));
	}
	return ms / 1000;
}

static double lease_wait_of(const json_t *server, const json_t *export)
{
	const json_t *file;
	double ms = 0;
	size_t i;

	json_array_foreach(json_object_get(export, "contested"), i, file)
	{
		ms = larger(ms, number_of(file, "ms"));
	}
	return ms / 1000;
}

static double share_of(double used, double limit)
{
	return limit > 0 ? used / limit : 0;
}

static double quota_of(const json_t *server, const json_t *export)
{
	const json_t *quota;
	double most = 0;
	size_t i;

	json_array_foreach(json_object_get(export, "quotas"), i, quota)
	{
		most = larger(most, share_of(number_of(quota, "used"), number_of(quota, "limit")));
		most = larger(
			most, share_of(number_of(quota, "inodes"), number_of(quota, "max_inodes")));
	}
	return most;
}

static double late_recalls_of(const json_t *server, const json_t *export)
{
	const json_t *session;
	double n = 0;
	size_t i;

	json_array_foreach(json_object_get(server, "sessions"), i, session)
	{
		if (is_at(session, export))
			n += number_of(session, "late_recalls.recent");
	}
	return n;
}

static double failed_snapshot_of(const json_t *server, const json_t *export)
{
	return strcmp(ctl_json_text(json_object_get(export, "snapshot"), "state"), "failed") == 0;
}

static const struct figure export_figures[] = {
	{"rmemfs_export_sessions", "gauge", "Mounts that the export has.", sessions_of},
	{"rmemfs_export_sharing_sessions", "gauge", "Those of them that go by leases.",
		sharing_sessions_of},
	{"rmemfs_export_keep_out_sessions", "gauge",
		"Those that have files open that they can't share, while another mount waits.",
		keep_out_sessions_of},
	{"rmemfs_export_silence_seconds", "gauge",
		"For how long the server has not heard the most silent of these mounts.",
		silence_of},
	{"rmemfs_export_lease_wait_seconds", "gauge",
		"How long a request has waited for another mount's lease: the longest time.",
		lease_wait_of},
	{"rmemfs_export_recent_late_recalls", "gauge",
		"How often its mounts gave a file back late, in the last 5 to 10 minutes.",
		late_recalls_of},
	{"rmemfs_export_quota_ratio", "gauge",
		"The part that is used of the fullest quota of a user or group; 0: there is none.",
		quota_of},
	{"rmemfs_export_snapshot_failed", "gauge", "Whether the last snapshot failed.",
		failed_snapshot_of},
};

static void put_export_figure(FILE *out, const json_t *server, const struct figure *figure)
{
	const json_t *export;
	size_t i;

	put_family(out, figure->family, figure->type, figure->help);
	json_array_foreach(json_object_get(server, "exports"), i, export)
	{
		char labels[LABELS_BYTES] = "";

		add_label(labels, "export", ctl_json_text(export, "name"));
		put_sample(out, figure->family, "", labels, figure->of(server, export));
	}
}

static double keys_of(const json_t *server, const json_t *export)
{
	return (double)json_array_size(json_object_get(server, "keys"));
}

static double unused_keys_of(const json_t *server, const json_t *export)
{
	const json_t *key;
	unsigned n = 0;
	size_t i;

	json_array_foreach(json_object_get(server, "keys"), i, key)
	{
		n += health_server_key_is_unused(key);
	}
	return n;
}

static double refused_clients_of(const json_t *server, const json_t *export)
{
	const json_t *refusal;
	double n = 0;
	size_t i;

	json_array_foreach(json_object_get(server, "refused_keys"), i, refusal)
	{
		if (health_waits_is_of_client(server, refusal))
			n += number_of(refusal, "recent");
	}
	return n;
}

static const struct figure server_figures[] = {
	{"rmemfs_server_recent_refused_clients", "gauge",
		"How often a client's key was refused, in the last 5 to 10 minutes.",
		refused_clients_of},
	{"rmemfs_server_keys", "gauge", "Keys that the server has.", keys_of},
	{"rmemfs_server_keys_unused", "gauge",
		"Those that no client has used for 30 days, in this run of the server.",
		unused_keys_of},
};

/* Names of keys are a detail. */
static void put_keys(FILE *out, const struct observed *seen)
{
	static const char family[] = "rmemfs_server_key_unused_seconds";
	const json_t *key;
	size_t i;

	if (!seen->details)
		return;
	put_family(out, family, "gauge", "For how long no client has used the key; 0: one does.");
	json_array_foreach(json_object_get(seen->server, "keys"), i, key)
	{
		char labels[LABELS_BYTES] = "";

		add_label(labels, "key", ctl_json_text(key, "key"));
		put_sample(out, family, "", labels, number_of(key, "unused_ms") / 1000);
	}
}

static void put_server(FILE *out, const struct observed *seen)
{
	if (!seen->server_wanted)
		return;
	put_family(out, "rmemfs_server_up", "gauge", "Whether this machine's server has answered.");
	fprintf(out, "rmemfs_server_up %d\n", seen->server != NULL);
	if (!seen->server)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(server_numbers); i++) {
		const struct number *n = &server_numbers[i];

		put_family(out, n->family, n->type, n->help);
		fprintf(out, "%s%s %.16g\n", n->family, is_counter(n->type) ? "_total" : "",
			number_of(seen->server, n->path) / n->unit);
	}
	for (size_t i = 0; i < ARRAY_SIZE(server_figures); i++) {
		const struct figure *figure = &server_figures[i];

		put_family(out, figure->family, figure->type, figure->help);
		fprintf(out, "%s %.16g\n", figure->family, figure->of(seen->server, NULL));
	}
	put_keys(out, seen);
	for (size_t i = 0; i < ARRAY_SIZE(export_numbers); i++)
		put_export_number(out, seen->server, &export_numbers[i]);
	for (size_t i = 0; i < ARRAY_SIZE(export_figures); i++)
		put_export_figure(out, seen->server, &export_figures[i]);
}

void openmetrics_write(FILE *out, const struct observed *seen)
{
	put_up(out, seen);
	put_mounts(out, seen);
	put_operations(out, seen);
	put_server(out, seen);
	fprintf(out, "# EOF\n");
}
