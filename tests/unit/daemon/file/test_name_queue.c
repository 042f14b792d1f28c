/* Names that this client has taken away: one order, one message at a time, and what comes behind.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>

#include "daemon/file/commit.h"
#include "daemon/file/last_resort.h"
#include "daemon/file/name_queue.h"
#include "daemon/ops/ops.h"
#include "tests/unit/daemon/fs_fixture.h"

enum { PARENT = 60, OTHER = 61, FIRST_INO = 1000 };

static struct fs_fixture fx;
static struct name_queue *r;
static bool in_use;
static unsigned nsettled, nrefused;
static int refused_by, went, nwent;

static bool gives_up_locked(struct inode *inode)
{
	return !in_use;
}

static void settle(struct inode *inode, struct io_thread *thread)
{
	assert_null(inode->queued);
	nsettled++;
}

static void refused(struct inode *inode, const struct name_change *one, int status)
{
	refused_by = status;
	nrefused++;
}

static const struct name_hooks hooks = {gives_up_locked, settle, refused};

static int setup(void **state)
{
	if (fs_fixture_init(&fx))
		return -1;
	fx.fs.sharing = fx.session.sharing = false;
	r = fx.fs.name_queue;
	r->hooks = &hooks;
	in_use = false;
	nsettled = nrefused = 0;
	refused_by = went = nwent = 0;
	return 0;
}

static int teardown(void **state)
{
	fs_fixture_fini(&fx);
	return 0;
}

static void take_away(uint64_t ino, uint64_t parent, const char *name)
{
	struct inode *inode = inode_get(&fx.fs, ino), *dir = inode_get(&fx.fs, parent);
	struct name_change *one = name_change_new(inode, dir, name, 5);

	assert_non_null(one);
	pthread_mutex_lock(&inode->lock);
	name_queue_add_locked(r, one);
	pthread_mutex_unlock(&inode->lock);
	name_queue_added(r, fx.threads[0]);
	inode_put(inode);
	inode_put(dir);
}

static void take_some(unsigned n)
{
	static unsigned ino = FIRST_INO;
	char name[16];

	for (unsigned i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "%u", i);
		take_away(ino++, PARENT, name);
	}
}

/* The call that is to be sent next by thread 0; NULL: none. */
static struct rpc_call *next_call(void)
{
	struct remote *at = &fx.remotes[0];
	struct list *from[] = {
		&at->rpc_waiting_reserved, &at->rpc_waiting_nested, &at->rpc_waiting};

	for (unsigned i = 0; i < ARRAY_SIZE(from); i++)
		if (!list_empty(from[i]))
			return list_entry(from[i]->next, struct rpc_call, link);
	return NULL;
}

/* The names of the message that is sent: "a b+", with + for an inode that is kept. "": none. */
static const char *told(void)
{
	static char text[4096];
	const struct rpc_call *call = next_call();
	struct rpc_name_change removal;
	struct wire_in in;
	size_t at = 0;

	text[0] = '\0';
	if (!call || call->req.op != RPC_NAMES)
		return text;
	in = rpc_tail_reader(&call->req.names.tail);
	while (rpc_get_name_change(&in, &removal))
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%.*s%s", at ? " " : "",
			removal.name.len, removal.name.s, removal.keep ? "+" : "");
	return text;
}

static void end_call(const struct rpc_reply *rep)
{
	struct rpc_call *call = next_call();

	assert_non_null(call);
	assert_int_equal(call->req.op, rep->op);
	assert_true(rpc_cancel(fx.threads[0], call));
	call->done(call, rep);
	fs_fixture_turn(&fx, 0);
}

static void answer(uint16_t done, uint32_t refusal)
{
	end_call(&(struct rpc_reply){.op = RPC_NAMES, .names = {done, refusal}});
}

static void refuse_all(int status)
{
	end_call(&(struct rpc_reply){.op = RPC_NAMES, .status = status});
}

static void answered(struct request *req, const struct rpc_reply *rep)
{
	went = rep->status;
	nwent++;
}

static struct request *begin(void)
{
	struct request *req = fs_fixture_make(&fx, 0, 0, OP_GETATTR);

	op_of(req)->inode = fx.inode;
	return req;
}

static struct request *ask(uint16_t op, uint64_t dir, const char *name)
{
	struct request *req = begin();

	op_of(req)->call.req = (struct rpc_request){.op = op};
	if (op == RPC_READDIR)
		op_of(req)->call.req.readdir.ino = dir;
	else
		op_of(req)->call.req.name =
			(struct rpc_name_request){.parent = dir, .name = op_name(name)};
	op_rpc(req, answered);
	return req;
}

