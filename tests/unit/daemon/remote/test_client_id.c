/* test_client_id.c - a mount's identity: the names are the kernel's, and are really held. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "daemon/remote/client_id.h"

/* Used by this process alone, since the names are shared by the whole machine. */
static char place[64];

static void owner_take__same_id_after_the_one_before_is_gone(void **state)
{
	struct owner a, b;

	client_id_take(&a, place);
	assert_int_equal(a.number, 1);
	client_id_release(&a);
	client_id_release(&a);
	client_id_take(&b, place);
	assert_int_equal(b.number, 1);
	assert_memory_equal(a.id, b.id, OWNER_BYTES);
	client_id_release(&b);
}

static void owner_take__another_id_beside_one_that_lives(void **state)
{
	struct owner a, b, c;

	client_id_take(&a, place);
	client_id_take(&b, place);
	client_id_take(&c, place);
	assert_int_equal(b.number, 2);
	assert_int_equal(c.number, 3);
	assert_memory_not_equal(a.id, b.id, OWNER_BYTES);
	assert_memory_not_equal(b.id, c.id, OWNER_BYTES);
	client_id_release(&b);
	client_id_take(&b, place);
	assert_int_equal(b.number, 2);
	client_id_release(&a);
	client_id_release(&b);
	client_id_release(&c);
}

static void owner_take__another_id_at_another_place(void **state)
{
	struct owner a, b;

	client_id_take(&a, place);
	client_id_take(&b, "/nowhere/else");
	assert_int_equal(b.number, 1);
	assert_memory_not_equal(a.id, b.id, OWNER_BYTES);
	client_id_release(&a);
	client_id_release(&b);
}

/* Writes its id to the pipe, and holds it until it is killed. */
_Noreturn static void hold(int out)
{
	struct owner owner;

	client_id_take(&owner, place);
	if (write(out, owner.id, OWNER_BYTES) == OWNER_BYTES)
		pause();
	_exit(1);
}

static void owner_take__successor_of_a_killed_process_has_its_id(void **state)
{
	uint8_t id[OWNER_BYTES];
	struct owner beside, next;
	int fds[2];
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	if (!pid)
		hold(fds[1]);
	assert_int_equal(read(fds[0], id, OWNER_BYTES), OWNER_BYTES);
	client_id_take(&beside, place);
	assert_int_equal(beside.number, 2);
	assert_false(client_id_take_lower(&beside, place));
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	client_id_take(&next, place);
	assert_memory_equal(next.id, id, OWNER_BYTES);
	client_id_release(&next);
	assert_true(client_id_take_lower(&beside, place));
	assert_int_equal(beside.number, 1);
	assert_memory_equal(beside.id, id, OWNER_BYTES);
	/* And the other name is free. */
	client_id_take(&next, place);
	assert_int_equal(next.number, 2);
	client_id_release(&next);
	client_id_release(&beside);
	close(fds[0]);
	close(fds[1]);
}

/* All names are held: a mount still works. */
static void owner_take__all_names_taken(void **state)
{
	struct owner all[64], a, b;
	unsigned n = 0;

	client_id_take(&all[n], place);
	for (n = 1; n < 63; n++) {
		all[n] = (struct owner){.number = 0, .fd = -1};
		assert_true(client_id_take_lower(&all[n], place));
		assert_int_equal(all[n].number, n + 1);
	}
	client_id_take(&a, place);
	client_id_take(&b, place);
	assert_int_equal(a.number, 0);
	assert_memory_not_equal(a.id, b.id, OWNER_BYTES);
	while (n)
		client_id_release(&all[--n]);
	assert_true(client_id_take_lower(&a, place));
	assert_int_equal(a.number, 1);
	client_id_release(&a);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(owner_take__same_id_after_the_one_before_is_gone),
		cmocka_unit_test(owner_take__another_id_beside_one_that_lives),
		cmocka_unit_test(owner_take__another_id_at_another_place),
		cmocka_unit_test(owner_take__successor_of_a_killed_process_has_its_id),
		cmocka_unit_test(owner_take__all_names_taken),
	};

	snprintf(place, sizeof(place), "/test/owner/%d", (int)getpid());
	return cmocka_run_group_tests(tests, NULL, NULL);
}
