/* print.c - tables from the JSON of status. A missing value prints as empty or 0. */
#include "daemon/ctl/print.h"

#include <grp.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/conf/conf.h"
#include "daemon/ctl/cpu_text.h"
#include "daemon/ctl/json.h"
#include "daemon/ctl/print_keys.h"

enum { SIZE_CHARS = 32 };

static const char *size_of(const json_t *object, const char *key, char buf[SIZE_CHARS])
{
	size_format(ctl_json_number(object, key), buf, SIZE_CHARS);
	return buf;
}

/* A server that does not tell has stores of the wide kind only. */
static void print_offsets(const json_t *store)
{
	uint64_t bits = ctl_json_number(store, "directory_offset_bits");

	if (bits)
		printf("directory offsets of %" PRIu64 " bits%s\n", bits,
			bits == 31 ? ""
				   : ": the store was made by an earlier version; 32-bit programs "
				     "without large files can't list directories");
}

/* Not in the first seconds. */
static void print_cpu(const json_t *root)
{
	struct cpu_wait_view view;
	char text[CPU_WAIT_TEXT_BYTES];

	if (ctl_cpu_view(root, &view) && view.span_ms >= CPU_WAIT_LEAST_MS)
		printf("cpu: it %s\n", cpu_wait_text(&view, text));
}

/* Not told by a server of the release before. */
static void print_settings(const json_t *root)
{
	const json_t *stop = json_object_get(root, "snapshot_on_stop"), *key;
	const char *dir = ctl_json_text(root, "snapshot_dir");
	size_t i;

	if (json_is_true(stop))
		printf("a stop writes snapshots of all exports%s%s\n", *dir ? " to " : "", dir);
	else if (json_is_false(stop))
		puts("a stop writes no snapshots: files are lost when the machine reboots");
	json_array_foreach(json_object_get(root, "restart_for"), i, key)
		printf("%s has changed, and counts from the server's next start on\n",
			json_string_value(key));
}

static void print_server(const json_t *root)
{
	const json_t *store = json_object_get(root, "store"), *address;
	char used[SIZE_CHARS], bytes[SIZE_CHARS];
	size_t i;

	printf("rmemfs-server %s, pid %" PRIu64 ", up %" PRIu64 " s, incarnation %s\n",
		ctl_json_text(root, "version"), ctl_json_number(root, "pid"),
		ctl_json_number(root, "uptime_ms") / 1000, ctl_json_text(root, "incarnation"));
	printf("memory in %s, store %s, metadata %s of %s\n", ctl_json_text(root, "memory_dir"),
		ctl_json_text(root, "store_id"), size_of(store, "used", used),
		size_of(store, "bytes", bytes));
	print_offsets(store);
	printf("lease_time %" PRIu64 " s\n", ctl_json_number(root, "lease_ms") / 1000);
	print_cpu(root);
	print_settings(root);
	json_array_foreach(json_object_get(root, "listen"), i, address)
		printf("listening on %s\n", json_string_value(address));
}

/* The number there is, and its limit if there is one. */
static const char *count_of(
	const json_t *object, const char *key, const char *limit, char buf[SIZE_CHARS])
{
	uint64_t max = ctl_json_number(object, limit);

	if (max)
		snprintf(
			buf, SIZE_CHARS, "%" PRIu64 "/%" PRIu64, ctl_json_number(object, key), max);
	else
		snprintf(buf, SIZE_CHARS, "%" PRIu64, ctl_json_number(object, key));
	return buf;
}

/* Prints the snapshot on its way, and the last one that this run of the server has completed. */
static void print_snapshots(const json_t *export)
{
	const json_t *now = json_object_get(export, "snapshot");
	const json_t *last = json_object_get(export, "last_snapshot");
	const char *name = ctl_json_text(export, "name"), *state = ctl_json_text(now, "state");
	int64_t at = (int64_t)ctl_json_number(last, "completed");
	char done[SIZE_CHARS], total[SIZE_CHARS], text[CLOCK_TEXT_BYTES];

	if (strcmp(state, "freezing") == 0)
		printf("snapshot of %s: waiting for its client, to %s\n", name,
			ctl_json_text(now, "dir"));
	else if (strcmp(state, "copying") == 0)
		printf("snapshot of %s: %s of %s to %s\n", name, size_of(now, "done", done),
			size_of(now, "total", total), ctl_json_text(now, "dir"));
	else if (strcmp(state, "failed") == 0)
		printf("snapshot of %s: failed, to %s\n", name, ctl_json_text(now, "dir"));
	if (at)
		printf("snapshot of %s: completed %s in %s\n", name, clock_format(at, -1, text),
			ctl_json_text(last, "dir"));
}

