/* inode_names.h - the names of a directory, as far as they are known (dir_names.h).
 *
 * All of them are known of a directory that this mount has made. A mount that changes names by
 * itself (names=local) also learns them from READDIRs that bring a whole list, one after another,
 * while it changes no name of the directory.
 *
 * THREADS    Any; struct names_list belongs to its request.
 */
#ifndef RMEMFS_DAEMON_FILE_INODE_NAMES_H
#define RMEMFS_DAEMON_FILE_INODE_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct inode;

/* Before a request is sent that may make the name. */
void inode_names_add(struct inode *dir, const char *name);
/* After the name was taken away. */
void inode_names_remove(struct inode *dir, const char *name);
/* Whether the directory is known to lack the name. */
bool inode_names_lack(struct inode *dir, const char *name);

/* ---- lists ----------------------------------------------------------------------------------- */

/* Begins and ends of changes of the directory's names. A list that was asked for before one of them
 * says nothing of the names after it. */
void inode_names_count(struct inode *dir);

/* A READDIR. */
struct names_list {
	uint64_t changes; /* that were counted before the server was asked */
	uint64_t after;   /* the cookie of the last entry; 0: none */
	bool sure;        /* no change was under way then */
};

/* Before the server is asked for what comes after that cookie. */
void inode_names_list_begin(struct inode *dir, struct names_list *list, uint64_t after);
bool inode_names_list_is_new(struct inode *dir, const struct names_list *list);
/* Its next entry. */
void inode_names_listed(
	struct inode *dir, struct names_list *list, const char *name, size_t len, uint64_t cookie);
/* The server has no more. */
void inode_names_list_end(struct inode *dir, const struct names_list *list);

#endif
