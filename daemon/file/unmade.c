#include "daemon/file/unmade.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/util.h"

void unmade_init(struct unmade_files *u)
{
	*u = (struct unmade_files){.highest = ROOT_INO};
	pthread_mutex_init(&u->lock, NULL);
	list_init(&u->all);
}

void unmade_fini(struct unmade_files *u)
{
	pthread_mutex_destroy(&u->lock);
}

/* ---- inode numbers --------------------------------------------------------------------------- */

static bool any_number_counts(const struct unmade_files *u)
{
	return u->lent[0].n || u->ntaken || !list_empty(&u->all);
}

uint8_t unmade_ask_numbers(struct unmade_files *u)
{
	uint8_t numbers = NUMBERS_NONE;

	pthread_mutex_lock(&u->lock);
	if (!u->asking && !u->lent[1].n) {
		u->asking = true;
		numbers = any_number_counts(u) ? NUMBERS_MORE : NUMBERS_ANEW;
	}
	pthread_mutex_unlock(&u->lock);
	return numbers;
}

void unmade_numbers_came(struct unmade_files *u, const struct rpc_lent *lent)
{
	pthread_mutex_lock(&u->lock);
	u->asking = false;
	if (lent->n && lent->first > u->highest && lent->first <= UINT64_MAX - lent->n) {
		u->highest = lent->first + lent->n - 1;
		u->lent[u->lent[0].n ? 1 : 0] = *lent;
	}
	pthread_mutex_unlock(&u->lock);
}

uint64_t unmade_take_number(struct unmade_files *u)
{
	struct rpc_lent *next = &u->lent[0];
	uint64_t ino = 0;

	pthread_mutex_lock(&u->lock);
	if (!next->n) {
		*next = u->lent[1];
		u->lent[1].n = 0;
	}
	if (next->n) {
		ino = next->first++;
		next->n--;
		u->ntaken++;
	}
	pthread_mutex_unlock(&u->lock);
	return ino;
}

uint64_t unmade_take_room(struct unmade_files *u)
{
	uint64_t number = unmade_take_number(u);

	pthread_mutex_lock(&u->lock);
	u->nrooms += number != 0;
	pthread_mutex_unlock(&u->lock);
	return number;
}

void unmade_lose_room(struct unmade_files *u)
{
	pthread_mutex_lock(&u->lock);
	u->nrooms--;
	u->ntaken--;
	pthread_mutex_unlock(&u->lock);
}

void unmade_forget_numbers(struct unmade_files *u)
{
	pthread_mutex_lock(&u->lock);
	memset(u->lent, 0, sizeof(u->lent));
	pthread_mutex_unlock(&u->lock);
}

void unmade_lose_number(struct unmade_files *u)
{
	pthread_mutex_lock(&u->lock);
	u->ntaken--;
	pthread_mutex_unlock(&u->lock);
}

/* ---- files ----------------------------------------------------------------------------------- */

struct unmade *unmade_new(uint64_t ino, const struct rpc_make *make)
{
	struct unmade *file = malloc(sizeof(*file));

	if (!file)
		return NULL;
	file->ino = ino;
	file->number = 0;
	file->make = *make;
	memcpy(file->name, make->name.s, make->name.len);
	file->name[make->name.len] = '\0';
	file->make.name.s = file->name;
	return file;
}

void unmade_drop(struct unmade *file)
{
	free(file);
}

void unmade_add(struct unmade_files *u, struct unmade *file)
{
	pthread_mutex_lock(&u->lock);
	u->ntaken--;
	file->number = ++u->last;
	list_add_tail(&u->all, &file->link);
	atomic_fetch_add(&u->n, 1);
	pthread_mutex_unlock(&u->lock);
}

void unmade_delete(struct unmade_files *u, struct unmade *file)
{
	if (!file)
		return;
	pthread_mutex_lock(&u->lock);
	list_del(&file->link);
	atomic_fetch_sub(&u->n, 1);
	pthread_mutex_unlock(&u->lock);
	free(file);
}

unsigned unmade_count(struct unmade_files *u)
{
	unsigned n;

	pthread_mutex_lock(&u->lock);
	n = atomic_load(&u->n) + u->ntaken - u->nrooms;
	pthread_mutex_unlock(&u->lock);
	return n;
}

static bool is_about(const struct op_about *about, const struct unmade *file)
{
	for (unsigned i = 0; i < ARRAY_SIZE(about->ino); i++)
		if (about->ino[i] == file->ino || about->ino[i] == file->make.parent)
			return true;
	return about->all;
}

uint64_t unmade_find(
	struct unmade_files *u, const struct op_about *about, uint64_t last, uint64_t *number)
{
	uint64_t ino = 0;

	pthread_mutex_lock(&u->lock);
	list_for_each (pos, &u->all) {
		const struct unmade *file = list_entry(pos, struct unmade, link);

		if (file->number <= *number || file->number > last || !is_about(about, file))
			continue;
		*number = file->number;
		ino = file->ino;
		break;
	}
	pthread_mutex_unlock(&u->lock);
	return ino;
}

bool unmade_any_in(struct unmade_files *u, uint64_t ino)
{
	const struct op_about about = {.ino = {ino}};
	uint64_t number = 0;

	return unmade_any(u) && unmade_find(u, &about, UINT64_MAX, &number);
}

uint64_t unmade_last(struct unmade_files *u)
{
	uint64_t last;

	pthread_mutex_lock(&u->lock);
	last = u->last;
	pthread_mutex_unlock(&u->lock);
	return last;
}
