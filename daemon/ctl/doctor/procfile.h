/* procfile.h - reads the small files by which the kernel tells of itself: /proc and /sys. */
#ifndef RMEMFS_DAEMON_CTL_DOCTOR_PROCFILE_H
#define RMEMFS_DAEMON_CTL_DOCTOR_PROCFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads up to len - 1 bytes, without the newline at the end. False, and buf is "": the file can't
 * be read. */
bool procfile_text(const char *path, char *buf, size_t len);
/* A decimal number at the file's beginning. */
bool procfile_number(const char *path, int64_t *number);
/* The number behind "KEY:" at the beginning of a line, in base 10 or 16. */
bool procfile_field(const char *path, const char *key, int base, uint64_t *number);
/* The chosen word of "always [madvise] never". */
void procfile_choice(const char *path, char *buf, size_t len);

/* The number of entries of a directory; 0: it is not there. */
unsigned procfile_entries(const char *path);

/* The name of a process; "" if it is gone. */
void procfile_name(int pid, char *buf, size_t len);

#endif
