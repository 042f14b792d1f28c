/* test_make_batch.c - MAKEs of one thread: what is sent at once, what waits, and who is told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>
#include <errno.h>

#include "daemon/file/make_batch.h"
#include "tests/unit/daemon/fs_fixture.h"

enum { FILES = 64, NOT_TOLD = 1 };

struct file {
	struct make_entry entry;
	char name[NAME_BYTES_MAX + 1];
	unsigned nextents;
	bool fails; /* to be filled */
	bool later; /* not with the names of the first message that it is asked for */
	int status;
	unsigned nagain;
};

static struct fs_fixture fx;
static struct make_batch batch;
static struct file files[FILES];
static uint8_t extents[MAKE_BATCH_EXTENTS * RPC_EXTENT_BYTES];
static unsigned nasked, ncame, nbefore, nback;
static enum name_along along;
static int names_status;

static struct rpc_making making_of(const struct file *f)
{
	return (struct rpc_making){
		.make = {.parent = 1,
			.mode = S_IFREG | 0600,
			.name = {f->name, (uint16_t)strlen(f->name)}},
		.commit = {.ino = (uint64_t)(100 + (f - files)),
			.tail = {extents, f->nextents * RPC_EXTENT_BYTES, 0}},
	};
}

static enum make_fill fill(struct make_entry *entry, struct rpc_making *making)
{
	struct file *f = container_of(entry, struct file, entry);

	if (f->later) {
		f->later = false;
		return FILL_LATER;
	}
	*making = making_of(f);
	if (f->fails)
		f->status = -EIO;
	return f->fails ? FILL_ENDED : FILL_TAKEN;
}

static void answered(struct make_entry *entry, int status)
{
	container_of(entry, struct file, entry)->status = status;
}

static void again(struct make_entry *entry)
{
	container_of(entry, struct file, entry)->nagain++;
	make_batch_add(&batch, entry);
}

static uint8_t ask_numbers(struct io_thread *thread)
{
	nasked++;
	return NUMBERS_MORE;
}

static void numbers_came(struct io_thread *thread, const struct rpc_lent *lent)
{
	ncame += lent->n;
}

/* One change of a name, if there is one. */
static enum name_along names_before(
	struct io_thread *thread, struct name_behind *behind, struct wire_out *w)
{
	const struct rpc_name_change change = {1, 9, .name = {"gone", 4}};

	if (along == ALONG_TAKEN)
		rpc_put_name_change(w, &change);
	nbefore++;
	return along;
}

static bool names_answered(struct io_thread *thread, int status, const struct rpc_names_reply *rep)
{
	names_status = status ? status : -(int)rep->refused;
	along = ALONG_NONE;
	return !names_status;
}

static void names_back(struct io_thread *thread)
{
	nback++;
}

static const struct make_hooks hooks = {
	.fill = fill,
	.answered = answered,
	.again = again,
	.names_before = names_before,
	.names_answered = names_answered,
	.names_back = names_back,
	.ask_numbers = ask_numbers,
	.numbers_came = numbers_came,
};

static int setup(void **state)
{
	struct wire_out w;

	if (fs_fixture_init(&fx))
		return -1;
	memset(files, 0, sizeof(files));
	for (unsigned i = 0; i < FILES; i++) {
		snprintf(files[i].name, sizeof(files[i].name), "%u", i);
		files[i].status = NOT_TOLD;
	}
	wire_out_init(&w, extents, sizeof(extents));
	for (unsigned i = 0; i < MAKE_BATCH_EXTENTS; i++)
		rpc_put_extent(&w, &(struct extent){.fpage = 2 * i, .npages = 1, .page = 2 * i});
	make_batch_init(&batch, fx.threads[0], &hooks);
	nasked = ncame = nbefore = nback = 0;
	along = ALONG_NONE;
	names_status = NOT_TOLD;
	return 0;
}

static int teardown(void **state)
{
	fs_fixture_fini(&fx);
	return 0;
}

static void add(unsigned i)
{
	struct rpc_making making = making_of(&files[i]);

	if (make_batch_waits(&batch))
		make_batch_add(&batch, &files[i].entry);
	else
		make_batch_send_one(&batch, &files[i].entry, &making);
}