/* Whether the request was sent at once. */
static bool goes(uint16_t op, uint64_t dir, const char *name)
{
	struct request *req = ask(op, dir, name);
	bool at_once = op_of(req)->wait == OP_AT_RPC;

	if (at_once)
		assert_true(rpc_cancel(fx.threads[0], &op_of(req)->call));
	else
		assert_true(op_cancel(req, -EINTR));
	return at_once;
}

static void name_queue__are_queued_until_they_are_wanted(void **state)
{
	take_away(10, PARENT, "a");
	take_away(11, OTHER, "b");
	assert_string_equal(told(), "");
	name_queue_flush(r, fx.threads[0]);
	assert_string_equal(told(), "a b");
	/* One message at a time: this one comes behind. */
	take_away(12, PARENT, "c");
	name_queue_flush(r, fx.threads[0]);
	answer(2, 0);
	assert_int_equal(nsettled, 2);
	assert_string_equal(told(), "c");
	answer(1, 0);
	assert_string_equal(told(), "");
	assert_false(name_queue_any(r));
	assert_int_equal(nrefused, 0);
}

static void name_queue__as_many_as_a_message_takes_are_sent(void **state)
{
	take_some(NAME_MESSAGE - 1);
	assert_null(next_call());
	take_some(1);
	assert_non_null(next_call());
	take_some(NAME_QUEUE - 1);
	assert_true(name_queue_has_room(r));
	take_some(1);
	assert_false(name_queue_has_room(r));
	for (unsigned i = 0; i < NAME_QUEUE / NAME_MESSAGE + 1; i++)
		answer(NAME_MESSAGE, 0);
	assert_false(name_queue_any(r));
	assert_null(next_call());
}

static void name_queue__long_names_fill_more_messages(void **state)
{
	char name[NAME_BYTES_MAX + 1];
	unsigned n = 0;

	memset(name, 'n', sizeof(name));
	name[NAME_BYTES_MAX] = '\0';
	for (unsigned i = 0; i < NAME_MESSAGE; i++)
		take_away(FIRST_INO + i, PARENT, name);
	while (name_queue_any(r)) {
		struct rpc_call *call = next_call();
		uint64_t len = call->req.names.tail.len;

		assert_true(len && len <= NAME_TAIL_BYTES);
		answer((uint16_t)(len / rpc_name_change_bytes(NAME_REMOVE, NAME_BYTES_MAX, 0)), 0);
		name_queue_flush(r, fx.threads[0]);
		n++;
	}
	assert_int_equal(nsettled, NAME_MESSAGE);
	assert_true(n > 1);
}

static void name_queue__one_in_use_is_kept(void **state)
{
	take_away(10, PARENT, "a");
	in_use = true;
	name_queue_flush(r, fx.threads[0]);
	assert_string_equal(told(), "a+");
	answer(1, 0);
}

/* The others are not held up. */
static void name_queue__what_the_server_refuses_is_told(void **state)
{
	take_away(10, PARENT, "a");
	take_away(11, PARENT, "b");
	take_away(12, PARENT, "c");
	name_queue_flush(r, fx.threads[0]);
	answer(1, ESTALE);
	assert_int_equal(nrefused, 1);
	assert_int_equal(refused_by, -ESTALE);
	assert_string_equal(told(), "c");
	answer(1, 0);
	assert_false(name_queue_any(r));
	assert_int_equal(nsettled, 3);
}

static void name_queue__a_message_that_is_refused_is_tried_in_parts(void **state)
{
	take_away(10, PARENT, "a");
	take_away(11, PARENT, "b");
	take_away(12, PARENT, "c");
	name_queue_flush(r, fx.threads[0]);
	refuse_all(-EIO);
	assert_string_equal(told(), "a");
	answer(1, 0);
	assert_string_equal(told(), "b");
	refuse_all(-EIO);
	assert_int_equal(nrefused, 1);
	assert_string_equal(told(), "c");
	answer(1, 0);
	/* Later ones go together again. */
	take_away(13, PARENT, "d");
	take_away(14, PARENT, "e");
	name_queue_flush(r, fx.threads[0]);
	assert_string_equal(told(), "d e");
	answer(2, 0);
}

