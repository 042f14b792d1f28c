/* conf.h - reads configuration files (libconfig) by a table of the keys that may be in them.
 *
 * A program describes its keys once; the reader checks names, types and ranges and stores the
 * values. Errors read "file:line: key: reason". Unknown keys are errors; libconfig itself refuses a
 * repeated key. Command lines set keys of the same tables by conf_set().
 *
 * ERRORS     0, or -errno with a line in why: -ENOENT and -EACCES from opening the file, -EINVAL
 * for bad contents. After a failure conf_free() frees all that was stored.
 */
#ifndef RMEMFS_COMMON_CONF_CONF_H
#define RMEMFS_COMMON_CONF_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/word.h"

enum conf_type {
	CONF_BOOL, /* bool */
	CONF_UINT, /* uint64_t, within min..max; an integer */
	CONF_SIZE, /* uint64_t, within min..max; a string as size_parse() takes it, or an integer */
	CONF_ENUM, /* an enum or int: the value of one of words */
	CONF_STRING,  /* char *, malloced; min..max bytes long */
	CONF_ID,      /* the same; or an integer, as its digits */
	CONF_STRINGS, /* struct conf_strings: a string, or an array or list of strings */
	CONF_GROUPS,  /* a list of groups, each read by keys into one element: see element */
};

/* Lists keep the line of each element; 0: the element comes from no file. */
struct conf_strings {
	char **v;
	unsigned *lines;
	size_t n;
};

/* v is malloced, elements of element_bytes. */
struct conf_groups {
	void *v;
	unsigned *lines;
	size_t n;
};

struct conf_key {
	const char *name;
	enum conf_type type;
	size_t offset;            /* in the struct that conf_read fills */
	uint64_t min, max;        /* max 0: no bound */
	uint64_t multiple;        /* CONF_SIZE: a whole number of these; 0: any */
	const struct word *words; /* CONF_ENUM */
	/* CONF_STRING: returns NULL if text is valid, else "must be ..."; NULL: any text is
	 * valid. */
	const char *(*check)(const char *text);
	const struct conf_key *keys; /* CONF_GROUPS: table of the element, ended by a NULL name */
	size_t element_bytes;
	bool required;
};

/* Keys of another file that users may write into this one by mistake. */
struct conf_elsewhere {
	const char *file;         /* "the clients' client.conf" */
	const char *const *names; /* ended by NULL */
};

bool conf_is_elsewhere(const struct conf_elsewhere *elsewhere, const char *name);

/* Reads path by the table (ended by a NULL name) into out. Before, out holds the defaults; its
 * strings are malloced or NULL. elsewhere may be NULL. An empty file is valid, an empty list is
 * not. */
int conf_read(const char *path, const struct conf_key *keys, const struct conf_elsewhere *elsewhere,
	void *out, char *why, size_t whylen);

/* conf_free() frees all that conf_read() may have stored in out; conf_clear() does so for one
 * key. */
void conf_free(const struct conf_key *keys, void *out);
void conf_clear(const struct conf_key *key, void *out);

/* The key of that name, or NULL. */
const struct conf_key *conf_find(const struct conf_key *keys, const char *name);

/* Sets a key that is no list from text: "true", "7470", "64GiB", a word. -EINVAL: must then says
 * what the value must be, and names neither key nor value. -ENOMEM. */
int conf_set(const struct conf_key *key, void *out, const char *text, char *must, size_t mustlen);

/* Whether two structs have the same value of a key, which has no groups. Of strings the order
 * counts. */
bool conf_equal(const struct conf_key *key, const void *a, const void *b);

/* Add to a list. conf_add_string() copies text; conf_add_group() returns an element of zeros, or
 * NULL if memory is short. */
int conf_add_string(struct conf_strings *strings, const char *text, unsigned line);
void conf_strings_free(struct conf_strings *strings);
void *conf_add_group(const struct conf_key *key, struct conf_groups *groups, unsigned line);
/* Moves all elements to the end of another list of the same key. -ENOMEM: nothing has moved. */
int conf_move_groups(const struct conf_key *key, struct conf_groups *from, struct conf_groups *to);
/* Frees one element; those behind it move up. */
void conf_remove_group(const struct conf_key *key, struct conf_groups *groups, size_t i);

/* "512MiB", "64GiB", "4096": a number and one of B, KiB, MiB, GiB, TiB (or none: bytes).
 * -EINVAL: not that; -ERANGE: beyond 2^63. */
int size_parse(const char *text, uint64_t *bytes);
/* "1.5GiB", rounded, for people; "512MiB" where it is a whole number of a unit. */
void size_format(uint64_t bytes, char *buf, size_t len);

#endif
