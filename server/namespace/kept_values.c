/* kept_values.c - see kept_values.h. */
#include "server/namespace/kept_values.h"

#include <stdlib.h>

void kept_values_drop(struct kept_values *k, uint32_t number)
{
	struct kept_value *value = &k->v[number - 1];

	free(value->data);
	*value = (struct kept_value){0};
}

void kept_values_drop_all(struct kept_values *k)
{
	for (uint32_t number = 1; number <= GETXATTR_KEPT_MAX; number++)
		kept_values_drop(k, number);
}

void kept_values_put(struct kept_values *k, uint32_t number, const struct kept_value *value)
{
	kept_values_drop(k, number);
	k->v[number - 1] = *value;
}

const struct kept_value *kept_values_find(
	const struct kept_values *k, uint32_t number, uint64_t ino)
{
	const struct kept_value *value = &k->v[number - 1];

	return value->data && value->ino == ino ? value : NULL;
}