/* The store has room for one only, or a hostile server tells of none. */
static void name_queue__what_is_left_is_sent_again(void **state)
{
	take_away(10, PARENT, "a");
	take_away(11, PARENT, "b");
	name_queue_flush(r, fx.threads[0]);
	answer(1, 0);
	assert_string_equal(told(), "b");
	answer(0, 0);
	assert_int_equal(refused_by, -EPROTO);
	assert_false(name_queue_any(r));
	take_away(10, PARENT, "a");
	name_queue_flush(r, fx.threads[0]);
	answer(7, EIO);
	assert_false(name_queue_any(r));
	assert_int_equal(nrefused, 1);
}

static void name_queue__all_end_with_the_session(void **state)
{
	take_away(10, PARENT, "a");
	take_away(11, PARENT, "b");
	name_queue_flush(r, fx.threads[0]);
	ask(RPC_RMDIR, OTHER, "other");
	fx.session.lost = true;
	refuse_all(-ESTALE);
	assert_int_equal(nrefused, 2);
	assert_false(name_queue_any(r));
	/* It came behind them. */
	assert_null(next_call());
	assert_int_equal(nwent, 1);
	assert_int_equal(went, -ESTALE);
}

/* Another one may be begun, so those who wait do not hear ESTALE. */
static void name_queue__one_whose_session_has_ended_is_told_as_EIO(void **state)
{
	take_away(10, PARENT, "a");
	name_queue_flush(r, fx.threads[0]);
	ask(RPC_RMDIR, OTHER, "other");
	atomic_store(&fx.session.ended, true);
	refuse_all(-ESTALE);
	assert_int_equal(refused_by, -EIO);
	assert_int_equal(went, -EIO);
}

static void request__that_changes_something_comes_behind_all(void **state)
{
	struct request *req;

	take_away(10, PARENT, "a");
	req = ask(RPC_RMDIR, OTHER, "other");
	assert_int_equal(op_of(req)->wait, OP_AT_NAMES);
	assert_string_equal(told(), "a");
	/* It does not wait for those that come later. */
	take_away(11, PARENT, "b");
	answer(1, 0);
	assert_int_equal(next_call()->req.op, RPC_RMDIR);
	end_call(&(struct rpc_reply){.op = RPC_RMDIR, .status = -ENOTEMPTY});
	assert_int_equal(went, -ENOTEMPTY);
	assert_int_equal(nwent, 1);
}

static void request__that_reads_waits_for_its_names_alone(void **state)
{
	take_away(10, PARENT, "a");
	assert_true(goes(RPC_LOOKUP, PARENT, "b"));
	assert_true(goes(RPC_LOOKUP, OTHER, "a"));
	assert_true(goes(RPC_READDIR, OTHER, NULL));
	assert_true(goes(RPC_STATFS, 0, ""));
	assert_null(next_call());
	assert_false(goes(RPC_LOOKUP, PARENT, "a"));
	assert_false(goes(RPC_READDIR, PARENT, NULL));
	assert_false(goes(RPC_UNLINK, OTHER, "b"));
	answer(1, 0);
	assert_null(next_call());
	assert_true(goes(RPC_READDIR, PARENT, NULL));
}

static void change_file(void)
{
	pthread_mutex_lock(&fx.inode->lock);
	fx.inode->commit.times_dirty = true;
	commit_dirty_locked(fx.inode, fx.threads[0]);
	pthread_mutex_unlock(&fx.inode->lock);
}

static void set(uint64_t ino, uint32_t mode)
{
	struct inode *dir = inode_get(&fx.fs, ino);
	struct name_change *one = name_change_new_set(dir, NULL, 5);

	assert_non_null(one);
	one->valid = SET_MODE;
	one->mode = mode;
	pthread_mutex_lock(&dir->lock);
	name_queue_add_locked(r, one);
	pthread_mutex_unlock(&dir->lock);
	name_queue_added(r, fx.threads[0]);
	inode_put(dir);
}

/* Its names don't depend on its attributes. */
static void request__that_reads_waits_for_attributes_of_its_directory(void **state)
{
	set(PARENT, 0700);
	assert_true(goes(RPC_LOOKUP, PARENT, "a"));
	assert_true(goes(RPC_LOOKUP, OTHER, "a"));
	assert_true(goes(RPC_READDIR, OTHER, NULL));
	assert_null(next_call());
	assert_false(goes(RPC_READDIR, PARENT, NULL));
	assert_false(goes(RPC_UNLINK, OTHER, "b"));
	answer(1, 0);
	assert_true(goes(RPC_READDIR, PARENT, NULL));
	assert_int_equal(nsettled, 0);
}

