/* The decision: may this peer do that at this export? */
#include "tests/unit/server/access_fixture.h"

#include <arpa/inet.h>

#include "server/access/access.h"

/* Names of clients say what they may do. Keys are named by their files. */
static const char conf[] =
	"exports = ("
	"{ name = \"data\"; size = 4096; clients = ("
	"  { name = \"web\"; keys = \"@/web.key\"; hosts = [ \"10.0.0.0/24\", \"2001:db8::/32\" ] },"
	"  { name = \"backup\"; keys = \"@/backup.key\"; access = \"read-only\"; sessions = 4 },"
	"  { name = \"watch\"; keys = \"@/watch.key\"; access = \"status\" },"
	"  { name = \"guest\"; insecure = true; hosts = \"10.5.0.0/16\"; squash = \"all\";"
	"    anonuid = 7; anongid = 8 } ) },"
	"{ name = \"lab\"; size = 4096; clients = ("
	"  { name = \"near\"; keys = \"@/web.key\"; hosts = \"10.0.0.0/24\"; access = \"read-only\";"
	"    squash = \"root\" },"
	"  { name = \"far\"; keys = \"@/web.key\"; access = \"status\" },"
	"  { name = \"none\"; keys = \"@/web.key\" } ) },"
	"{ name = \"open\"; size = 4096; clients = ("
	"  { name = \"anybody\"; insecure = true; hosts = \"10.9.0.2\"; access = \"read-only\" },"
	"  { name = \"web\"; keys = \"@/web.key\"; hosts = [ \"10.0.0.1\", \"10.9.0.2\" ] } ) },"
	"{ name = \"shown\"; size = 4096; clients = ("
	"  { name = \"lan\"; insecure = true; hosts = \"10.9.0.0/24\"; access = \"status\" },"
	"  { name = \"web\"; keys = \"@/web.key\" } ) },"
	"{ name = \"empty\"; size = 4096 } );";

static struct access_table *table;
static struct access_decision decision;

static int make_keys(void **state)
{
	if (access_make_dir(state))
		return -1;
	access_add_key("web.key", "web-1", 1);
	access_add_key("web.key", "web-2", 2);
	access_add_key("backup.key", "backup-1", 3);
	access_add_key("watch.key", "watch-1", 4);
	table = access_table_of(conf);
	return 0;
}

static int free_keys(void **state)
{
	access_table_put(table);
	return access_remove_dir(state);
}

/* ---- peers ----------------------------------------------------------------------------------- */

static struct sockaddr_storage address;
static struct access_proof proof;

/* A peer over tcp; key NULL: it has proven none. */
static struct access_peer peer_at(const char *from, const char *key)
{
	struct access_peer peer = {
		.kind = TRANSPORT_TCP, .address = (const struct sockaddr *)&address};
	struct sockaddr_in *in = (void *)&address;
	struct sockaddr_in6 *in6 = (void *)&address;

	memset(&address, 0, sizeof(address));
	address.ss_family = strchr(from, ':') ? AF_INET6 : AF_INET;
	assert_int_equal(inet_pton(address.ss_family, from,
				 strchr(from, ':') ? (void *)&in6->sin6_addr : &in->sin_addr),
		1);
	if (key) {
		proof = access_table_key(table, key, strlen(key))->proof;
		peer.proof = &proof;
	}
	return peer;
}

static struct access_wish wish_for(const char *export, enum access_level level)
{
	return (struct access_wish){export, strlen(export), level};
}

static int decide(const char *from, const char *key, const char *export, enum access_level level)
{
	struct access_peer peer = peer_at(from, key);
	struct access_wish wish = wish_for(export, level);

	return access_decide(table, &peer, &wish, &decision);
}

static int decide_local(const struct access_table *t, const char *export, enum access_level level)
{
	struct access_peer peer = {.kind = TRANSPORT_SHM};
	struct access_wish wish = wish_for(export, level);

	return access_decide(t, &peer, &wish, &decision);
}

static void assert_holder(const char *holder, enum access_level level, unsigned sessions)
{
	assert_string_equal(decision.holder, holder);
	assert_int_equal(decision.level, level);
	assert_int_equal(decision.sessions, sessions);
	assert_string_equal(decision.log, "");
	assert_string_equal(decision.answer, "");
}

/* ---- with a key ------------------------------------------------------------------------------ */