/* The files of a message on its way: it is a right one. */
static unsigned count_in(unsigned message)
{
	struct make_message *m = &batch.messages[message];
	struct rpc_tail names, made;
	struct rpc_making making;
	struct wire_in r;
	unsigned n = 0;

	if (!m->n)
		return 0;
	rpc_makes_parts(&m->rpc.req.makes, &names, &made);
	assert_int_equal(m->names, names.len != 0);
	r = rpc_tail_reader(&made);
	while (rpc_get_making(&r, &making)) {
		const struct file *f = container_of(m->entries[n], struct file, entry);

		assert_int_equal(making.commit.ino, 100 + (f - files));
		assert_int_equal(making.commit.tail.len, f->nextents * RPC_EXTENT_BYTES);
		n++;
	}
	assert_false(r.truncated);
	assert_int_equal(n, m->n);
	return n;
}

static void answer(unsigned message, struct rpc_reply rep)
{
	struct rpc_call *call = &batch.messages[message].rpc;

	assert_true(rpc_cancel(fx.threads[0], call));
	rep.op = RPC_MAKE;
	call->done(call, &rep);
}

static void answer_all_made(unsigned message)
{
	answer(message, (struct rpc_reply){.makes = {.n = (uint8_t)batch.messages[message].n,
						   .lent = {1000, 1}}});
}

static void one__is_sent_at_once_and_alone(void **state)
{
	add(0);
	assert_int_equal(count_in(0), 1);
	add(1);
	assert_int_equal(count_in(1), 1);
	answer_all_made(0);
	assert_int_equal(files[0].status, 0);
	assert_int_equal(files[1].status, NOT_TOLD);
	answer_all_made(1);
	assert_int_equal(files[1].status, 0);
	assert_int_equal(nasked, 2);
	assert_int_equal(ncame, 2);
}

static void files__that_wait_for_a_message_go_together(void **state)
{
	for (unsigned i = 0; i < 40; i++)
		add(i);
	assert_int_equal(count_in(0), 1);
	assert_int_equal(count_in(1), 1);
	answer_all_made(0);
	assert_int_equal(count_in(0), MAKES_MAX);
	answer_all_made(1);
	assert_int_equal(count_in(1), MAKES_MAX);
	answer_all_made(0);
	assert_int_equal(count_in(0), 40 - 2 - 2 * MAKES_MAX);
	answer_all_made(1);
	answer_all_made(0);
	for (unsigned i = 0; i < 40; i++)
		assert_int_equal(files[i].status, 0);
	assert_int_equal(nasked, 5);
}

static void hold__gathers(void **state)
{
	make_batch_hold(&batch);
	make_batch_hold(&batch);
	for (unsigned i = 0; i < MAKES_MAX + 1; i++)
		add(i);
	make_batch_let_go(&batch);
	assert_int_equal(count_in(0), 0);
	make_batch_let_go(&batch);
	assert_int_equal(count_in(0), MAKES_MAX);
	assert_int_equal(count_in(1), 1);
	answer_all_made(0);
	answer_all_made(1);
}

/* Small files with long names fit all; files of many extents don't. */
static void message__takes_what_fits(void **state)
{
	make_batch_hold(&batch);
	for (unsigned i = 0; i < MAKES_MAX; i++) {
		memset(files[i].name, 'n', NAME_BYTES_MAX);
		files[i].nextents = 1;
		add(i);
	}
	for (unsigned i = MAKES_MAX; i < MAKES_MAX + 5; i++) {
		files[i].nextents = MAKE_BATCH_EXTENTS;
		add(i);
	}
	make_batch_let_go(&batch);
	assert_int_equal(count_in(0), MAKES_MAX);
	assert_int_equal(count_in(1), 3);
	answer_all_made(0);
	assert_int_equal(count_in(0), 2);
	answer_all_made(0);
	answer_all_made(1);
	for (unsigned i = 0; i < MAKES_MAX + 5; i++)
		assert_int_equal(files[i].status, 0);
}

