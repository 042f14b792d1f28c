/* fuzz_server_clients.c - any bytes as a server.conf: it is refused, or becomes a table of clients
 * that lets nobody in who proves no key, but where a client is insecure.
 *
 * A byte of an input is itself up to 127, and stands for a word of the file from 128 on. If the
 * first byte is odd, the rest is the list of clients of one export; else it is the whole file. */
#include <assert.h>
#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/base/util.h"
#include "server/access/access.h"
#include "server/access/access_report.h"

enum { TEXT_BYTES = 1 << 16 };

static const char *const words[] = {
	"{ name = \"web\"; keys = \"/k\"; } ",
	"{ name = \"lab\"; keys = \"/l\"; hosts = \"10.0.0.0/24\"; access = \"read-only\"; } ",
	"{ name = \"any\"; insecure = true; hosts = [ \"2001:db8::/32\", \"10.0.0.2\" ]; } ",
	"{ name = \"watch\"; insecure = true; access = \"status\"; sessions = 4; } ",
	", ",
	"{ ",
	"} ",
	"name = \"",
	"keys = \"/",
	"hosts = [ \"",
	"\", \"",
	"\" ]; ",
	"\"; ",
	"access = \"read-write\"; ",
	"sessions = ",
	"insecure = true; ",
	"squash = \"root\"; ",
	"squash = \"all\"; ",
	"anonuid = ",
	"anongid = ",
	"10.0.0.",
	"0/24",
	"::ffff:",
	"/96",
	"::/0",
	" ) } ), local_access = \"none\"; ",
	" ) }, { name = \"b\"; size = 4096; clients = ( ",
	"exports = ( { name = \"a\"; size = 4096; clients = ( ",
};

static FILE *null;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);
const char *__lsan_default_suppressions(void);

/* A leak of libconfig's own, when a syntax error follows a string. */
const char *__lsan_default_suppressions(void)
{
	return "leak:libconfig";
}

/* In the fuzzer's own folder. The files of an input would not be there. */
static const char *const key_files[] = {"a.key", "b.key"};

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	for (size_t i = 0; i < ARRAY_SIZE(key_files); i++) {
		int fd = open(key_files[i], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
		struct auth_key key = {.id = "web-1", .secret = {7}};

		assert(fd >= 0 && auth_key_write(&key, fd) == 0);
		key = (struct auth_key){.id = "own-0", .secret = {(uint8_t)i}};
		key.id[4] = (char)('0' + i);
		assert(auth_key_write(&key, fd) == 0);
		close(fd);
	}
	null = fopen("/dev/null", "w");
	assert(null);
	return 0;
}

/* ---- the file -------------------------------------------------------------------------------- */

static void add(char *text, size_t *len, const char *word)
{
	size_t n = strlen(word);

	if (n < TEXT_BYTES - *len) {
		memcpy(text + *len, word, n);
		*len += n;
	}
}

static size_t write_text(const uint8_t *data, size_t size, char *text)
{
	bool one = data[0] & 1;
	size_t len = 0;

	if (one)
		add(text, &len, "exports = ( { name = \"a\"; size = 4096; clients = ( ");
	for (size_t i = 1; i < size; i++) {
		char byte[2] = {(char)data[i]};

		add(text, &len, data[i] < 128 ? byte : words[data[i] % ARRAY_SIZE(words)]);
	}
	if (one)
		add(text, &len, " ) } )");
	return len;
}

static int read_text(const char *text, size_t len, struct server_config *config)
{
	static const char *const listen[] = {"shm:/none"}; /* no resolver */
	int fd = memfd_create("conf", MFD_CLOEXEC), err;
	char path[64], why[640];

	assert(fd >= 0 && write(fd, text, len) == (ssize_t)len);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	err = server_config_read(config, path, why, sizeof(why));
	close(fd);
	if (!err)
		err = server_config_set_listen(config, listen, 1, why, sizeof(why));
	if (!err)
		err = server_config_finish(config, why, sizeof(why));
	return err;
}

