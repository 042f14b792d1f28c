/* pages_client.h - a client with a file of which the kernel has cached pages. Tests answer for the
 * kernel, which is told to drop some, and for the server.
 */
#ifndef RMEMFS_TESTS_PAGES_CLIENT_H
#define RMEMFS_TESTS_PAGES_CLIENT_H

#include "tests/unit/daemon/lease_client.h"

#include "common/base/clock.h"
#include "daemon/kcache/kernel_pages.h"
#include "daemon/lease/lease.h"

enum { PAGE = 4096, PID = 77 };

#define NO_END (UINT64_C(1) << 47)

static inline int setup_mapping(void **state)
{
	int r = setup(state);

	list_init(&fx.fs.giver.jobs);
	pthread_mutex_init(&fx.fs.giver.lock, NULL);
	pthread_cond_init(&fx.fs.giver.filled, NULL);
	fx.fs.features.direct_io_allow_mmap = true;
	if (r || !kernel_pages_make_locked(fx.inode))
		return -1;
	/* Some of it was read before. */
	fx.inode->cached->pages->mapped = true;
	return 0;
}

static inline void begin_cached(unsigned i, enum request_op op, uint64_t page, uint32_t npages)
{
	struct request *req = &fx.ops[i];

	*req = (struct request){.thread = &fx.thread, .op = op, .node = INO};
	req->args.cached = true;
	req->args.offset = page * PAGE;
	req->args.size = npages * PAGE;
	fx.went[i] = 0;
	if (lease_admit(req, op_went))
		fx.went[i] = 1;
	run_calls();
}

static inline void read_pages(uint64_t page, uint32_t npages)
{
	begin_cached(0, OP_READ, page, npages);
	end(0);
}

static inline void cut(unsigned i)
{
	struct request *req = &fx.ops[i];

	*req = (struct request){.thread = &fx.thread, .op = OP_SETATTR, .node = INO};
	req->args.set.valid = SET_SIZE;
	fx.went[i] = 0;
	if (lease_admit(req, op_went))
		fx.went[i] = 1;
}

/* Takes a range that the kernel is told to drop. */
static inline struct notifier_job *take_dropped(uint64_t page, uint64_t npages)
{
	struct list *link = list_pop(&fx.fs.giver.jobs);
	struct notifier_job *job;

	assert_non_null(link);
	assert_true(list_empty(&fx.fs.giver.jobs));
	job = list_entry(link, struct notifier_job, link);
	assert_int_equal(job->off, page * PAGE);
	assert_int_equal(job->len, npages * PAGE);
	assert_nothing_sent();
	return job;
}

static inline void dropped(struct notifier_job *job)
{
	job->done(job);
	run_calls();
}

static inline void dropped_all(void)
{
	while (!list_empty(&fx.fs.giver.jobs))
		dropped(list_entry(list_pop(&fx.fs.giver.jobs), struct notifier_job, link));
}

static inline void assert_nothing_dropped(void)
{
	assert_true(list_empty(&fx.fs.giver.jobs));
}

/* Without the handle that opening makes. */
static inline void open_to_store(uint64_t number)
{
	open_with(LEASE_EXCLUSIVE, number);
	fx.inode->cached->nstorers++;
}

static inline void close_to_leave(uint64_t number)
{
	fx.inode->cached->nstorers = 0;
	close_and_leave(number);
}

/* For an open file of which pages were cached, before its whole lease goes. */
static inline void told_that_it_is_endless(void)
{
	struct notifier_job *job =
		list_entry(list_pop(&fx.fs.giver.jobs), struct notifier_job, link);

	assert_true(list_empty(&fx.fs.giver.jobs));
	assert_true(job->size > INT32_MAX);
	assert_nothing_sent();
	dropped(job);
}

static inline void give_back(uint64_t number)
{
	told_that_it_is_endless();
	answer(take_return(number, LEASE_NONE, RETURN_PIN), 0);
}

/* Returns the lease, and closes the file. */
static inline void return_and_close(uint64_t number)
{
	give_back(number);
	fx.inode->cached->nstorers = 0;
	close_and_return(number);
}

/* A READ is answered with an end of file at `end`. */
static inline void answer_end(uint64_t end)
{
	if (kernel_pages_answers_end(fx.inode, end))
		kernel_pages_end_answered(fx.inode, &fx.thread);
}

#endif