static void decide__each_key_of_a_file_is_its_clients(void **state)
{
	assert_int_equal(decide("10.0.0.9", "web-1", "data", ACCESS_READ_WRITE), 0);
	assert_holder("web", ACCESS_READ_WRITE, 256);
	assert_int_equal(decide("2001:db8::9", "web-2", "data", ACCESS_READ_ONLY), 0);
	assert_holder("web", ACCESS_READ_WRITE, 256);
	assert_int_equal(decide("::ffff:10.0.0.9", "web-1", "data", ACCESS_STATUS), 0);
	assert_holder("web", ACCESS_READ_WRITE, 256);
}

static void decide__verbs_is_as_tcp(void **state)
{
	struct access_peer peer = peer_at("10.0.0.9", "web-1");
	struct access_wish wish = wish_for("data", ACCESS_READ_WRITE);

	peer.kind = TRANSPORT_VERBS;
	assert_int_equal(access_decide(table, &peer, &wish, &decision), 0);
	assert_holder("web", ACCESS_READ_WRITE, 256);
	peer.address = NULL;
	assert_int_equal(access_decide(table, &peer, &wish, &decision), -EACCES);
}

static void decide__less_than_the_wish_is_refused_and_explained(void **state)
{
	assert_int_equal(decide("10.7.7.7", "backup-1", "data", ACCESS_READ_ONLY), 0);
	assert_holder("backup", ACCESS_READ_ONLY, 4);
	assert_int_equal(decide("10.7.7.7", "backup-1", "data", ACCESS_STATUS), 0);
	assert_int_equal(decide("10.7.7.7", "backup-1", "data", ACCESS_READ_WRITE), -EROFS);
	assert_string_equal(
		decision.answer, "key backup-1 may only read export 'data': mount it with ro");
	assert_string_equal(decision.log, decision.answer);
	assert_int_equal(decide("10.7.7.7", "watch-1", "data", ACCESS_STATUS), 0);
	assert_holder("watch", ACCESS_STATUS, 256);
	assert_int_equal(decide("10.7.7.7", "watch-1", "data", ACCESS_READ_ONLY), -EACCES);
	assert_string_equal(
		decision.answer, "key watch-1 may only ask for the state of export 'data'");
	assert_int_equal(decide("10.7.7.7", "watch-1", "data", ACCESS_READ_WRITE), -EACCES);
}

static void decide__first_client_with_the_key_and_the_address_counts(void **state)
{
	assert_int_equal(decide("10.0.0.9", "web-1", "lab", ACCESS_READ_ONLY), 0);
	assert_holder("near", ACCESS_READ_ONLY, 256);
	assert_int_equal(decide("10.0.0.9", "web-1", "lab", ACCESS_READ_WRITE), -EROFS);
	assert_int_equal(decide("10.0.1.9", "web-1", "lab", ACCESS_STATUS), 0);
	assert_holder("far", ACCESS_STATUS, 256);
	assert_int_equal(decide("10.0.1.9", "web-1", "lab", ACCESS_READ_ONLY), -EACCES);
}

/* ---- squash ---------------------------------------------------------------------------------- */

static void assert_squash(enum squash_kind kind, uint32_t anonuid, uint32_t anongid)
{
	assert_int_equal(decision.squash.kind, kind);
	assert_int_equal(decision.squash.anonuid, anonuid);
	assert_int_equal(decision.squash.anongid, anongid);
}

static void decide__squash_is_the_clients(void **state)
{
	assert_int_equal(decide("10.0.0.9", "web-1", "data", ACCESS_READ_WRITE), 0);
	assert_squash(SQUASH_NONE, 0, 0);
	assert_int_equal(decide("10.0.0.9", "web-1", "lab", ACCESS_READ_ONLY), 0);
	assert_squash(SQUASH_ROOT, 65534, 65534);
	assert_int_equal(decide("10.5.7.7", NULL, "data", ACCESS_READ_WRITE), 0);
	assert_squash(SQUASH_ALL, 7, 8);
	/* Root and the server's user could change the files without a mount. */
	assert_int_equal(decide_local(table, "lab", ACCESS_READ_WRITE), 0);
	assert_squash(SQUASH_NONE, 0, 0);
}

/* ---- what a refused peer may learn ------------------------------------------------------------*/

