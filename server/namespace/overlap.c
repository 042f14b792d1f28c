/* overlap.c - see overlap.h. */
#include "server/namespace/overlap.h"

#include <assert.h>
#include <errno.h>

#include "common/base/util.h"

struct interval {
	uint64_t from;
	uint32_t len;
};

static struct interval in_memory(const struct extent *e)
{
	return (struct interval){(uint64_t)e->region << 32 | e->page, e->npages};
}

static struct interval within_file(const struct extent *e)
{
	return (struct interval){e->fpage, e->npages};
}

static bool is_before(const struct interval *a, const struct interval *b)
{
	return a->from < b->from || (a->from == b->from && a->len < b->len);
}

/* The end of an interval may be beyond the greatest number. */
static bool reaches(const struct interval *a, const struct interval *b)
{
	return b->from - a->from < a->len;
}

static void exchange(struct interval *a, struct interval *b)
{
	struct interval was = *a;

	*a = *b;
	*b = was;
}

/* v[at] goes down the heap v[n] to where both that are below it come before it. */
static void sift(struct interval *v, unsigned at, unsigned n)
{
	for (unsigned below; (below = 2 * at + 1) < n; at = below) {
		if (below + 1 < n && is_before(&v[below], &v[below + 1]))
			below++;
		if (!is_before(&v[at], &v[below]))
			return;
		exchange(&v[at], &v[below]);
	}
}

/* The C library's qsort() may allocate. */
static void heap_sort(struct interval *v, unsigned n)
{
	for (unsigned i = n / 2; i-- > 0;)
		sift(v, i, n);
	for (unsigned i = n; i-- > 1;) {
		exchange(&v[0], &v[i]);
		sift(v, 0, i);
	}
}

/* Most lists are in order already. */
static bool is_sorted(const struct interval *v, unsigned n)
{
	for (unsigned i = 1; i < n; i++)
		if (is_before(&v[i], &v[i - 1]))
			return false;
	return true;
}

/* In order, an interval that reaches any later one reaches the next. */
static bool any_reaches(struct interval *v, unsigned n)
{
	if (!is_sorted(v, n))
		heap_sort(v, n);
	for (unsigned i = 1; i < n; i++)
		if (reaches(&v[i - 1], &v[i]))
			return true;
	return false;
}

bool overlap_any(const struct extent *e, unsigned n, bool in_file)
{
	struct interval v[OVERLAP_EXTENTS_MAX];

	assert(n <= OVERLAP_EXTENTS_MAX);
	for (unsigned i = 0; i < n; i++)
		v[i] = in_memory(&e[i]);
	if (any_reaches(v, n))
		return true;
	for (unsigned i = 0; i < n; i++)
		v[i] = within_file(&e[i]);
	return in_file && any_reaches(v, n);
}

int overlap_decode(const struct rpc_tail *tail, struct extent *e, unsigned *n)
{
	struct wire_in r = rpc_tail_reader(tail);

	*n = 0;
	while (wire_in_left(&r)) {
		if (*n == OVERLAP_EXTENTS_MAX || !rpc_get_extent(&r, &e[*n]) || e[*n].target != 0)
			return -EINVAL;
		++*n;
	}
	return 0;
}