static void each__is_told_its_own_status(void **state)
{
	make_batch_hold(&batch);
	for (unsigned i = 0; i < 4; i++)
		add(i);
	files[1].fails = true;
	make_batch_let_go(&batch);
	assert_int_equal(count_in(0), 3);
	answer(0, (struct rpc_reply){.makes = {.n = 3, .status = {0, -EEXIST, -EAGAIN}}});
	assert_int_equal(files[0].status, 0);
	assert_int_equal(files[1].status, -EIO);
	assert_int_equal(files[2].status, -EEXIST);
	assert_int_equal(files[3].status, NOT_TOLD);
	/* It goes again, and comes first now. */
	assert_int_equal(files[3].nagain, 1);
	assert_int_equal(count_in(0), 1);
	answer(0, (struct rpc_reply){.makes = {.n = 1, .status = {-EAGAIN}}});
	assert_int_equal(files[3].status, -EAGAIN);
	assert_int_equal(count_in(0), 0);
}

/* One of them is the reason. */
static void files__that_were_refused_together_go_alone(void **state)
{
	make_batch_hold(&batch);
	add(0);
	add(1);
	add(2);
	make_batch_let_go(&batch);
	answer(0, (struct rpc_reply){.status = -EIO});
	assert_int_equal(files[0].status, NOT_TOLD);
	assert_int_equal(files[1].status, NOT_TOLD);
	assert_int_equal(ncame, 0);
	/* Others still go together. */
	for (unsigned i = 3; i < 6; i++)
		add(i);
	assert_int_equal(count_in(0), 1);
	assert_int_equal(count_in(1), 1);
	answer_all_made(0);
	answer(1, (struct rpc_reply){.status = -EIO});
	assert_int_equal(count_in(0), 1);
	assert_int_equal(count_in(1), 3);
	answer_all_made(0);
	answer_all_made(1);
	assert_int_equal(files[1].status, -EIO);
	for (unsigned i = 0; i < 6; i++)
		assert_int_equal(files[i].status, i == 1 ? -EIO : 0);
}

static void all__are_told_that_the_session_has_ended(void **state)
{
	make_batch_hold(&batch);
	add(0);
	add(1);
	make_batch_let_go(&batch);
	atomic_store(&fx.session.lost, true);
	answer(0, (struct rpc_reply){.status = -ESTALE});
	assert_int_equal(files[0].status, -ESTALE);
	assert_int_equal(files[1].status, -ESTALE);
}

static void reply__of_too_few_is_an_error(void **state)
{
	make_batch_hold(&batch);
	add(2);
	add(3);
	make_batch_let_go(&batch);
	answer(0, (struct rpc_reply){.makes = {.n = 1}});
	assert_int_equal(files[2].status, 0);
	assert_int_equal(files[3].status, -EPROTO);
}

/* Two files that wait, with names before them. */
static void send_two_behind_names(void)
{
	along = ALONG_TAKEN;
	make_batch_hold(&batch);
	add(0);
	add(1);
	make_batch_let_go(&batch);
	assert_int_equal(count_in(0), 2);
	assert_true(batch.messages[0].names);
}

static void names__go_before_the_files(void **state)
{
	send_two_behind_names();
	answer_all_made(0);
	assert_int_equal(names_status, 0);
	assert_int_equal(files[0].status, 0);
	assert_int_equal(files[1].status, 0);
}

static void names__that_are_refused_leave_the_files_for_the_next_message(void **state)
{
	send_two_behind_names();
	answer(0, (struct rpc_reply){.makes = {.names.refused = ENOENT}});
	assert_int_equal(names_status, -ENOENT);
	assert_int_equal(files[0].status, NOT_TOLD);
	assert_int_equal(files[1].nagain, 1);
	assert_int_equal(count_in(0), 2);
	assert_false(batch.messages[0].names);
	answer_all_made(0);
	assert_int_equal(files[1].status, 0);
}

/* The names may be the reason. */
static void file__that_was_refused_with_names_goes_alone(void **state)
{
	along = ALONG_TAKEN;
	make_batch_hold(&batch);
	add(0);
	make_batch_let_go(&batch);
	answer(0, (struct rpc_reply){.status = -EIO});
	assert_int_equal(names_status, -EIO);
	assert_int_equal(files[0].status, NOT_TOLD);
	assert_int_equal(count_in(0), 1);
	answer(0, (struct rpc_reply){.status = -EIO});
	assert_int_equal(files[0].status, -EIO);
}