static bool shares(const json_t *session)
{
	return json_is_true(json_object_get(session, "shared"));
}

/* Counts the mounts that share the export; NULL: any export. */
static unsigned count_sharers(const json_t *root, const char *export)
{
	const json_t *session;
	unsigned n = 0;
	size_t i;

	json_array_foreach(json_object_get(root, "sessions"), i, session) n +=
		shares(session) && (!export || !strcmp(ctl_json_text(session, "export"), export));
	return n;
}

static void print_sharing(const json_t *root, const json_t *export)
{
	const json_t *n = json_object_get(export, "leases");
	unsigned mounts = count_sharers(root, ctl_json_text(export, "name"));

	if (n && mounts)
		printf("%s is shared by %u mount%s: leases %" PRIu64 " layout, %" PRIu64
		       " shared, %" PRIu64 " exclusive; locks %" PRIu64 "; waiting: %" PRIu64
		       " for leases, %" PRIu64 " for locks\n",
			ctl_json_text(export, "name"), mounts, mounts == 1 ? "" : "s",
			ctl_json_number(n, "layouts"), ctl_json_number(n, "shared"),
			ctl_json_number(n, "exclusive"), ctl_json_number(n, "locks"),
			ctl_json_number(n, "waiting"), ctl_json_number(n, "lock_waits"));
}

static void print_loss(const json_t *export)
{
	uint64_t lost = ctl_json_number(export, "lost_regions");

	if (lost)
		printf("%s has lost memory: %" PRIu64 " of %" PRIu64
		       " regions; the server's log names them\n",
			ctl_json_text(export, "name"), lost, ctl_json_number(export, "regions"));
}

/* An export without a share of its own has all that the server has. */
static void print_share(const json_t *root, const json_t *export)
{
	const json_t *share = json_object_get(export, "metadata");
	uint64_t all = ctl_json_number(json_object_get(root, "store"), "bytes");
	char used[SIZE_CHARS], bytes[SIZE_CHARS];

	if (share && ctl_json_number(share, "bytes") < all)
		printf("%s has %s of %s of metadata\n", ctl_json_text(export, "name"),
			size_of(share, "used", used), size_of(share, "bytes", bytes));
}

static void print_protection(const json_t *export)
{
	const char *wanted = ctl_json_text(export, "protection");

	if (*wanted && strcmp(wanted, "best") != 0)
		printf("protection of %s: %s\n", ctl_json_text(export, "name"), wanted);
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
			dirty[SIZE_CHARS], files[SIZE_CHARS];

		printf("%-20s %10s %10s %10s %10s %10s %8s %7" PRIu64 "\n",
			ctl_json_text(export, "name"), size_of(export, "bytes", size),
			size_of(export, "used", used), size_of(export, "free", unused),
			size_of(export, "granted", granted), size_of(export, "dirty", dirty),
			count_of(export, "files", "max_inodes", files),
			ctl_json_number(export, "regions"));
	}
	json_array_foreach(json_object_get(root, "exports"), i, export) print_loss(export);
	json_array_foreach(json_object_get(root, "exports"), i, export) print_share(root, export);
	json_array_foreach(json_object_get(root, "exports"), i, export) print_protection(export);
	json_array_foreach(json_object_get(root, "exports"), i, export) print_snapshots(export);
	json_array_foreach(json_object_get(root, "exports"), i, export) print_sharing(root, export);
}

static void print_counters(const char *indent, const json_t *n)
{
	char in[SIZE_CHARS], out[SIZE_CHARS];

	printf("%sREADs %" PRIu64 " (%s), WRITEs %" PRIu64 " (%s), RPCs %" PRIu64
	       ", data bytes in RPCs %" PRIu64 "\n",
		indent, ctl_json_number(n, "reads"), size_of(n, "read_bytes", in),
		ctl_json_number(n, "writes"), size_of(n, "write_bytes", out),
		ctl_json_number(n, "rpcs"), ctl_json_number(n, "rpc_data_bytes"));
}

