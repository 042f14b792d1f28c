/* Opening and truncating files of which the kernel was told no end: kernel_pages.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>

#include "tests/unit/daemon/fs_fixture.h"
#include "daemon/kcache/kernel_pages.h"
#include "daemon/lease/lease.h"
#include "daemon/serve/fs.h"
#include "daemon/serve/way.h"

enum { WAITS = FIXTURE_WAITS };

static const uint64_t NO_END = UINT64_C(1) << 47;

static struct fs_fixture fx;

/* The file is mapped through an older handle, which needs no lease. */
static int setup(void **state)
{
	if (fs_fixture_init(&fx) || !kernel_pages_make_locked(fx.inode))
		return -1;
	fs_fixture_notifier(&fx.fs.giver);
	fx.inode->nopen = 1;
	fx.inode->lease->pinned = true;
	fx.inode->cached->pages->mapped = true;
	return 0;
}

static int teardown(void **state)
{
	assert_int_equal(fx.inode->refs, 2);
	assert_int_equal(fx.inode->cached->nappenders, 0);
	assert_int_equal(fx.inode->nopen, 1);
	assert_true(list_empty(&fx.remotes[0].rpc_waiting));
	assert_true(list_empty(&fx.fs.giver.jobs));
	fx.inode->nopen = 0;
	fs_fixture_fini(&fx);
	return 0;
}

/* ---- the kernel ------------------------------------------------------------------------------ */

static void raise_end(void)
{
	struct cached_pages *p = fx.inode->cached->pages;

	p->endless = p->raised = p->was_raised = true;
}

/* Completes the notifier's queued jobs, as if the kernel had got them. */
static void tell_all(void)
{
	struct list *link;

	while ((link = list_pop(&fx.fs.giver.jobs))) {
		struct notifier_job *job = list_entry(link, struct notifier_job, link);

		job->done(job);
	}
}

/* Returns the status of an answer, with its body; WAITS: there is none. */
static int told(void *body, size_t len)
{
	struct {
		struct fuse_out_header head;
		uint8_t body[256];
	} message;
	ssize_t n = read(fx.kernel[0], &message, sizeof(message));

	if (n < 0)
		return WAITS;
	assert_true((size_t)n >= sizeof(message.head));
	assert_int_equal(message.head.len, n);
	if (!message.head.error) {
		assert_true((size_t)n >= sizeof(message.head) + len);
		if (len)
			memcpy(body, message.body, len);
	}
	return message.head.error;
}

static void ask_to_open(uint32_t flags)
{
	struct request *req = fs_fixture_make(&fx, 0, 0, OP_OPEN);

	req->args.flags = flags;
	way_barrier(req);
}

static uint64_t opened(void)
{
	struct fuse_open_out out = {0};

	assert_int_equal(told(&out, sizeof(out)), 0);
	return out.fh;
}

static void release(uint64_t fh)
{
	struct request *req = fs_fixture_make(&fx, 0, 0, OP_RELEASE);

	req->args.has_fh = true;
	req->args.fh = fh;
	way_barrier(req);
	assert_int_equal(told(NULL, 0), 0);
}

/* ---- to append ------------------------------------------------------------------------------- */

/* A notification in progress may tell of no end, and would overtake the answers to the kernel's
 * questions. */
static void append__where_it_was_told_of_no_end__looks_again_behind_what_it_is_told(void **state)
{
	raise_end();
	ask_to_open(O_WRONLY | O_APPEND);
	assert_int_equal(told(NULL, 0), WAITS);
	tell_all();
	assert_int_equal(told(NULL, 0), -ESTALE);
	assert_int_equal(fx.inode->cached->nappenders, 0);
	ask_to_open(O_WRONLY | O_APPEND);
	release(opened());
}

static void append__where_it_knows_the_end__is_counted(void **state)
{
	uint64_t fh;

	ask_to_open(O_WRONLY | O_APPEND);
	fh = opened();
	assert_int_equal(fx.inode->cached->nappenders, 1);
	assert_false(fx.inode->cached->pages->raised);
	/* Nobody needs the true end any more. */
	release(fh);
	assert_true(fx.inode->cached->pages->raised);
	tell_all();
}

static void open__where_it_was_told_of_no_end__is_done(void **state)
{
	raise_end();
	ask_to_open(O_WRONLY);
	release(opened());
}

/* ---- to be cut ------------------------------------------------------------------------------- */

static void cut_to(uint64_t size)
{
	struct request *req = fs_fixture_make(&fx, 0, 0, OP_SETATTR);

	req->args.has_fh = true;
	req->args.fh = handle_number(&fx.handle);
	req->args.set.valid = SET_SIZE;
	req->args.set.size = size;
	way_barrier(req);
}

/* By the kernel, when it could not append there. */
static void cut__to_what_it_was_told__tells_the_true_end(void **state)
{
	struct fuse_attr_out out = {0};

	raise_end();
	fx.handle.appended = true;
	fx.inode->lease_type = LEASE_EXCLUSIVE;
	fx.inode->nwriters = 1;
	fx.inode->attr = (struct attr){.ino = FIXTURE_INO, .mode = S_IFREG | 0644, .size = 10};
	fx.inode->attr_valid = fx.inode->sized = true;
	cut_to(NO_END + 10);
	assert_int_equal(told(&out, sizeof(out)), 0);
	assert_int_equal(out.attr.size, 10);
	fx.inode->lease_type = LEASE_NONE;
}

/* ---- who asks for the size ------------------------------------------------------------------- */

/* The server may make it wait for other clients, which want that lease back, or which wait for what
 * queues behind it. */
static void getattr__waits_at_the_server__with_nothing_of_the_lease(void **state)
{
	struct inode_lease *l = fx.inode->lease;
	struct rpc_call *call;

	raise_end();
	fx.inode->lease_type = LEASE_LAYOUT;
	way_barrier(fs_fixture_make(&fx, 0, 0, OP_GETATTR));
	assert_int_equal(told(NULL, 0), WAITS);
	assert_int_equal(l->users[LEASE_LAYOUT], 0);
	call = list_entry(list_pop(&fx.remotes[0].rpc_waiting), struct rpc_call, link);
	assert_int_equal(call->req.op, RPC_GETATTR);
	assert_false(call->nested);
	call->done(call, &(struct rpc_reply){.op = RPC_GETATTR, .status = -ESTALE});
	assert_int_equal(told(NULL, 0), -ESTALE);
	fx.inode->lease_type = LEASE_NONE;
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	static const struct CMUnitTest tests[] = {
		CASE(append__where_it_was_told_of_no_end__looks_again_behind_what_it_is_told),
		CASE(append__where_it_knows_the_end__is_counted),
		CASE(open__where_it_was_told_of_no_end__is_done),
		CASE(cut__to_what_it_was_told__tells_the_true_end),
		CASE(getattr__waits_at_the_server__with_nothing_of_the_lease),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
