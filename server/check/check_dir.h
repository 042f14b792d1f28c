/* check_dir.h - checks the memory directory of a stopped server: its boot id, the regions, the
 * store's file and all that is in it. All exports count, whatever the configuration names.
 *
 * Holds the directory's lock meanwhile, so that no server starts on it, and changes nothing.
 * Problems go to standard output, one a line, and a summary after them. Progress goes to standard
 * error if that is a terminal.
 *
 * COST       A look at every record and every free page; a byte of memory for each page.
 */
#ifndef RMEMFS_SERVER_CHECK_CHECK_DIR_H
#define RMEMFS_SERVER_CHECK_CHECK_DIR_H

/* Exit statuses. */
enum check_result {
	CHECK_CLEAN,
	CHECK_PROBLEMS,
	CHECK_IMPOSSIBLE /* in use, no memory directory, ...; the reason is logged */
};

enum check_result check_directory(const char *path);

#endif
