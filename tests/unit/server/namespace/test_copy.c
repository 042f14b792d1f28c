/* test_copy.c - COPY by cases; then files whose every byte is known, under random writes, copies,
 * allocations, holes, zeros and truncations. Many of these are aborted and run again. */
#include "tests/unit/server/meta_fixture.h"

#include <linux/falloc.h>

static int step(uint64_t src, uint64_t src_offset, uint64_t dst, uint64_t dst_offset, uint64_t len)
{
	return FX_RUN(.op = RPC_COPY, .copy = {src, src_offset, dst, dst_offset, len});
}

/* Repeats the request until all is done; returns the number of steps. */
static unsigned whole(
	uint64_t src, uint64_t src_offset, uint64_t dst, uint64_t dst_offset, uint64_t len)
{
	unsigned nsteps = 0;

	for (uint64_t done = 0; done < len; nsteps++) {
		assert_int_equal(
			step(src, src_offset + done, dst, dst_offset + done, len - done), 0);
		assert_true(fx.rep.progress.done <= len - done);
		done += fx.rep.progress.done;
		assert_true(nsteps < 10000);
	}
	return nsteps;
}

/* Reads the file from its beginning on. */
static void read_file(uint64_t ino, uint8_t *buf, size_t len)
{
	struct rpc_request req = {.op = RPC_EXTENTS, .extents = {.ino = ino}};
	struct extent e;
	struct wire_in r;

	memset(buf, 0, len);
	do {
		assert_int_equal(fx_run(&req), 0);
		r = rpc_tail_reader(&fx.rep.extents.tail);
		while (rpc_get_extent(&r, &e)) {
			size_t at = e.fpage * PAGE_BYTES, n = (size_t)e.npages * PAGE_BYTES;

			if (at < len)
				memcpy(buf + at, fx_page(&e, 0), min_u64(n, len - at));
			req.extents.fpage = e.fpage + e.npages;
		}
	} while (!fx.rep.extents.last);
}

static void fill_random(uint8_t *at, size_t len, unsigned *seed)
{
	for (size_t i = 0; i < len; i++)
		at[i] = (uint8_t)rand_r(seed);
}

static void expect_bytes(uint64_t ino, uint64_t offset, const uint8_t *want, size_t len)
{
	uint8_t *buf = malloc(offset + len);

	assert_non_null(buf);
	read_file(ino, buf, offset + len);
	assert_memory_equal(buf + offset, want, len);
	free(buf);
}

/* ---- cases ----------------------------------------------------------------------------------- */

static void copy__into_an_empty_file(void **state)
{
	uint64_t src = fx_file(ROOT_INO, "src"), dst = fx_file(ROOT_INO, "dst");
	struct extent e = fx_fill(src, 0, 600);
	unsigned seed = 1;

	fill_random(fx_page(&e, 0), 600 * PAGE_BYTES, &seed);
	fx.ctx.now = 5000;
	/* Pages first, then a mebibyte a step. */
	assert_int_equal(whole(src, 0, dst, 0, 600 * PAGE_BYTES - 7), 4);
	assert_int_equal(fx.rep.progress.attr.ino, dst);
	assert_int_equal(fx.rep.progress.attr.size, 600 * PAGE_BYTES - 7);
	assert_int_equal(fx.rep.progress.attr.npages, 600);
	assert_int_equal(fx.rep.progress.attr.mtime, 5000);
	expect_bytes(dst, 0, fx_page(&e, 0), 600 * PAGE_BYTES - 7);
	assert_int_equal(fx_attr(src).mtime, 1000);
}

static void copy__between_odd_offsets(void **state)
{
	uint64_t src = fx_file(ROOT_INO, "src"), dst = fx_file(ROOT_INO, "dst");
	struct extent e = fx_fill(src, 0, 8), d = fx_fill(dst, 0, 2);
	unsigned seed = 2;

	fill_random(fx_page(&e, 0), 8 * PAGE_BYTES, &seed);
	memset(fx_page(&d, 0), 0x33, 2 * PAGE_BYTES);
	whole(src, 1001, dst, 5003, 20000);
	assert_int_equal(fx_attr(dst).size, 25003);
	expect_bytes(dst, 5003, fx_page(&e, 0) + 1001, 20000);
	assert_int_equal(fx_page(&d, 0)[5002], 0x33);
	assert_int_equal(fx_attr(dst).npages, 7);
}