static void names__that_cannot_go_along_are_waited_for(void **state)
{
	along = ALONG_BEHIND;
	make_batch_hold(&batch);
	add(0);
	make_batch_let_go(&batch);
	assert_int_equal(count_in(0), 0);
	/* Files that come later wait for the same. */
	assert_true(make_batch_waits(&batch));
	add(1);
	make_batch_hold(&batch);
	make_batch_let_go(&batch);
	assert_int_equal(nbefore, 1);
	along = ALONG_NONE;
	io_thread_call(fx.threads[0], &batch.behind.call);
	fs_fixture_turn(&fx, 0);
	assert_int_equal(count_in(0), 2);
	answer_all_made(0);
	assert_int_equal(files[1].status, 0);
}

static void names__go_back_if_no_file_is_left(void **state)
{
	along = ALONG_TAKEN;
	files[0].fails = true;
	make_batch_hold(&batch);
	add(0);
	make_batch_let_go(&batch);
	assert_int_equal(count_in(0), 0);
	assert_int_equal(nback, 1);
	assert_int_equal(files[0].status, -EIO);
}

/* Names were changed between the choice of a message's names and this file. */
static void file__that_is_behind_later_names_goes_with_the_next_message(void **state)
{
	files[1].later = true;
	make_batch_hold(&batch);
	for (unsigned i = 0; i < 3; i++)
		add(i);
	make_batch_let_go(&batch);
	assert_int_equal(nbefore, 2);
	assert_int_equal(count_in(0), 1);
	assert_int_equal(count_in(1), 2);
	assert_ptr_equal(batch.messages[1].entries[0], &files[1].entry);
	answer_all_made(0);
	answer_all_made(1);
	/* No file is left to go with them. */
	along = ALONG_TAKEN;
	files[3].later = true;
	make_batch_hold(&batch);
	add(3);
	make_batch_let_go(&batch);
	assert_int_equal(nback, 1);
	assert_int_equal(count_in(0), 1);
	answer_all_made(0);
	assert_int_equal(files[3].status, 0);
}

/* Its lock is held when it is added. */
static void file__with_names_before_it_is_sent_in_the_next_turn(void **state)
{
	along = ALONG_TAKEN;
	make_batch_add(&batch, &files[0].entry);
	make_batch_add(&batch, &files[1].entry);
	assert_int_equal(count_in(0), 0);
	fs_fixture_turn(&fx, 0);
	assert_int_equal(count_in(0), 2);
	answer_all_made(0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(one__is_sent_at_once_and_alone, setup, teardown),
		cmocka_unit_test_setup_teardown(
			files__that_wait_for_a_message_go_together, setup, teardown),
		cmocka_unit_test_setup_teardown(hold__gathers, setup, teardown),
		cmocka_unit_test_setup_teardown(message__takes_what_fits, setup, teardown),
		cmocka_unit_test_setup_teardown(each__is_told_its_own_status, setup, teardown),
		cmocka_unit_test_setup_teardown(
			files__that_were_refused_together_go_alone, setup, teardown),
		cmocka_unit_test_setup_teardown(
			all__are_told_that_the_session_has_ended, setup, teardown),
		cmocka_unit_test_setup_teardown(reply__of_too_few_is_an_error, setup, teardown),
		cmocka_unit_test_setup_teardown(names__go_before_the_files, setup, teardown),
		cmocka_unit_test_setup_teardown(
			names__that_are_refused_leave_the_files_for_the_next_message, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			file__that_was_refused_with_names_goes_alone, setup, teardown),
		cmocka_unit_test_setup_teardown(
			names__that_cannot_go_along_are_waited_for, setup, teardown),
		cmocka_unit_test_setup_teardown(names__go_back_if_no_file_is_left, setup, teardown),
		cmocka_unit_test_setup_teardown(
			file__that_is_behind_later_names_goes_with_the_next_message, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			file__with_names_before_it_is_sent_in_the_next_turn, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