static double seconds_of(const json_t *object, const char *key)
{
	return (double)ctl_json_number(object, key) / 1000;
}

/* ", 8 given back late (2.6 s)" */
static void print_late(const json_t *session)
{
	const json_t *late = json_object_get(session, "late_recalls");

	if (ctl_json_number(late, "count"))
		printf(", %" PRIu64 " given back late (%.1f s at most)",
			ctl_json_number(late, "count"), seconds_of(late, "longest_ms"));
}

static void print_holder(const json_t *session)
{
	const json_t *n = json_object_get(session, "leases");

	printf("  leases %" PRIu64 " layout, %" PRIu64 " shared, %" PRIu64
	       " exclusive; locks %" PRIu64 ", recalls %" PRIu64,
		ctl_json_number(n, "layouts"), ctl_json_number(n, "shared"),
		ctl_json_number(n, "exclusive"), ctl_json_number(n, "locks"),
		ctl_json_number(session, "recalls"));
	print_late(session);
	putchar('\n');
}

/* A session that is to end is in the way of others as long as these processes can reach its memory.
 */
static void print_processes(const json_t *holder)
{
	const json_t *pids = json_object_get(holder, "waits_for"), *pid;
	bool one = json_array_size(pids) == 1;
	size_t i;

	printf("others get what it had when process");
	json_array_foreach(pids, i, pid)
		printf("%s %" JSON_INTEGER_FORMAT, i ? " and" : "", json_integer_value(pid));
	printf(" %s (is it stopped? kill -CONT, or kill -9)",
		one ? "goes on or ends" : "go on or end");
}

static bool has_processes(const json_t *holder)
{
	return json_array_size(json_object_get(holder, "waits_for")) > 0;
}

/* Clients give a sign of life once a second, or more often. */
enum { SILENT_MS = 2000 };

static void print_silence(const json_t *session)
{
	if (ctl_json_number(session, "silent_ms") >= SILENT_MS)
		printf(", silent for %.1f s", seconds_of(session, "silent_ms"));
	if (json_is_true(json_object_get(session, "stopped")))
		printf(", its process is stopped");
	if (ctl_json_number(json_object_get(session, "reconnects"), "count"))
		printf(", connected again %" PRIu64 " times",
			ctl_json_number(json_object_get(session, "reconnects"), "count"));
}

static void print_channel(const json_t *channel)
{
	const char *key = ctl_json_text(channel, "key");

	printf("  channel %" PRIu64 ": %s, %s%s%s%s, protection: %s\n",
		ctl_json_number(channel, "index"), ctl_json_text(channel, "peer"),
		*key ? "key " : "", key, *key ? ", " : "", ctl_json_text(channel, "state"),
		ctl_json_text(channel, "protection"));
}

/* A server that does not tell squashes nobody. */
static void print_squash(const json_t *session)
{
	const json_t *squash = json_object_get(session, "squash");
	bool all = strcmp(ctl_json_text(squash, "kind"), "all") == 0;

	if (all || strcmp(ctl_json_text(squash, "kind"), "root") == 0)
		printf(", %s as %" PRIu64 ":%" PRIu64, all ? "all users count" : "root counts",
			ctl_json_number(squash, "anonuid"), ctl_json_number(squash, "anongid"));
}

/* A mount of an earlier release is to be upgraded before the server's next release. */
static void print_wire(const json_t *session, uint64_t server)
{
	uint64_t version = ctl_json_number(session, "wire_version");

	if (version && version != server)
		printf(", wire protocol %" PRIu64, version);
}

static void print_session(const json_t *session, uint64_t wire)
{
	const json_t *channel;
	size_t i;

	printf("\nSESSION %" PRIu64 " of %s: %s at export %s, %s", ctl_json_number(session, "id"),
		ctl_json_text(session, "holder"), ctl_json_text(session, "client"),
		ctl_json_text(session, "export"), ctl_json_text(session, "state"));
	print_silence(session);
	printf("%s%s%s", json_is_true(json_object_get(session, "read_only")) ? ", read-only" : "",
		json_is_true(json_object_get(session, "exclusive")) ? ", exclusive" : "",
		shares(session) ? ", share" : "");
	if (json_is_true(json_object_get(session, "keeps_out")))
		printf(", keeps another mount out: files are open for writing");
	print_squash(session);
	print_wire(session, wire);
	putchar('\n');
	if (shares(session))
		print_holder(session);
	if (has_processes(session)) {
		printf("  ");
		print_processes(session);
		putchar('\n');
	}
	json_array_foreach(json_object_get(session, "channels"), i, channel) print_channel(channel);
	print_counters("  ", json_object_get(session, "counters"));
}

