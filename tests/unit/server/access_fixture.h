/* access_fixture.h - key files in a folder of their own, and tables made from a configuration that
 * names them. */
#ifndef RMEMFS_TESTS_ACCESS_FIXTURE_H
#define RMEMFS_TESTS_ACCESS_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/util.h"
#include "server/access/access_table.h"

static char access_dir[] = "/tmp/rmemfs-test-access.XXXXXX";
static char access_conf[64], access_why[640];

static inline int access_make_dir(void **state)
{
	if (!mkdtemp(access_dir))
		return -1;
	snprintf(access_conf, sizeof(access_conf), "%s/server.conf", access_dir);
	return 0;
}

static inline int access_remove_dir(void **state)
{
	char command[80];

	snprintf(command, sizeof(command), "rm -r %s", access_dir);
	return system(command);
}

static inline const char *access_path(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", access_dir, name);
	return path;
}

/* Adds a key of this id to the file. Its secret is 32 times this byte. */
static inline void access_add_key(const char *file, const char *id, uint8_t byte)
{
	int fd = open(access_path(file), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	struct auth_key key = {0};

	assert_true(fd >= 0);
	snprintf(key.id, sizeof(key.id), "%s", id);
	memset(key.secret, byte, sizeof(key.secret));
	assert_int_equal(auth_key_write(&key, fd), 0);
	close(fd);
}

/* The text of server.conf; each '@' in it becomes the folder of the key files. */
static inline void access_read(const char *text, struct server_config *config)
{
	FILE *f = fopen(access_conf, "w");

	assert_non_null(f);
	for (; *text; text++)
		if (*text == '@')
			fputs(access_dir, f);
		else
			fputc(*text, f);
	assert_int_equal(fclose(f), 0);
	server_config_init(config);
	if (server_config_read(config, access_conf, access_why, sizeof(access_why)) ||
		server_config_finish(config, access_why, sizeof(access_why)))
		fail_msg("%s", access_why);
}

/* 0, or what access_table_new() says; the reason is in access_why. */
static inline int access_build(const char *text, struct access_table **table)
{
	struct server_config config;
	int err;

	access_read(text, &config);
	err = access_table_new(&config, NULL, table, access_why, sizeof(access_why));
	server_config_fini(&config);
	return err;
}

static inline struct access_table *access_table_of(const char *text)
{
	struct access_table *table;

	if (access_build(text, &table))
		fail_msg("%s", access_why);
	return table;
}

#endif