static void sets__are_counted_and_go_in_their_order(void **state)
{
	struct inode *dir = inode_get(&fx.fs, PARENT);
	struct rpc_name_change change;
	struct wire_in in;

	set(PARENT, 0700);
	set(PARENT, 0711);
	take_away(PARENT, OTHER, "a");
	assert_int_equal(dir->nsets, 2);
	assert_int_equal(dir->queued->kind, NAME_REMOVE);
	name_queue_flush(r, fx.threads[0]);
	in = rpc_tail_reader(&next_call()->req.names.tail);
	for (unsigned i = 0; i < 2; i++) {
		assert_true(rpc_get_name_change(&in, &change));
		assert_int_equal(change.kind, NAME_SET);
		assert_int_equal(change.ino, PARENT);
		assert_int_equal(change.mode, i ? 0711 : 0700);
	}
	assert_true(rpc_get_name_change(&in, &change));
	assert_int_equal(change.kind, NAME_REMOVE);
	assert_false(rpc_get_name_change(&in, &change));
	answer(1, EIO);
	assert_int_equal(dir->nsets, 0);
	assert_int_equal(nrefused, 1);
	assert_non_null(dir->queued);
	answer(1, 0);
	assert_int_equal(nsettled, 1);
	inode_put(dir);
}

/* Closed data counts as part of the order. */
static void commit__comes_behind(void **state)
{
	int status;

	change_file();
	take_away(10, PARENT, "a");
	commit_start(fx.inode, fx.threads[0]);
	assert_true(fx.inode->commit.running);
	assert_false(commit_wait(begin(), fx.inode, &status, NULL));
	fs_fixture_turn(&fx, 0);
	assert_string_equal(told(), "a");
	answer(1, 0);
	assert_int_equal(next_call()->req.op, RPC_COMMIT);
	assert_int_equal(fs_thread_of(fx.threads[0])->nbackground, 1);
}

/* It tells the file as it is when it is sent. */
static void commit__comes_behind_names_from_before_a_change(void **state)
{
	change_file();
	take_away(10, PARENT, "a");
	commit_start(fx.inode, fx.threads[0]);
	fs_fixture_turn(&fx, 0);
	take_away(11, PARENT, "b");
	change_file();
	answer(1, 0);
	fs_fixture_turn(&fx, 0);
	assert_true(fx.inode->commit.running);
	assert_string_equal(told(), "b");
	answer(1, 0);
	assert_int_equal(next_call()->req.op, RPC_COMMIT);
	assert_int_equal(fs_thread_of(fx.threads[0])->nbackground, 1);
}

/* Nothing of it is newer than those that it has waited for. */
static void commit__does_not_wait_for_later_names(void **state)
{
	change_file();
	take_away(10, PARENT, "a");
	commit_start(fx.inode, fx.threads[0]);
	fs_fixture_turn(&fx, 0);
	take_away(11, PARENT, "b");
	answer(1, 0);
	assert_int_equal(next_call()->req.op, RPC_COMMIT);
	assert_true(name_queue_has_room(r));
}

/* Programs that change names and the file all the time do not hold it up. */
static void commit__lets_no_names_in_when_it_waits_again(void **state)
{
	change_file();
	take_away(10, PARENT, "a");
	commit_start(fx.inode, fx.threads[0]);
	fs_fixture_turn(&fx, 0);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(name_queue_has_room(r), i == 0);
		take_away(11 + i, PARENT, "late");
		change_file();
		answer(1, 0);
		fs_fixture_turn(&fx, 0);
	}
	assert_false(name_queue_has_room(r));
	answer(1, 0);
	assert_int_equal(next_call()->req.op, RPC_COMMIT);
	assert_true(name_queue_has_room(r));
}

static struct name_behind behind;
static uint8_t along_bytes[RPC_MSG_BYTES];
static unsigned nwoken;

static void woken(struct thread_call *call)
{
	nwoken++;
}

static enum name_along go_along(size_t *len)
{
	enum name_along along;
	struct wire_out w;

	behind.call = (struct thread_call){.run = woken};
	list_init(&behind.call.link);
	nwoken = 0;
	wire_out_init(&w, along_bytes, sizeof(along_bytes));
	along = name_queue_go_along(r, &behind, fx.threads[0], &w);
	*len = wire_out_len(&w);
	return along;
}