/* ---- quotas ---------------------------------------------------------------------------------- */

enum { OWNER_CHARS = 64 };

/* The names of this machine, which the clients' need not match. */
static const char *print_owner_of(const json_t *quota, char buf[OWNER_CHARS])
{
	bool is_user = json_object_get(quota, "user");
	uint32_t id = (uint32_t)ctl_json_number(quota, is_user ? "user" : "group");
	const struct passwd *user = is_user ? getpwuid(id) : NULL;
	const struct group *group = is_user ? NULL : getgrgid(id);
	const char *name = user ? user->pw_name : group ? group->gr_name : NULL;

	if (json_is_true(json_object_get(quota, "everybody")))
		snprintf(buf, OWNER_CHARS, "*");
	else if (name)
		snprintf(buf, OWNER_CHARS, "%s", name);
	else
		snprintf(buf, OWNER_CHARS, "%" PRIu32, id);
	return buf;
}

static void print_quota(const char *export, const json_t *quota)
{
	char owner[OWNER_CHARS], used[SIZE_CHARS], reserved[SIZE_CHARS], limit[SIZE_CHARS];
	uint64_t max = ctl_json_number(quota, "max_inodes");

	printf("%-20s %-5s %-16s %10s %10s %10s %10" PRIu64, export,
		json_object_get(quota, "user") ? "user" : "group", print_owner_of(quota, owner),
		size_of(quota, "used", used), size_of(quota, "reserved", reserved),
		ctl_json_number(quota, "limit") ? size_of(quota, "limit", limit) : "-",
		ctl_json_number(quota, "inodes"));
	if (max)
		printf(" %10" PRIu64 "\n", max);
	else
		printf(" %10s\n", "-");
}

static void print_quotas(const json_t *export)
{
	uint64_t unlisted = ctl_json_number(export, "unlisted");
	const json_t *quota;
	size_t i;

	json_array_foreach(json_object_get(export, "quotas"), i, quota)
		print_quota(ctl_json_text(export, "name"), quota);
	if (unlisted)
		printf("%s: %" PRIu64 " more\n", ctl_json_text(export, "name"), unlisted);
}

static bool limits_anybody(const json_t *root)
{
	const json_t *export;
	size_t i;

	json_array_foreach(json_object_get(root, "exports"), i, export)
	{
		if (json_array_size(json_object_get(export, "quotas")))
			return true;
	}
	return false;
}

void ctl_print_quotas(const json_t *root)
{
	const json_t *export;
	size_t i;

	if (!limits_anybody(root)) {
		puts("no export limits anybody");
		return;
	}
	printf("%-20s %-5s %-16s %10s %10s %10s %10s %10s\n", "EXPORT", "OF", "OWNER", "USED",
		"RESERVED", "LIMIT", "INODES", "LIMIT");
	json_array_foreach(json_object_get(root, "exports"), i, export) print_quotas(export);
}

/* ---- leases ---------------------------------------------------------------------------------- */

static void print_sharer(const json_t *session)
{
	const json_t *n = json_object_get(session, "leases");

	printf("%-20s %7" PRIu64 " %7" PRIu64 " %8" PRIu64 " %9" PRIu64 " %8" PRIu64 " %7" PRIu64
	       "  %s",
		ctl_json_text(session, "export"), ctl_json_number(session, "id"),
		ctl_json_number(n, "layouts"), ctl_json_number(n, "shared"),
		ctl_json_number(n, "exclusive"), ctl_json_number(n, "locks"),
		ctl_json_number(session, "recalls"), ctl_json_text(session, "client"));
	print_late(session);
	putchar('\n');
}

static void print_sharers(const json_t *root)
{
	const json_t *session;
	size_t i;

	printf("%-20s %7s %7s %8s %9s %8s %7s  %s\n", "EXPORT", "SESSION", "LAYOUT", "SHARED",
		"EXCLUSIVE", "LOCKS", "RECALLS", "CLIENT");
	json_array_foreach(json_object_get(root, "sessions"), i, session)
	{
		if (shares(session))
			print_sharer(session);
	}
}

