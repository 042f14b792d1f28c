/* inherited.c - a hash table of fixed size: numbers stay until the mount ends, and their handles
 * go one by one. */
#include "daemon/file/inherited.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/file/handle.h"

struct inherited_slot {
	uint64_t number;                 /* 0: free */
	_Atomic(struct handle *) handle; /* NULL: the kernel has closed it */
};

struct inherited {
	size_t mask; /* the number of slots less 1; at least half of them are free */
	struct inherited_slot *slots;
};

int inherited_new(size_t n, struct inherited **out)
{
	struct inherited *table = calloc(1, sizeof(*table));
	size_t nslots = 4;

	while (nslots / 2 < n)
		nslots *= 2;
	if (table)
		table->slots = calloc(nslots, sizeof(*table->slots));
	if (!table || !table->slots) {
		free(table);
		return -ENOMEM;
	}
	table->mask = nslots - 1;
	*out = table;
	return 0;
}

void inherited_delete(struct inherited *table)
{
	if (!table)
		return;
	free(table->slots);
	free(table);
}

/* The slot of the number, or the free one where it belongs. Addresses of the heap are multiples of
 * 16. */
static struct inherited_slot *slot_of(const struct inherited *table, uint64_t number)
{
	size_t i = (size_t)((number >> 4) * 0x9e3779b97f4a7c15 >> 20) & table->mask;

	while (table->slots[i].number && table->slots[i].number != number)
		i = (i + 1) & table->mask;
	return &table->slots[i];
}

static struct handle *inherited_find(const struct inherited *table, uint64_t number)
{
	const struct inherited_slot *slot = slot_of(table, number);

	return slot->number ? atomic_load_explicit(&slot->handle, memory_order_acquire) : NULL;
}

/* Addresses that are numbers are kept until another one was found. */
struct handle *inherited_alloc(const struct inherited *table)
{
	struct handle *handle = calloc(1, sizeof(*handle)), *other;

	if (!handle || !slot_of(table, handle_number(handle))->number)
		return handle;
	other = inherited_alloc(table);
	free(handle);
	return other;
}

int inherited_name(struct inherited *table, uint64_t number)
{
	struct inherited_slot *slot = slot_of(table, number);

	if (slot->number)
		return -EEXIST;
	slot->number = number;
	return 0;
}

void inherited_set(struct inherited *table, uint64_t number, struct handle *handle)
{
	handle->number = number;
	atomic_store_explicit(&slot_of(table, number)->handle, handle, memory_order_release);
}

void inherited_remove(struct inherited *table, const struct handle *handle)
{
	if (handle->number)
		atomic_store_explicit(
			&slot_of(table, handle->number)->handle, NULL, memory_order_release);
}

static bool translate(const struct inherited *table, uint64_t *number, bool resent)
{
	const struct handle *handle = *number ? inherited_find(table, *number) : NULL;

	if (handle)
		*number = (uint64_t)(uintptr_t)handle;
	return handle || !*number || !resent;
}

/* A number that comes again is the one of a daemon before this one. */
bool inherited_translate(const struct inherited *table, struct request *req)
{
	bool resent = request_is_resent(req);
	bool ok = !req->args.has_fh || translate(table, &req->args.fh, resent);

	return ok && (req->op != OP_COPY || translate(table, &req->args.fh2, resent));
}