/* The answer with the export's name taken out. */
static const char *answer_about(const char *export)
{
	static char text[2][sizeof(decision.answer)];
	static int turn;
	char *at, name[80];

	turn = !turn;
	snprintf(text[turn], sizeof(text[turn]), "%s", decision.answer);
	snprintf(name, sizeof(name), "'%s'", export);
	at = strstr(text[turn], name);
	assert_non_null(at);
	memmove(at, at + strlen(name), strlen(at + strlen(name)) + 1);
	return text[turn];
}

static void decide__key_learns_nothing_of_other_exports(void **state)
{
	static const struct {
		const char *from, *key, *export, *log;
	} cases[] = {
		{"10.0.0.9", "web-1", "nowhere", "there is no export 'nowhere'"},
		{"10.7.7.7", "web-1", "data",
			"key web-1 is not for export 'data' from this address: it is not in hosts of "
			"client web"},
		{"10.0.0.9", "web-1", "empty",
			"export 'empty' has no clients: make a key (rmemfsctl keygen) and name its "
			"file in clients, or make a client insecure"},
		{"10.7.7.7", "web-1", "open",
			"key web-1 is not for export 'open' from this address: it is not in hosts of "
			"client web"},
	};

	for (enum access_level level = ACCESS_STATUS; level <= ACCESS_READ_WRITE; level++)
		for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
			assert_int_equal(
				decide(cases[i].from, cases[i].key, cases[i].export, level),
				-EACCES);
			assert_string_equal(decision.log, cases[i].log);
			assert_string_equal(
				answer_about(cases[i].export), "key web-1 has no export  here");
			assert_string_equal(decision.holder, "");
			assert_int_equal(decision.level, ACCESS_NONE);
		}
	assert_int_equal(decide("10.0.0.9", "backup-1", "lab", ACCESS_READ_ONLY), -EACCES);
	assert_string_equal(decision.log,
		"key backup-1 is not for export 'lab': no client of it has a file with this key");
	assert_string_equal(answer_about("lab"), "key backup-1 has no export  here");
}