static void print_contested(const json_t *export)
{
	const json_t *contested;
	size_t i;

	json_array_foreach(json_object_get(export, "contested"), i, contested)
		printf("%-20s %10" PRIu64 " %-5s %7" PRIu64 " %7" PRIu64 " %7.1fs  %s\n",
			ctl_json_text(export, "name"), ctl_json_number(contested, "inode"), "lease",
			ctl_json_number(contested, "waiting"),
			ctl_json_number(contested, "recalls"), seconds_of(contested, "ms"),
			*ctl_json_text(contested, "path") ? ctl_json_text(contested, "path") : "-");
	json_array_foreach(json_object_get(export, "contested_locks"), i, contested)
		printf("%-20s %10" PRIu64 " %-5s %7" PRIu64 " %7s %7.1fs  -\n",
			ctl_json_text(export, "name"), ctl_json_number(contested, "inode"), "lock",
			ctl_json_number(contested, "waiting"), "-", seconds_of(contested, "ms"));
}

static void print_all_contested(const json_t *root)
{
	const json_t *export;
	size_t i, n = 0;

	json_array_foreach(json_object_get(root, "exports"), i, export)
	{
		n += json_array_size(json_object_get(export, "contested"));
		n += json_array_size(json_object_get(export, "contested_locks"));
	}
	if (!n) {
		puts("\nnobody waits for a lease or a lock");
		return;
	}
	printf("\n%-20s %10s %-5s %7s %7s %8s  %s\n", "EXPORT", "INODE", "FOR", "WAITING",
		"RECALLS", "LONGEST", "PATH");
	json_array_foreach(json_object_get(root, "exports"), i, export) print_contested(export);
}

void ctl_print_leases(const json_t *root)
{
	if (count_sharers(root, NULL)) {
		print_sharers(root);
		print_all_contested(root);
	} else {
		puts("no mount shares an export");
	}
}

/* "session 3, node7:/mnt/rmem (pid 902)" */
static void print_owner(const char *what, const json_t *object)
{
	printf("%s session %" PRIu64 ", %s: ", what, ctl_json_number(object, "session"),
		ctl_json_text(object, "client"));
}

static const char *article_of(const char *lease)
{
	return *lease == 'e' || *lease == 'o' ? "an" : "a";
}

static void print_recall(const json_t *recall)
{
	const char *keep = ctl_json_text(recall, "keep");

	printf("; asked %.1f s ago to give ", seconds_of(recall, "ms"));
	if (strcmp(keep, "none") == 0)
		printf("it back");
	else
		printf("back all but %s %s lease", article_of(keep), keep);
}

/* Prints the event that other clients wait for. */
static void print_end(const json_t *holder, uint64_t lease_ms)
{
	const json_t *recall = json_object_get(holder, "recall");
	const char *state = ctl_json_text(holder, "state");
	uint64_t passed_ms = ctl_json_number(recall, "ms");

	if (has_processes(holder)) {
		printf("; its session is ending: ");
		print_processes(holder);
	} else if (strcmp(state, "active") != 0) {
		printf("; its session is %s", state);
	} else if (json_is_object(recall)) {
		printf(", has %.1f s more",
			passed_ms < lease_ms ? (double)(lease_ms - passed_ms) / 1000 : 0.0);
	}
}

/* The server does not know whether a client with a lease has the file open. */
static void print_holder_of(const json_t *holder, uint64_t lease_ms)
{
	const json_t *recall = json_object_get(holder, "recall");
	const char *lease = ctl_json_text(holder, "lease");
	char text[CLOCK_TEXT_BYTES];

	print_owner("held by", holder);
	if (strcmp(lease, "none") == 0)
		printf("open, without a lease");
	else
		printf("%s lease", lease);
	printf(" since %s", clock_format((int64_t)ctl_json_number(holder, "since"), -1, text));
	if (json_is_object(recall))
		print_recall(recall);
	print_end(holder, lease_ms);
	putchar('\n');
}

static void print_lock_of(const json_t *lock)
{
	printf("%s %s ", ctl_json_text(lock, "kind"), ctl_json_text(lock, "lock"));
	if (strcmp(ctl_json_text(lock, "kind"), "flock") == 0)
		printf("lock");
	else if (ctl_json_number(lock, "end") == INT64_MAX)
		printf("lock from byte %" PRIu64 " on", ctl_json_number(lock, "start"));
	else
		printf("lock of bytes %" PRIu64 " to %" PRIu64, ctl_json_number(lock, "start"),
			ctl_json_number(lock, "end"));
	printf(", process %" PRIu64 "%s", ctl_json_number(lock, "pid"),
		json_is_true(json_object_get(lock, "read_only")) ? ", read-only" : "");
}

