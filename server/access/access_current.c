#include "server/access/access_current.h"

void access_current_init(struct access_current *current, struct access_table *table)
{
	pthread_mutex_init(&current->lock, NULL);
	current->table = table;
}

void access_current_fini(struct access_current *current)
{
	access_table_put(current->table);
	pthread_mutex_destroy(&current->lock);
}

struct access_table *access_current_get(struct access_current *current)
{
	struct access_table *table;

	pthread_mutex_lock(&current->lock);
	table = access_table_get(current->table);
	pthread_mutex_unlock(&current->lock);
	return table;
}

void access_current_set(struct access_current *current, struct access_table *table)
{
	struct access_table *before;

	pthread_mutex_lock(&current->lock);
	before = current->table;
	current->table = table;
	pthread_mutex_unlock(&current->lock);
	access_table_put(before);
}
