#include "server/config/config_quotas.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>

#include "common/base/types.h"
#include "common/base/util.h"
#include "common/base/word.h"

#define KEY(key) .name = #key, .offset = offsetof(struct quota_config, key)

enum { OWNER_NAME_MAX = 255 };

const struct conf_key config_quotas_keys[] = {
	{KEY(user), .type = CONF_ID, .min = 1, .max = OWNER_NAME_MAX},
	{KEY(group), .type = CONF_ID, .min = 1, .max = OWNER_NAME_MAX},
	{KEY(size), .type = CONF_SIZE, .min = PAGE_BYTES, .multiple = PAGE_BYTES},
	{KEY(inodes), .type = CONF_UINT, .min = 1},
	{0},
};

/* The place of an element, for a complaint. */
struct at {
	const char *path;
	unsigned line;
	char *why;
	size_t whylen;
};

__attribute__((format(printf, 3, 4))) static int refuse(
	const struct at *at, const char *key, const char *format, ...)
{
	char reason[384];
	va_list args;

	va_start(args, format);
	vsnprintf(reason, sizeof(reason), format, args);
	va_end(args);
	snprintf(at->why, at->whylen, "%s:%u: %s: %s", at->path, at->line, key, reason);
	return -EINVAL;
}

/* Digits only: names of users may begin with some. */
static bool parse_id(const char *text, uint32_t *id)
{
	size_t len = strlen(text);
	unsigned long long n;

	if (strspn(text, "0123456789") != len || len > 10)
		return false;
	n = strtoull(text, NULL, 10);
	*id = (uint32_t)n;
	return n < UINT32_MAX;
}

static bool find_user(const char *name, uint32_t *id)
{
	const struct passwd *user = getpwnam(name);

	if (user)
		*id = user->pw_uid;
	return user;
}

static bool find_group(const char *name, uint32_t *id)
{
	const struct group *group = getgrnam(name);

	if (group)
		*id = group->gr_gid;
	return group;
}

static int resolve_owner(
	const struct quota_config *quota, struct quota_limit *limit, const struct at *at)
{
	const char *name = quota->user ? quota->user : quota->group;
	const char *key = quota->user ? "user" : "group";
	char quoted[WORD_QUOTED_BYTES];
	bool found;

	limit->kind = quota->user ? QUOTA_USER : QUOTA_GROUP;
	limit->everybody = strcmp(name, "*") == 0;
	if (limit->everybody || parse_id(name, &limit->id))
		return 0;
	found = quota->user ? find_user(name, &limit->id) : find_group(name, &limit->id);
	if (found)
		return 0;
	return refuse(at, key, "%s: there is no such %s on this machine; a number needs none",
		word_quote(name, quoted), key);
}

static int resolve(const struct quota_config *quota, struct quota_limit *limit, const struct at *at)
{
	if (!quota->user == !quota->group)
		return refuse(at, "quotas", "each needs a user or a group, and not both");
	if (!quota->size && !quota->inodes)
		return refuse(at, "quotas", "each needs a size, inodes or both");
	limit->npages = quota->size / PAGE_BYTES;
	limit->inodes = quota->inodes;
	return resolve_owner(quota, limit, at);
}

static bool same_owner(const struct quota_limit *a, const struct quota_limit *b)
{
	return a->kind == b->kind && a->everybody == b->everybody && a->id == b->id;
}

static int check_twice(const struct quota_limit *limits, size_t i, const struct quota_config *quota,
	const struct at *at)
{
	const char *name = quota->user ? quota->user : quota->group;
	char quoted[WORD_QUOTED_BYTES];

	for (size_t j = 0; j < i; j++)
		if (same_owner(&limits[j], &limits[i]))
			return refuse(at, quota->user ? "user" : "group",
				"%s: has another quota in this export", word_quote(name, quoted));
	return 0;
}

int config_quotas_resolve(const struct conf_groups *quotas, const char *path,
	struct quota_limit **limits, char *why, size_t whylen)
{
	const struct quota_config *v = quotas->v;
	struct quota_limit *made = calloc(quotas->n + 1, sizeof(*made));
	int err = made ? 0 : -ENOMEM;

	for (size_t i = 0; !err && i < quotas->n; i++) {
		const struct at at = {path, quotas->lines[i], why, whylen};

		err = resolve(&v[i], &made[i], &at);
		if (!err)
			err = check_twice(made, i, &v[i], &at);
	}
	if (err)
		free(made);
	else
		*limits = made;
	return err;
}
