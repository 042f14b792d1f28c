#include "daemon/file/gate.h"

#include <assert.h>

void gate_init(struct gate *gate)
{
	*gate = (struct gate){0};
	list_init(&gate->writes);
	list_init(&gate->waiting);
}

static bool is_acknowledged(const struct gate_pass *pass)
{
	return pass->kind == GATE_WRITE && pass->acks;
}

/* Whether a read waits for what is before it. */
static bool holds_up_read(const struct gate_pass *pass, const struct gate_pass *read)
{
	return pass->keeps_out || (is_acknowledged(pass) && pass->acks <= read->acks);
}

/* Whether `later` may not run beside `pass`. */
static bool conflicts(const struct gate_pass *pass, const struct gate_pass *later)
{
	if (pass->kind == GATE_EXCLUSIVE || later->kind == GATE_EXCLUSIVE)
		return true;
	if (pass->kind == GATE_READ)
		return false;
	if (later->kind == GATE_READ && !holds_up_read(pass, later))
		return false;
	return pass->first < later->end && later->first < pass->end;
}

static bool conflicts_inside(const struct gate *gate, const struct gate_pass *pass)
{
	if (gate->exclusive)
		return true;
	if (pass->kind == GATE_EXCLUSIVE)
		return gate->nreads || !list_empty(&gate->writes);
	if (pass->kind == GATE_READ && !gate->nacked && !gate->nkeep_out)
		return false;
	list_for_each (pos, &gate->writes)
		if (conflicts(list_entry(pos, struct gate_pass, link), pass))
			return true;
	return false;
}

/* No pass overtakes an earlier one that it conflicts with. */
static bool conflicts_waiting(const struct gate *gate, const struct gate_pass *pass)
{
	list_for_each (pos, &gate->waiting) {
		const struct gate_pass *earlier = list_entry(pos, struct gate_pass, link);

		if (earlier == pass)
			break;
		if (conflicts(earlier, pass))
			return true;
	}
	return false;
}

static void gate_admit(struct gate *gate, struct gate_pass *pass)
{
	pass->waiting = false;
	switch (pass->kind) {
	case GATE_READ:
		gate->nreads++;
		break;
	case GATE_WRITE:
		list_add_tail(&gate->writes, &pass->link);
		break;
	case GATE_EXCLUSIVE:
		gate->exclusive = true;
		break;
	}
}

bool gate_enter(struct gate *gate, struct gate_pass *pass)
{
	list_init(&pass->link);
	pass->acks = pass->kind == GATE_WRITE ? 0 : gate->acks;
	if (conflicts_inside(gate, pass) || conflicts_waiting(gate, pass)) {
		pass->waiting = true;
		list_add_tail(&gate->waiting, &pass->link);
		return false;
	}
	gate_admit(gate, pass);
	return true;
}

void gate_leave(struct gate *gate, struct gate_pass *pass)
{
	assert(!pass->waiting);
	switch (pass->kind) {
	case GATE_READ:
		assert(gate->nreads);
		gate->nreads--;
		break;
	case GATE_WRITE:
		gate->nacked -= is_acknowledged(pass);
		gate->nkeep_out -= pass->keeps_out;
		list_del(&pass->link);
		break;
	case GATE_EXCLUSIVE:
		gate->exclusive = false;
		break;
	}
}

void gate_acknowledge(struct gate *gate, struct gate_pass *pass, uint64_t size_before)
{
	assert(pass->kind == GATE_WRITE && !pass->waiting && !pass->acks);
	pass->acks = ++gate->acks;
	pass->size_before = size_before;
	gate->nacked++;
}

void gate_keep_readers_out(struct gate *gate, struct gate_pass *pass)
{
	assert(pass->kind == GATE_WRITE && !pass->waiting && !pass->keeps_out);
	pass->keeps_out = true;
	gate->nkeep_out++;
}

bool gate_has_acknowledged(const struct gate *gate)
{
	return gate->nacked;
}

bool gate_is_settled(const struct gate *gate)
{
	if (gate->exclusive)
		return false;
	list_for_each (pos, &gate->writes)
		if (!is_acknowledged(list_entry(pos, struct gate_pass, link)))
			return false;
	list_for_each (pos, &gate->waiting)
		if (list_entry(pos, struct gate_pass, link)->kind != GATE_READ)
			return false;
	return true;
}

uint64_t gate_size(const struct gate *gate, uint64_t acks, uint64_t size)
{
	if (!gate->nacked)
		return size;
	list_for_each (pos, &gate->writes) {
		const struct gate_pass *pass = list_entry(pos, struct gate_pass, link);

		if (pass->acks > acks && pass->size_before < size)
			size = pass->size_before;
	}
	return size;
}

bool gate_withdraw(struct gate_pass *pass)
{
	if (!pass->waiting)
		return false;
	list_del(&pass->link);
	pass->waiting = false;
	return true;
}

struct gate_pass *gate_next(struct gate *gate)
{
	list_for_each (pos, &gate->waiting) {
		struct gate_pass *pass = list_entry(pos, struct gate_pass, link);

		if (conflicts_inside(gate, pass) || conflicts_waiting(gate, pass))
			continue;
		list_del(&pass->link);
		gate_admit(gate, pass);
		return pass;
	}
	return NULL;
}

bool gate_idle(const struct gate *gate)
{
	return !gate->nreads && !gate->exclusive && list_empty(&gate->writes) &&
	       list_empty(&gate->waiting);
}