static void copy__of_holes(void **state)
{
	uint64_t src = fx_file(ROOT_INO, "src"), dst = fx_file(ROOT_INO, "dst");
	struct extent e = fx_fill(src, 10, 1), d = fx_fill(dst, 2, 2);
	static const uint8_t zeros[5 * PAGE_BYTES];

	memset(fx_page(&e, 0), 0x44, PAGE_BYTES);
	memset(fx_page(&d, 0), 0x33, 2 * PAGE_BYTES);
	whole(src, 0, dst, 0, 11 * PAGE_BYTES);
	/* A hole over a hole stays a hole; over pages it makes zeros. */
	assert_int_equal(fx_attr(dst).npages, 3);
	assert_int_equal(fx_attr(dst).size, 11 * PAGE_BYTES);
	expect_bytes(dst, 0, zeros, sizeof(zeros));
	expect_bytes(dst, 10 * PAGE_BYTES, fx_page(&e, 0), PAGE_BYTES);
}

static void copy__within_one_file(void **state)
{
	uint64_t ino = fx_file(ROOT_INO, "file");
	struct extent e = fx_fill(ino, 0, 4);
	unsigned seed = 3;

	fill_random(fx_page(&e, 0), 4 * PAGE_BYTES, &seed);
	whole(ino, 100, ino, 10000, 9900);
	expect_bytes(ino, 10000, fx_page(&e, 0) + 100, 9900);
	assert_int_equal(step(ino, 100, ino, 10000, 9901), -EINVAL);
	assert_int_equal(step(ino, 10000, ino, 100, 9901), -EINVAL);
}

/* Bytes that a client wrote beyond the end and never committed do not appear. */
static void copy__beyond_the_end(void **state)
{
	uint64_t src = fx_file(ROOT_INO, "src"), dst = fx_file(ROOT_INO, "dst");
	struct extent d = fx_grant_run(1);

	fx_fill(src, 0, 1);
	assert_int_equal(fx_commit(dst, &d, 1, 10), 0);
	memset(fx_page(&d, 0), 0x55, PAGE_BYTES);
	whole(src, 0, dst, 100, 20);
	assert_int_equal(fx_attr(dst).size, 120);
	assert_int_equal(fx_page(&d, 0)[9], 0x55);
	for (unsigned i = 10; i < 120; i++)
		assert_int_equal(fx_page(&d, 0)[i], 0);
}

/* Nor do bytes in whole pages between the end and the copy, however many. */
static void copy__far_beyond_the_end(void **state)
{
	uint64_t src = fx_file(ROOT_INO, "src"), dst = fx_file(ROOT_INO, "dst");
	struct extent d = fx_grant_run(600);
	static const uint8_t zeros[599 * PAGE_BYTES];

	fx_fill(src, 0, 1);
	assert_int_equal(fx_commit(dst, &d, 1, 10), 0);
	memset(fx_page(&d, 0), 0x55, 600 * PAGE_BYTES);
	assert_true(whole(src, 0, dst, 599 * PAGE_BYTES, 20) > 1);
	assert_int_equal(fx_attr(dst).size, 599 * PAGE_BYTES + 20);
	assert_int_equal(fx_page(&d, 0)[9], 0x55);
	assert_memory_equal(fx_page(&d, 0) + 10, zeros, 599 * PAGE_BYTES - 10);
}

/* Pages that a step has taken are zero until the file has them. */
static void copy__writes_to_no_free_page(void **state)
{
	uint64_t src = fx_file(ROOT_INO, "src"), dst = fx_file(ROOT_INO, "dst");
	struct extent e = fx_fill(src, 0, 4), d;
	struct rpc_request req = {.op = RPC_COPY, .copy = {src, 0, dst, 0, 4 * PAGE_BYTES}};
	static const uint8_t zeros[4 * PAGE_BYTES];

	memset(fx_page(&e, 0), 0x44, 4 * PAGE_BYTES);
	assert_int_equal(meta_begin(fx.m), 0);
	assert_int_equal(fx_execute(&req), 0);
	assert_int_equal(fx.rep.progress.done, 0);
	meta_abort(fx.m);
	d = fx_grant_run(4);
	assert_memory_equal(fx_page(&d, 0), zeros, sizeof(zeros));
	assert_int_equal(fx_return_grants(&d, 1), 0);
	whole(src, 0, dst, 0, 4 * PAGE_BYTES);
	expect_bytes(dst, 0, fx_page(&e, 0), 4 * PAGE_BYTES);
}