static void decide__stranger_learns_no_export(void **state)
{
	static const struct {
		const char *export, *log;
	} cases[] = {
		{"nowhere", "there is no export 'nowhere'"},
		{"data", "it has no key, and its address is not in hosts of client guest, which "
			 "export 'data' lets in without one"},
		{"lab", "it has no key, and export 'lab' lets nobody in without one: mount it "
			"with a client's key (key=FILE)"},
		{"empty",
			"export 'empty' has no clients: make a key (rmemfsctl keygen) and name its "
			"file in clients, or make a client insecure"},
		{"open", "it has no key, and its address is not in hosts of client anybody, which "
			 "export 'open' lets in without one"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(
			decide("10.0.0.9", NULL, cases[i].export, ACCESS_READ_WRITE), -EACCES);
		assert_string_equal(decision.log, cases[i].log);
		assert_string_equal(answer_about(cases[i].export),
			"nobody gets export  here without a key: have one made on the server "
			"(rmemfsctl keygen) and mount with key=FILE, or have a client made insecure "
			"there");
	}
}

/* A peer's bytes end no line and steer no terminal. */
static void decide__any_bytes_as_a_name(void **state)
{
	struct access_peer peer = peer_at("10.0.0.9", "web-1");
	char name[300];
	struct access_wish wish = {name, sizeof(name), ACCESS_READ_WRITE};

	memset(name, '\n', sizeof(name));
	assert_int_equal(access_decide(table, &peer, &wish, &decision), -EACCES);
	assert_null(strchr(decision.answer, '\n'));
	assert_null(strchr(decision.log, '\n'));
	assert_non_null(strstr(decision.answer, "'?????"));
	wish = (struct access_wish){"data\0", 5, ACCESS_READ_WRITE};
	assert_int_equal(access_decide(table, &peer, &wish, &decision), -EACCES);
	wish = (struct access_wish){"", 0, ACCESS_READ_WRITE};
	assert_int_equal(access_decide(table, &peer, &wish, &decision), -EACCES);
	/* No NUL behind it. */
	wish = (struct access_wish){"datax", 4, ACCESS_READ_WRITE};
	assert_int_equal(access_decide(table, &peer, &wish, &decision), 0);
}

/* ---- without a key --------------------------------------------------------------------------- */

static void decide__insecure_client(void **state)
{
	assert_int_equal(decide("10.9.0.2", NULL, "open", ACCESS_READ_ONLY), 0);
	assert_holder("anybody", ACCESS_READ_ONLY, 256);
	assert_int_equal(decide("10.9.0.2", NULL, "open", ACCESS_READ_WRITE), -EROFS);
	assert_string_equal(decision.answer,
		"a client without a key may only read export 'open': mount it with ro");
}

/* The insecure client stands first. */
static void decide__insecure_client_takes_nothing_from_a_key(void **state)
{
	assert_int_equal(decide("10.9.0.2", "web-1", "open", ACCESS_READ_WRITE), 0);
	assert_holder("web", ACCESS_READ_WRITE, 256);
	/* A key of no client here is no worse than none. */
	assert_int_equal(decide("10.9.0.2", "backup-1", "open", ACCESS_READ_ONLY), 0);
	assert_holder("anybody", ACCESS_READ_ONLY, 256);
	assert_int_equal(decide("10.0.0.2", "backup-1", "open", ACCESS_READ_ONLY), -EACCES);
}

/* ---- protection ------------------------------------------------------------------------------ */

#define SEALED(wanted)                                                             \
	"exports = ( { name = \"data\"; size = 4096; protection = \"" wanted "\";" \
	"clients = ({ name = \"web\"; keys = \"@/web.key\" }) } )"

static int decide_on(const char *text, const char *key, const char *export,
	enum transport_kind kind, enum channel_protection protection)
{
	struct access_table *t = access_table_of(text);
	struct access_peer peer = peer_at("10.0.0.9", key);
	struct access_wish wish = wish_for(export, ACCESS_READ_ONLY);
	int err;

	peer.kind = kind;
	peer.protection = protection;
	err = access_decide(t, &peer, &wish, &decision);
	access_table_put(t);
	return err;
}

static void decide__channel_that_protects_too_little(void **state)
{
	static const struct {
		const char *text;
		enum transport_kind kind;
		enum channel_protection protection;
		int err;
	} cases[] = {
		{SEALED("best"), TRANSPORT_TCP, CHANNEL_ALL, 0},
		{SEALED("best"), TRANSPORT_VERBS, CHANNEL_MESSAGES, 0},
		{SEALED("all"), TRANSPORT_TCP, CHANNEL_ALL, 0},
		{SEALED("all"), TRANSPORT_VERBS, CHANNEL_MESSAGES, -EPROTONOSUPPORT},
		{SEALED("all"), TRANSPORT_TCP, CHANNEL_PLAIN, -EPROTONOSUPPORT},
		{SEALED("all"), TRANSPORT_SHM, CHANNEL_LOCAL, 0},
		{SEALED("all"), TRANSPORT_TCP, CHANNEL_MESSAGES, -EPROTONOSUPPORT},
		{SEALED("best"), TRANSPORT_TCP, CHANNEL_MESSAGES, -EPROTONOSUPPORT},
		{SEALED("messages"), TRANSPORT_TCP, CHANNEL_MESSAGES, 0},
		{SEALED("messages"), TRANSPORT_TCP, CHANNEL_ALL, 0},
		{SEALED("messages"), TRANSPORT_VERBS, CHANNEL_MESSAGES, 0},
		{SEALED("messages"), TRANSPORT_TCP, CHANNEL_PLAIN, -EPROTONOSUPPORT},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(decide_on(cases[i].text, "web-1", "data", cases[i].kind,
					 cases[i].protection),
			cases[i].err);
	decide_on(SEALED("all"), "web-1", "data", TRANSPORT_VERBS, CHANNEL_MESSAGES);
	assert_string_equal(decision.answer,
		"export 'data' has protection = \"all\", and verbs protects messages alone: mount "
		"it with transport=tcp, or with transport=auto, which takes tcp then");
	assert_string_equal(decision.log, decision.answer);
	assert_string_equal(decision.holder, "");
}

/* A peer that would not be let in gets the same answer as everywhere. */
static void decide__demand_is_told_to_nobody_else(void **state)
{
	assert_int_equal(
		decide_on(SEALED("all"), "backup-1", "data", TRANSPORT_VERBS, CHANNEL_MESSAGES),
		-EACCES);
	assert_string_equal(answer_about("data"), "key backup-1 has no export  here");
	assert_int_equal(
		decide_on(SEALED("all"), NULL, "data", TRANSPORT_VERBS, CHANNEL_PLAIN), -EACCES);
}

static void still__ends_where_more_is_demanded(void **state)
{
	struct access_table *t = access_table_of(SEALED("all"));
	struct access_peer peer = peer_at("10.0.0.9", "web-1");
	struct access_wish wish = wish_for("data", ACCESS_READ_ONLY);
	char reason[256];

	peer.kind = TRANSPORT_VERBS;
	peer.protection = CHANNEL_MESSAGES;
	assert_false(access_still(
		t, &peer, &wish, &(struct access_terms){.holder = "web"}, reason, sizeof(reason)));
	assert_non_null(strstr(reason, "protection = \"all\""));
	access_table_put(t);
}

/* ---- shm ------------------------------------------------------------------------------------- */

static void decide__local(void **state)
{
	static const struct {
		const char *text;
		int status, read_only, read_write;
	} cases[] = {
		{"read-write", 0, 0, 0},
		{"read-only", 0, 0, -EROFS},
		{"none", 0, -EACCES, -EACCES},
	};
	char text[512];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct access_table *t;

		snprintf(text, sizeof(text),
			"local_access = \"%s\"; exports = ( { name = \"a\"; size = 4096 } )",
			cases[i].text);
		t = access_table_of(text);
		assert_int_equal(decide_local(t, "a", ACCESS_STATUS), cases[i].status);
		assert_holder("local", i < 2 ? ACCESS_READ_WRITE - i : ACCESS_STATUS, 256);
		assert_int_equal(decide_local(t, "a", ACCESS_READ_ONLY), cases[i].read_only);
		assert_int_equal(decide_local(t, "a", ACCESS_READ_WRITE), cases[i].read_write);
		assert_int_equal(decide_local(t, "b", ACCESS_STATUS), -ENOENT);
		assert_string_equal(decision.answer, "there is no export 'b'");
		access_table_put(t);
	}
}

/* Neither a key nor an insecure client gives more than local_access. */
static void decide__local_goes_by_local_access_alone(void **state)
{
	struct access_table *t = access_table_of(
		"local_access = \"none\"; exports = ( { name = \"a\"; size = 4096; clients = ("
		"{ name = \"web\"; keys = \"@/web.key\" }, { name = \"any\"; insecure = true } ) } )");
	struct access_peer peer = peer_at("10.0.0.1", "web-1");
	struct access_wish wish = wish_for("a", ACCESS_READ_ONLY);

	peer.kind = TRANSPORT_SHM;
	assert_int_equal(access_decide(t, &peer, &wish, &decision), -EACCES);
	assert_string_equal(
		decision.answer, "export 'a' can't be mounted over shm: local_access is \"none\"");
	access_table_put(t);
}

/* ---- reload ---------------------------------------------------------------------------------- */

#define DATA(clients) "exports = ( { name = \"data\"; size = 4096; clients = (" clients ") } )"
#define WEB           "name = \"web\"; keys = \"@/web.key\""

/* Whether web, over tcp from 10.0.0.9 with key web-1, may go on under another configuration. */
static bool still(const char *text, enum access_level level, char *reason)
{
	struct access_table *t = access_table_of(text);
	struct access_peer peer = peer_at("10.0.0.9", "web-1");
	struct access_wish wish = wish_for("data", level);
	struct access_terms terms = {.holder = "web"};
	bool may = access_still(t, &peer, &wish, &terms, reason, 256);

	access_table_put(t);
	return may;
}

static void still__what_is_left_goes_on(void **state)
{
	char reason[256] = "untouched";

	assert_true(still(conf, ACCESS_READ_WRITE, reason));
	assert_true(still(DATA("{" WEB "; access = \"read-only\"; sessions = 1 }"),
		ACCESS_READ_ONLY, reason));
	assert_true(still(
		DATA("{ name = \"all\"; insecure = true }, {" WEB "}"), ACCESS_READ_WRITE, reason));
	/* The key came into another file of the same holder. */
	access_add_key("moved.key", "web-1", 1);
	assert_true(still(
		DATA("{ name = \"web\"; keys = \"@/moved.key\" }"), ACCESS_READ_WRITE, reason));
	assert_string_equal(reason, "untouched");
}

static void still__what_was_taken_ends(void **state)
{
	static const struct {
		const char *text, *reason;
	} cases[] = {
		{DATA("{ name = \"web\"; keys = \"@/backup.key\" }"),
			"key web-1 is no longer here, or has other bytes now"},
		{DATA("{ name = \"web\"; keys = \"@/backup.key\" }, { name = \"a\"; insecure = true }"),
			"key web-1 is no longer here, or has other bytes now"},
		{DATA("{ name = \"web\"; keys = \"@/changed.key\" }"),
			"key web-1 is no longer here, or has other bytes now"},
		{DATA("{" WEB "; hosts = \"10.0.0.8\" }"),
			"key web-1 is not for export 'data' from this address: it is not in hosts of "
			"client web"},
		{DATA("{" WEB "; access = \"read-only\" }"),
			"key web-1 may only read export 'data': mount it with ro"},
		{DATA("{ name = \"www\"; keys = \"@/web.key\" }"),
			"it was let in as client web, and is client www now"},
		{"exports = ( { name = \"other\"; size = 4096; clients = ({" WEB "}) } )",
			"there is no export 'data'"},
	};
	char reason[256];

	access_add_key("changed.key", "web-1", 9);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_false(still(cases[i].text, ACCESS_READ_WRITE, reason));
		assert_string_equal(reason, cases[i].reason);
	}
}

