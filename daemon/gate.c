#include "daemon/gate.h"

#include <assert.h>

void gate_init(struct gate *gate)
{
	*gate = (struct gate){0};
	list_init(&gate->writes);
	list_init(&gate->waiting);
}

/* Whether b may not run beside a. */
static bool conflicts(const struct gate_pass *a, const struct gate_pass *b)
{
	if (a->kind == GATE_EXCLUSIVE || b->kind == GATE_EXCLUSIVE)
		return true;
	if (a->kind == GATE_READ || b->kind == GATE_READ)
		return false;
	return a->first < b->end && b->first < a->end;
}

static bool conflicts_inside(const struct gate *gate, const struct gate_pass *pass)
{
	if (gate->exclusive)
		return true;
	if (pass->kind == GATE_EXCLUSIVE)
		return gate->nreads || !list_empty(&gate->writes);
	if (pass->kind == GATE_READ)
		return false;
	list_for_each (pos, &gate->writes)
		if (conflicts(list_entry(pos, struct gate_pass, link), pass))
			return true;
	return false;
}

/* Nobody overtakes an earlier one that it conflicts with. */
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

static void admit(struct gate *gate, struct gate_pass *pass)
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
	if (conflicts_inside(gate, pass) || conflicts_waiting(gate, pass)) {
		pass->waiting = true;
		list_add_tail(&gate->waiting, &pass->link);
		return false;
	}
	admit(gate, pass);
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
		list_del(&pass->link);
		break;
	case GATE_EXCLUSIVE:
		gate->exclusive = false;
		break;
	}
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
		admit(gate, pass);
		return pass;
	}
	return NULL;
}

bool gate_idle(const struct gate *gate)
{
	return !gate->nreads && !gate->exclusive && list_empty(&gate->writes) &&
	       list_empty(&gate->waiting);
}
