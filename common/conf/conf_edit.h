/* conf_edit.h - changes one value in the text of a configuration file, and leaves the rest as it is,
 * comments too.
 *
 *     exports = ( { name = "data"; size = "64GiB"; } );     group "data" of the list "exports"
 *
 * THREADS    Any.
 * ERRORS     0 or -errno.
 */
#ifndef RMEMFS_COMMON_CONF_CONF_EDIT_H
#define RMEMFS_COMMON_CONF_CONF_EDIT_H

/* A value: of the key in the group of the list that has id for its key `id_key`. */
struct conf_place {
	const char *list, *id_key, *id, *key;
};

/* *out: a malloced copy of the text with this value, between quotes, which has neither quotes nor
 * backslashes. -ENOENT: the text has no such place with a plain value; -EINVAL: it can't be read,
 * or is too deep. */
int conf_edit(const char *text, const struct conf_place *place, const char *value, char **out);

#endif