static void still__insecure_and_local(void **state)
{
	struct access_table *closed = access_table_of(DATA("{" WEB "}") "local_access = \"none\"");
	struct access_peer peer = peer_at("10.9.0.2", NULL);
	struct access_wish wish = wish_for("open", ACCESS_READ_ONLY);
	const struct access_terms anybody = {.holder = "anybody"}, local = {.holder = "local"};
	char reason[256];

	assert_true(access_still(table, &peer, &wish, &anybody, reason, sizeof(reason)));
	wish = wish_for("data", ACCESS_READ_ONLY);
	assert_false(access_still(closed, &peer, &wish, &anybody, reason, sizeof(reason)));
	peer = (struct access_peer){.kind = TRANSPORT_SHM};
	assert_true(access_still(table, &peer, &wish, &local, reason, sizeof(reason)));
	assert_false(access_still(closed, &peer, &wish, &local, reason, sizeof(reason)));
	access_table_put(closed);
}

/* A client that goes on would not learn it, and checks its users by the former one. */
static void still__squashed_in_another_way_ends(void **state)
{
	static const struct {
		const char *text;
		struct squash squash;
		bool goes_on;
	} cases[] = {
		{DATA("{" WEB "}"), {SQUASH_NONE, 0, 0}, true},
		{DATA("{" WEB "; squash = \"none\" }"), {SQUASH_NONE, 0, 0}, true},
		{DATA("{" WEB "; squash = \"root\" }"), {SQUASH_ROOT, 65534, 65534}, true},
		{DATA("{" WEB "; squash = \"root\" }"), {SQUASH_NONE, 0, 0}, false},
		{DATA("{" WEB "}"), {SQUASH_ROOT, 65534, 65534}, false},
		{DATA("{" WEB "; squash = \"all\" }"), {SQUASH_ROOT, 65534, 65534}, false},
		{DATA("{" WEB "; squash = \"root\"; anonuid = 7 }"), {SQUASH_ROOT, 65534, 65534},
			false},
		{DATA("{" WEB "; squash = \"root\"; anongid = 7 }"), {SQUASH_ROOT, 65534, 65534},
			false},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct access_table *t = access_table_of(cases[i].text);
		struct access_peer peer = peer_at("10.0.0.9", "web-1");
		struct access_wish wish = wish_for("data", ACCESS_READ_WRITE);
		struct access_terms terms = {"web", cases[i].squash};
		char reason[256] = "untouched";

		assert_int_equal(access_still(t, &peer, &wish, &terms, reason, sizeof(reason)),
			cases[i].goes_on);
		assert_string_equal(reason,
			cases[i].goes_on ? "untouched"
					 : "squash, anonuid or anongid of client web has changed");
		access_table_put(t);
	}
}