static bool has_anybody(const json_t *root)
{
	static const char *const lists[] = {"holders", "waiting", "locks", "lock_waits"};

	for (unsigned i = 0; i < sizeof(lists) / sizeof(*lists); i++)
		if (json_array_size(json_object_get(root, lists[i])))
			return true;
	return false;
}

static void print_nobody(const json_t *root)
{
	if (shares(root))
		puts("nobody has it, and nobody waits for it");
	else
		printf("export %s is not shared: its mounts take no leases\n",
			ctl_json_text(root, "export"));
}

void ctl_print_who(const json_t *root)
{
	const json_t *one;
	size_t i;

	printf("%s%sinode %" PRIu64 " of export %s, %s\n", ctl_json_text(root, "path"),
		*ctl_json_text(root, "path") ? ": " : "", ctl_json_number(root, "inode"),
		ctl_json_text(root, "export"), ctl_json_text(root, "type"));
	if (!has_anybody(root))
		print_nobody(root);
	json_array_foreach(json_object_get(root, "holders"), i, one)
		print_holder_of(one, ctl_json_number(root, "lease_ms"));
	json_array_foreach(json_object_get(root, "waiting"), i, one)
	{
		print_owner("waited for by", one);
		printf("%s, for %s %s lease, for %.1f s\n", ctl_json_text(one, "request"),
			article_of(ctl_json_text(one, "lease")), ctl_json_text(one, "lease"),
			seconds_of(one, "ms"));
	}
	json_array_foreach(json_object_get(root, "locks"), i, one)
	{
		print_owner("locked by", one);
		print_lock_of(one);
		putchar('\n');
	}
	json_array_foreach(json_object_get(root, "lock_waits"), i, one)
	{
		print_owner("to be locked by", one);
		print_lock_of(one);
		printf(", for %.1f s\n", seconds_of(one, "ms"));
	}
}

/* ---- strangers ------------------------------------------------------------------------------- */

bool ctl_is_for_strangers(const json_t *root)
{
	return !json_object_get(root, "exports");
}

void ctl_print_for_strangers(const json_t *root, int64_t round_trip_ns)
{
	printf("rmemfs-server %s, wire version %" PRIu64 ", round trip %.3f ms\n",
		ctl_json_text(root, "version"), ctl_json_number(root, "wire_version"),
		(double)round_trip_ns / 1e6);
	puts("all else it tells by its socket, or to a key: run 'rmemfsctl status' on its machine, "
	     "or with --key FILE");
}

/* ---- all ------------------------------------------------------------------------------------- */

static void print_sessions(const json_t *root)
{
	const json_t *session;
	size_t i;

	json_array_foreach(json_object_get(root, "sessions"), i, session)
		print_session(session, ctl_json_number(root, "wire_version"));
}

bool ctl_is_for_mounts(const json_t *root)
{
	const json_t *export;
	size_t i;

	if (!json_object_get(root, "key"))
		return false;
	json_array_foreach(json_object_get(root, "exports"), i, export)
	{
		if (json_object_get(export, "quotas"))
			return false;
	}
	return true;
}

/* A client that may not see all of the server gets its exports alone. */
static void print_for_client(const json_t *root)
{
	const char *key = ctl_json_text(root, "key");

	printf("rmemfs-server %s, up %" PRIu64 " s\nlease_time %" PRIu64
	       " s\nwhat is to be seen %s%s:\n",
		ctl_json_text(root, "version"), ctl_json_number(root, "uptime_ms") / 1000,
		ctl_json_number(root, "lease_ms") / 1000, *key ? "with key " : "without a key",
		key);
	print_cpu(root);
	print_exports(root);
	print_sessions(root);
}

void ctl_print_status(const json_t *root)
{
	if (json_object_get(root, "key")) {
		print_for_client(root);
		return;
	}
	print_server(root);
	print_exports(root);
	print_sessions(root);
	ctl_print_keys(root);
	print_counters("\nTOTAL ", json_object_get(root, "totals"));
}
