/* holder.c - see holder.h. */
#include "tests/unit/driver/holder.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "common/auth/auth_key_file.h"
#include "tests/unit/driver/driver.h"

extern char **environ;

/* ---- the process ----------------------------------------------------------------------------- */

static void take_file(struct rpc_client *c)
{
	struct rpc_request req = {.op = RPC_CREATE,
		.create = {.parent = ROOT_INO,
			.mode = S_IFREG | 0644,
			.want_pages = UINT32_MAX,
			.name = {HOLDER_FILE, sizeof(HOLDER_FILE) - 1}}};
	struct rpc_reply rep;

	assert_int_equal(client_call(c, 0, &req, &rep), 0);
	req = (struct rpc_request){
		.op = RPC_LEASE, .lease = {rep.entry.attr.ino, LEASE_EXCLUSIVE, LEASE_PIN}};
	assert_int_equal(client_call(c, 0, &req, &rep), 0);
}

/* Writes its session's token to standard output when it has all it wants, and holds that until
 * standard input ends. */
int driver_hold(const char *listen, const char *key_file, const char *owner, uint64_t instance,
	uint32_t flags)
{
	static struct test_server server;
	static struct rpc_client client;
	struct transport_address address;
	struct auth_key_file keys = {0};
	char byte = 0, why[256];

	snprintf(server.listen, sizeof(server.listen), "%s", listen);
	server_address(&server, &address);
	server.kind = address.kind;
	if (auth_key_file_read(key_file, &keys, why, sizeof(why)))
		fail_msg("%s", why);
	server.key = keys.v[0];
	auth_key_file_free(&keys);
	client_init(&client, &server, owner, instance);
	client.flags = flags;
	client_begin(&client);
	client_regions(&client);
	if (flags & ATTACH_SHARED && !(flags & ATTACH_READ_ONLY))
		take_file(&client);
	if (write(STDOUT_FILENO, client.attached.token, TOKEN_BYTES) != TOKEN_BYTES ||
		read(STDIN_FILENO, &byte, 1) != 0)
		return 1;
	client_bye(&client);
	client_fini(&client);
	return 0;
}

/* ---- the parent ------------------------------------------------------------------------------ */

/* It runs as a program, since librdmacm forbids fork(2). */
void holder_start(struct holder *h, const struct test_server *server, const char *owner,
	unsigned instance, uint32_t flags)
{
	char number[16], flags_text[16];
	const char *const argv[] = {"/proc/self/exe", "hold", server->listen, server->key_file,
		owner, number, flags_text, NULL};
	posix_spawn_file_actions_t actions;
	int ready[2], go[2];

	snprintf(number, sizeof(number), "%u", instance);
	snprintf(flags_text, sizeof(flags_text), "%u", flags);
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, go[0], STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&actions, ready[1], STDOUT_FILENO);
	assert_int_equal(
		posix_spawn(&h->pid, argv[0], &actions, NULL, (char *const *)argv, environ), 0);
	posix_spawn_file_actions_destroy(&actions);
	close(ready[1]);
	close(go[0]);
	assert_int_equal(read(ready[0], h->token, TOKEN_BYTES), TOKEN_BYTES);
	close(ready[0]);
	h->go = go[1];
}

void holder_wait(const struct holder *h)
{
	int status;

	assert_int_equal(waitpid(h->pid, &status, 0), h->pid);
}

void holder_kill(struct holder *h)
{
	kill(h->pid, SIGKILL);
	holder_wait(h);
	close(h->go);
}