/* ---- the state ------------------------------------------------------------------------------- */

static char holder[CLIENT_NAME_MAX + 1];

static enum access_view view(const char *from, const char *key, const char *export)
{
	struct access_peer peer = peer_at(from, key);

	holder[0] = '\0';
	return access_view(table, &peer, export, holder);
}

static void view__key_sees_its_own_and_a_watching_one_all(void **state)
{
	assert_int_equal(view("10.0.0.9", "web-1", "data"), ACCESS_SEES_OWN);
	assert_string_equal(holder, "web");
	assert_int_equal(view("10.7.7.7", "backup-1", "data"), ACCESS_SEES_OWN);
	assert_string_equal(holder, "backup");
	assert_int_equal(view("10.7.7.7", "watch-1", "data"), ACCESS_SEES_ALL);
	assert_int_equal(view("10.0.0.9", "web-1", "lab"), ACCESS_SEES_OWN);
	assert_string_equal(holder, "near");
	assert_int_equal(view("10.0.1.9", "web-1", "lab"), ACCESS_SEES_ALL);
}

static void view__others_see_nothing(void **state)
{
	assert_int_equal(view("10.0.0.9", NULL, "data"), ACCESS_SEES_NOTHING);
	assert_int_equal(view("10.7.7.7", "web-1", "data"), ACCESS_SEES_NOTHING);
	assert_int_equal(view("10.7.7.7", "watch-1", "lab"), ACCESS_SEES_NOTHING);
	assert_int_equal(view("10.7.7.7", "watch-1", "empty"), ACCESS_SEES_NOTHING);
	assert_int_equal(view("10.7.7.7", "watch-1", "nowhere"), ACCESS_SEES_NOTHING);
	peer_at("10.7.7.7", "watch-1");
	memset(proof.fingerprint, '0', sizeof(proof.fingerprint) - 1);
	assert_int_equal(access_view(table,
				 &(struct access_peer){.kind = TRANSPORT_TCP,
					 .address = (const struct sockaddr *)&address,
					 .proof = &proof},
				 "data", holder),
		ACCESS_SEES_NOTHING);
}