static void along__takes_all_and_tells_what_became_of_them(void **state)
{
	const struct rpc_names_reply done = {.done = 3};
	size_t len;

	assert_int_equal(go_along(&len), ALONG_NONE);
	take_some(3);
	assert_int_equal(go_along(&len), ALONG_TAKEN);
	assert_true(len > 0);
	assert_string_equal(told(), "");
	/* Others wait for them. */
	assert_false(goes(RPC_MKNOD, OTHER, "new"));
	assert_true(name_queue_along_answered(r, 0, &done));
	fs_fixture_turn(&fx, 0);
	assert_int_equal(nsettled, 3);
	assert_false(name_queue_any(r));
	assert_int_equal(nwent, 1);
}

static void along__what_is_left_is_sent_again(void **state)
{
	const struct rpc_names_reply some = {.done = 1}, refusal = {.refused = EIO};
	size_t len;

	take_some(3);
	assert_int_equal(go_along(&len), ALONG_TAKEN);
	assert_false(name_queue_along_answered(r, 0, &some));
	assert_string_equal(told(), "1 2");
	answer(2, 0);
	take_some(2);
	assert_int_equal(go_along(&len), ALONG_TAKEN);
	assert_false(name_queue_along_answered(r, 0, &refusal));
	assert_int_equal(refused_by, -EIO);
	assert_string_equal(told(), "1");
	answer(1, 0);
	take_some(1);
	assert_int_equal(go_along(&len), ALONG_TAKEN);
	name_queue_along_back(r);
	assert_string_equal(told(), "0");
	answer(1, 0);
}

/* A file may be the reason. */
static void along__a_message_that_is_refused_is_tried_without_files(void **state)
{
	const struct rpc_names_reply none = {0};
	size_t len;

	take_some(1);
	assert_int_equal(go_along(&len), ALONG_TAKEN);
	assert_false(name_queue_along_answered(r, -EIO, &none));
	assert_int_equal(nrefused, 0);
	assert_string_equal(told(), "0");
	assert_int_equal(go_along(&len), ALONG_BEHIND);
	answer(1, 0);
	assert_int_equal(nwoken, 1);
	assert_int_equal(nrefused, 0);
}

static void along__is_behind_one_on_its_way_and_more_than_fit(void **state)
{
	char name[NAME_BYTES_MAX + 1] = "";
	size_t len;

	take_some(2);
	name_queue_flush(r, fx.threads[0]);
	assert_int_equal(go_along(&len), ALONG_BEHIND);
	assert_int_equal(len, 0);
	answer(2, 0);
	assert_int_equal(nwoken, 1);
	memset(name, 'n', NAME_BYTES_MAX);
	for (unsigned i = 0; i < 30; i++)
		take_away(FIRST_INO + 5000 + i, PARENT, name);
	assert_int_equal(go_along(&len), ALONG_BEHIND);
	fs_fixture_turn(&fx, 0);
	answer(30, 0);
	assert_int_equal(nwoken, 1);
}

static void along__knows_later_ones(void **state)
{
	const struct rpc_names_reply done = {.done = 1};
	size_t len;

	assert_int_equal(go_along(&len), ALONG_NONE);
	assert_false(name_queue_has_later(r, &behind));
	take_some(1);
	assert_true(name_queue_has_later(r, &behind));
	assert_int_equal(go_along(&len), ALONG_TAKEN);
	assert_false(name_queue_has_later(r, &behind));
	take_some(1);
	assert_true(name_queue_has_later(r, &behind));
	assert_true(name_queue_along_answered(r, 0, &done));
	name_queue_flush(r, fx.threads[0]);
	assert_true(name_queue_has_later(r, &behind));
	answer(1, 0);
	assert_false(name_queue_has_later(r, &behind));
}

static void along__lets_no_names_in_when_it_waits_again(void **state)
{
	size_t len;

	take_some(1);
	name_queue_flush(r, fx.threads[0]);
	assert_int_equal(go_along(&len), ALONG_BEHIND);
	assert_true(name_queue_has_room(r));
	take_some(1);
	answer(1, 0);
	assert_int_equal(nwoken, 1);
	name_queue_flush(r, fx.threads[0]);
	assert_int_equal(go_along(&len), ALONG_BEHIND);
	assert_false(name_queue_has_room(r));
	answer(1, 0);
	assert_int_equal(nwoken, 1);
	/* It does not have to ask again: its files may have been forgotten. */
	assert_true(name_queue_has_room(r));
	assert_int_equal(go_along(&len), ALONG_NONE);
}

/* The message may be refused: then its files wait again, and names are not to overtake them for
 * ever. */