static void copy__of_many_extents(void **state)
{
	uint64_t src = fx_fragmented("src", 300), dst = fx_fragmented("dst", 200);

	assert_true(whole(src, 0, dst, PAGE_BYTES, 599 * PAGE_BYTES) > 4);
	assert_int_equal(fx_attr(dst).npages, 500);
	assert_int_equal(fx_attr(dst).size, 600 * PAGE_BYTES);
}

static void copy__no_space(void **state)
{
	uint64_t src = fx_file(ROOT_INO, "src"), dst = fx_file(ROOT_INO, "dst");

	fx_fill(src, 0, 1000);
	/* It goes as far as it can. */
	assert_int_equal(step(src, 0, dst, 0, 1000 * PAGE_BYTES), 0);
	assert_int_equal(fx_usage().free_pages, 0);
	assert_int_equal(fx_attr(dst).npages, FX_PAGES - 1000);
	assert_int_equal(step(src, 0, dst, 900 * PAGE_BYTES, PAGE_BYTES), -ENOSPC);
	assert_true(fx.rep.text.len > 0);
}

static void copy__errors(void **state)
{
	uint64_t src = fx_file(ROOT_INO, "src"), dst = fx_file(ROOT_INO, "dst");
	uint64_t dir = fx_dir(ROOT_INO, "dir");

	fx_fill(src, 0, 1);
	assert_int_equal(step(src, 1, dst, 0, PAGE_BYTES), -EINVAL);
	assert_int_equal(step(src, PAGE_BYTES, dst, 0, 1), -EINVAL);
	assert_int_equal(step(dir, 0, dst, 0, 1), -EISDIR);
	assert_int_equal(step(src, 0, dir, 0, 1), -EISDIR);
	assert_int_equal(step(4711, 0, dst, 0, 1), -ESTALE);
	assert_int_equal(step(src, 0, 4711, 0, 1), -ESTALE);
	assert_int_equal(fx_make(RPC_MKNOD, ROOT_INO, "fifo", S_IFIFO | 0600), 0);
	assert_int_equal(step(src, 0, fx.rep.entry.attr.ino, 0, 1), -EINVAL);
	fx.ctx.read_only = true;
	assert_int_equal(step(src, 0, dst, 0, 1), -EROFS);
	fx.ctx.read_only = false;
	assert_int_equal(fx_attr(dst).npages, 0);
}

/* ---- every byte is known --------------------------------------------------------------------- */

enum { FILES = 3, MODEL_BYTES = 48 * PAGE_BYTES, ROUNDS = 4000 };

static struct model_file {
	uint64_t ino, size;
	uint8_t bytes[MODEL_BYTES]; /* zero from size on */
} files[FILES];
static unsigned seed;

static size_t pick(size_t n)
{
	return (size_t)rand_r(&seed) % n;
}

static void pick_range(size_t end, uint64_t *offset, uint64_t *len)
{
	*offset = pick(end);
	if (!pick(3))
		*offset &= ~(uint64_t)(PAGE_BYTES - 1);
	*len = 1 + pick(end - *offset);
	if (!pick(3) && *len > PAGE_BYTES)
		*len &= ~(uint64_t)(PAGE_BYTES - 1);
}

/* An aborted batch before it must make no difference. False: no space, or the request waits. */
static bool run(const struct rpc_request *req)
{
	int status;

	if (!pick(4)) {
		assert_int_equal(meta_begin(fx.m), 0);
		fx_execute(req);
		meta_abort(fx.m);
	}
	status = fx_run(req);
	if (fx.result == OUTCOME_PARK)
		fx_settle();
	else if (status != -ENOSPC)
		assert_int_equal(status, 0);
	return !status;
}

static bool map_page(struct model_file *f, uint64_t fpage, struct extent *e)
{
	struct wire_in r;

	assert_int_equal(FX_RUN(.op = RPC_EXTENTS, .extents = {f->ino, fpage}), 0);
	r = rpc_tail_reader(&fx.rep.extents.tail);
	if (rpc_get_extent(&r, e) && e->fpage <= fpage) {
		e->page += (uint32_t)(fpage - e->fpage);
		return true;
	}
	if (fx_grant(1, false))
		return false;
	*e = fx.rep.grant.grant[0];
	e->fpage = fpage;
	assert_int_equal(fx_commit(f->ino, e, 1, 0), 0);
	return true;
}