static void set_key_files(struct server_config *config)
{
	size_t n = 0;

	for (size_t i = 0; i < config->exports.n; i++) {
		const struct export_config *export = server_config_export(config, i);
		struct export_client *v = export->clients.v;

		for (size_t j = 0; j < export->clients.n; j++)
			if (v[j].keys) {
				free(v[j].keys);
				v[j].keys = strdup(key_files[n++ % ARRAY_SIZE(key_files)]);
				assert(v[j].keys);
			}
	}
}

/* ---- the table ------------------------------------------------------------------------------- */

static void check_hosts(const struct access_client *client)
{
	char text[HOSTS_TEXT_BYTES], again[HOSTS_TEXT_BYTES], must[256];

	for (size_t i = 0; i < client->nhosts; i++) {
		struct host host;

		hosts_format(&client->hosts[i], text);
		assert(hosts_parse(text, &host, must, sizeof(must)) == 0);
		assert(strcmp(hosts_format(&host, again), text) == 0);
	}
}

static bool has_insecure(const struct access_export *export, enum access_level level)
{
	for (size_t i = 0; i < export->n; i++)
		if (!export->clients[i].file && export->clients[i].level >= level)
			return true;
	return false;
}

static void ask(const struct access_table *table, const struct access_export *export,
	const struct access_peer *peer, enum access_level level)
{
	struct access_wish wish = {export->name, strlen(export->name), level};
	struct access_decision decision;
	int err = access_decide(table, peer, &wish, &decision);
	struct access_terms terms = {decision.holder, decision.squash};
	char reason[256];

	if (err) {
		assert(decision.log[0] && decision.answer[0] && !decision.holder[0]);
		return;
	}
	assert(decision.level >= level && decision.sessions && decision.holder[0]);
	assert(access_still(table, peer, &wish, &terms, reason, sizeof(reason)));
	assert(terms.squash.kind == SQUASH_NONE || (terms.squash.anonuid && terms.squash.anongid));
	if (!peer->proof)
		assert(has_insecure(export, level));
}

static void ask_all(const struct access_table *table, const struct access_export *export)
{
	static const char *const from[] = {"10.0.0.1", "::ffff:10.0.0.2", "2001:db8::1"};
	const struct access_key *key = access_table_key(table, "web-1", 5);
	struct sockaddr_in6 address = {.sin6_family = AF_INET6};
	struct access_peer peer = {
		.kind = TRANSPORT_TCP, .address = (const struct sockaddr *)&address};

	for (size_t i = 0; i < ARRAY_SIZE(from); i++)
		for (enum access_level level = ACCESS_STATUS; level <= ACCESS_READ_WRITE; level++) {
			char mapped[64];

			snprintf(mapped, sizeof(mapped), "%s%s",
				strchr(from[i], ':') ? "" : "::ffff:", from[i]);
			assert(inet_pton(AF_INET6, mapped, &address.sin6_addr) == 1);
			peer.proof = NULL;
			ask(table, export, &peer, level);
			peer.proof = key ? &key->proof : NULL;
			ask(table, export, &peer, level);
		}
}

static void use(const struct server_config *config)
{
	struct access_table *table;
	char why[640];

	if (access_table_new(config, NULL, &table, why, sizeof(why)))
		return;
	for (size_t i = 0; i < table->nexports; i++) {
		for (size_t j = 0; j < table->exports[i].n; j++)
			check_hosts(&table->exports[i].clients[j]);
		ask_all(table, &table->exports[i]);
	}
	access_report_print(table, null);
	access_table_put(table);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char text[TEXT_BYTES];
	struct server_config config;

	if (!size)
		return 0;
	server_config_init(&config);
	if (read_text(text, write_text(data, size, text), &config) == 0) {
		set_key_files(&config);
		use(&config);
	}
	server_config_fini(&config);
	return 0;
}