/* Only what is insecure and for the state alone is shown to anybody. */
static void view__insecure(void **state)
{
	assert_int_equal(view("10.9.0.7", NULL, "shown"), ACCESS_SEES_ALL);
	assert_int_equal(view("10.9.0.7", "backup-1", "shown"), ACCESS_SEES_ALL);
	assert_int_equal(view("10.9.1.7", NULL, "shown"), ACCESS_SEES_NOTHING);
	assert_int_equal(view("10.9.0.7", "web-1", "shown"), ACCESS_SEES_OWN);
	assert_int_equal(view("10.9.0.2", NULL, "open"), ACCESS_SEES_NOTHING);
}

static void view__local(void **state)
{
	const struct access_peer peer = {.kind = TRANSPORT_SHM};

	assert_int_equal(access_view(table, &peer, "data", holder), ACCESS_SEES_ALL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(decide__each_key_of_a_file_is_its_clients),
		cmocka_unit_test(decide__verbs_is_as_tcp),
		cmocka_unit_test(decide__less_than_the_wish_is_refused_and_explained),
		cmocka_unit_test(decide__first_client_with_the_key_and_the_address_counts),
		cmocka_unit_test(decide__squash_is_the_clients),
		cmocka_unit_test(decide__key_learns_nothing_of_other_exports),
		cmocka_unit_test(decide__stranger_learns_no_export),
		cmocka_unit_test(decide__any_bytes_as_a_name),
		cmocka_unit_test(decide__insecure_client),
		cmocka_unit_test(decide__insecure_client_takes_nothing_from_a_key),
		cmocka_unit_test(decide__channel_that_protects_too_little),
		cmocka_unit_test(decide__demand_is_told_to_nobody_else),
		cmocka_unit_test(still__ends_where_more_is_demanded),
		cmocka_unit_test(decide__local),
		cmocka_unit_test(decide__local_goes_by_local_access_alone),
		cmocka_unit_test(still__what_is_left_goes_on),
		cmocka_unit_test(still__what_was_taken_ends),
		cmocka_unit_test(still__insecure_and_local),
		cmocka_unit_test(still__squashed_in_another_way_ends),
		cmocka_unit_test(view__key_sees_its_own_and_a_watching_one_all),
		cmocka_unit_test(view__others_see_nothing),
		cmocka_unit_test(view__insecure),
		cmocka_unit_test(view__local),
	};

	return cmocka_run_group_tests(tests, make_keys, free_keys);
}