/* As a client does it: page by page, then the size. */
static void client_write(struct model_file *f)
{
	uint64_t offset, len, end;
	struct extent e;

	pick_range(MODEL_BYTES, &offset, &len);
	/* A gap beyond the end shows bytes that were written there before, so these are cut off
	 * first. */
	if (offset > f->size)
		assert_int_equal(fx_truncate(f->ino, f->size), 0);
	end = offset + len;
	for (uint64_t at = offset; at < end;) {
		uint64_t within = at % PAGE_BYTES, n = min_u64(PAGE_BYTES - within, end - at);

		if (!map_page(f, at / PAGE_BYTES, &e)) {
			end = at;
			break;
		}
		fill_random(f->bytes + at, n, &seed);
		memcpy(fx_page(&e, 0) + within, f->bytes + at, n);
		at += n;
	}
	if (end == offset)
		return;
	assert_int_equal(fx_commit(f->ino, NULL, 0, end), 0);
	f->size = max_u64(f->size, end);
}

static void model_truncate(struct model_file *f)
{
	uint64_t size = pick(4) ? pick(MODEL_BYTES) : f->size;

	if (!run(&(struct rpc_request){.op = RPC_SETATTR,
		    .setattr = {.ino = f->ino, .valid = SET_SIZE, .size = size}}))
		return;
	if (size < f->size)
		memset(f->bytes + size, 0, f->size - size);
	f->size = size;
}

static void model_fallocate(struct model_file *f)
{
	static const uint32_t modes[] = {0, FALLOC_FL_KEEP_SIZE,
		FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, FALLOC_FL_ZERO_RANGE,
		FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE};
	uint32_t mode = modes[pick(ARRAY_SIZE(modes))];
	uint64_t offset, len, done;

	pick_range(MODEL_BYTES, &offset, &len);
	if (!run(&(struct rpc_request){
		    .op = RPC_FALLOCATE, .fallocate = {f->ino, mode, offset, len}}))
		return;
	done = fx.rep.progress.done;
	if (mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE))
		memset(f->bytes + offset, 0, done);
	if (!(mode & FALLOC_FL_KEEP_SIZE) && done == len)
		f->size = max_u64(f->size, offset + len);
}

static void model_copy(struct model_file *dst, const struct model_file *src)
{
	uint64_t from, len, to, done;

	if (!src->size)
		return;
	pick_range(src->size, &from, &len);
	to = pick(MODEL_BYTES - len + 1);
	if (src == dst && from < to + len && to < from + len)
		return;
	do {
		if (!run(&(struct rpc_request){
			    .op = RPC_COPY, .copy = {src->ino, from, dst->ino, to, len}}))
			return;
		done = fx.rep.progress.done;
		memmove(dst->bytes + to, src->bytes + from, done);
		if (done)
			dst->size = max_u64(dst->size, to + done);
		from += done;
		to += done;
		len -= done;
	} while (len);
}

static void compare(const struct model_file *f)
{
	static uint8_t buf[MODEL_BYTES];

	assert_int_equal(fx_attr(f->ino).size, f->size);
	read_file(f->ino, buf, f->size);
	assert_memory_equal(buf, f->bytes, f->size);
}

static void bytes__agree_with_the_model(void **state)
{
	seed = 7;
	for (unsigned i = 0; i < FILES; i++) {
		char name[8];

		snprintf(name, sizeof(name), "f%u", i);
		files[i] = (struct model_file){.ino = fx_file(ROOT_INO, name)};
	}
	for (unsigned round = 0; round < ROUNDS; round++) {
		struct model_file *f = &files[pick(FILES)];

		switch (pick(8)) {
		case 0:
		case 1:
			client_write(f);
			break;
		case 2:
			model_truncate(f);
			break;
		case 3:
		case 4:
			model_copy(f, &files[pick(FILES)]);
			break;
		default:
			model_fallocate(f);
		}
		for (unsigned i = 0; i < FILES; i++)
			compare(&files[i]);
		if (round % 50 == 0)
			fx_check();
		if (round % 200 == 0)
			fx_settle();
		if (round % 1000 == 999)
			fx_reopen();
	}
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, fx_set_up, fx_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(copy__into_an_empty_file),
		CASE(copy__between_odd_offsets),
		CASE(copy__of_holes),
		CASE(copy__within_one_file),
		CASE(copy__beyond_the_end),
		CASE(copy__far_beyond_the_end),
		CASE(copy__writes_to_no_free_page),
		CASE(copy__of_many_extents),
		CASE(copy__no_space),
		CASE(copy__errors),
		CASE(bytes__agree_with_the_model),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