static void along__that_took_names_is_one_that_waits_again(void **state)
{
	const struct rpc_names_reply none_done = {.refused = ENOSPC};
	size_t len;

	take_some(1);
	name_queue_flush(r, fx.threads[0]);
	assert_int_equal(go_along(&len), ALONG_BEHIND);
	take_some(1);
	answer(1, 0);
	assert_int_equal(go_along(&len), ALONG_TAKEN);
	name_queue_along_answered(r, 0, &none_done);
	take_some(1);
	name_queue_flush(r, fx.threads[0]);
	assert_int_equal(go_along(&len), ALONG_BEHIND);
	assert_false(name_queue_has_room(r));
	answer(1, 0);
	assert_true(name_queue_has_room(r));
}

static void tick__is_through_when_all_are_answered(void **state)
{
	assert_true(commit_tick(fx.threads[0]));
	take_away(10, PARENT, "a");
	assert_false(commit_tick(fx.threads[0]));
	assert_false(commit_tick(fx.threads[1]));
	answer(1, 0);
	assert_true(commit_tick(fx.threads[0]));
	assert_true(commit_tick(fx.threads[1]));
}

static void fsyncdir__waits_and_tells_a_refusal_once(void **state)
{
	take_away(10, PARENT, "a");
	op_fsyncdir(fs_fixture_make(&fx, 0, 0, OP_FSYNCDIR));
	assert_int_equal(fs_fixture_told(&fx, 0), FIXTURE_WAITS);
	fx.inode->names_error = -EIO;
	answer(1, 0);
	assert_int_equal(fs_fixture_told(&fx, 0), -EIO);
	op_fsyncdir(fs_fixture_make(&fx, 0, 0, OP_FSYNCDIR));
	assert_int_equal(fs_fixture_told(&fx, 0), 0);
}

/* fsync of anything makes names from before durable. */
static void fsync__tells_that_names_are_lost_with_the_session(void **state)
{
	struct request *req = fs_fixture_make(&fx, 0, 0, OP_FSYNC);

	req->args.fh = handle_number(&fx.handle);
	take_away(10, PARENT, "a");
	op_fsync(req);
	fx.inode->names_error = -ENOTEMPTY;
	op_fsyncdir(fs_fixture_make(&fx, 1, 0, OP_FSYNCDIR));
	assert_int_equal(fs_fixture_told(&fx, 0), FIXTURE_WAITS);
	fx.session.lost = true;
	refuse_all(-ESTALE);
	assert_int_equal(fs_fixture_told(&fx, 0), -ESTALE);
	assert_int_equal(fs_fixture_told(&fx, 1), -ESTALE);
	/* The next one tells what else has become of the directory's names. */
	assert_int_equal(fx.inode->names_error, -ENOTEMPTY);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CASE(name_queue__are_queued_until_they_are_wanted),
		CASE(name_queue__as_many_as_a_message_takes_are_sent),
		CASE(name_queue__long_names_fill_more_messages),
		CASE(name_queue__one_in_use_is_kept),
		CASE(name_queue__what_the_server_refuses_is_told),
		CASE(name_queue__a_message_that_is_refused_is_tried_in_parts),
		CASE(name_queue__what_is_left_is_sent_again),
		CASE(name_queue__all_end_with_the_session),
		CASE(name_queue__one_whose_session_has_ended_is_told_as_EIO),
		CASE(request__that_changes_something_comes_behind_all),
		CASE(request__that_reads_waits_for_its_names_alone),
		CASE(request__that_reads_waits_for_attributes_of_its_directory),
		CASE(sets__are_counted_and_go_in_their_order),
		CASE(commit__comes_behind),
		CASE(commit__comes_behind_names_from_before_a_change),
		CASE(commit__does_not_wait_for_later_names),
		CASE(commit__lets_no_names_in_when_it_waits_again),
		CASE(along__takes_all_and_tells_what_became_of_them),
		CASE(along__what_is_left_is_sent_again),
		CASE(along__a_message_that_is_refused_is_tried_without_files),
		CASE(along__is_behind_one_on_its_way_and_more_than_fit),
		CASE(along__knows_later_ones),
		CASE(along__lets_no_names_in_when_it_waits_again),
		CASE(along__that_took_names_is_one_that_waits_again),
		CASE(tick__is_through_when_all_are_answered),
		CASE(fsyncdir__waits_and_tells_a_refusal_once),
		CASE(fsync__tells_that_names_are_lost_with_the_session),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
