#include "null_files.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/clock.h"
#include "common/base/util.h"

enum { NAME_BYTES = 256 };

struct null_file {
	char name[NAME_BYTES]; /* "": none; this and the next two under the lock */
	uint64_t nlookup;
	uint32_t mode;
	uint64_t size; /* atomic */
	int64_t mtime; /* atomic */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct null_file files[NULL_FILES];
/* Twice in a row, so that any read is contiguous. */
static uint8_t pattern[2 * NULL_PATTERN_BYTES];

void null_files_init(void)
{
	uint64_t x = 0x9e3779b97f4a7c15;

	for (size_t i = 0; i < NULL_PATTERN_BYTES; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		pattern[i] = (uint8_t)x;
	}
	memcpy(pattern + NULL_PATTERN_BYTES, pattern, NULL_PATTERN_BYTES);
}

static struct null_file *file_of(uint64_t node)
{
	return node > NULL_ROOT && node <= NULL_ROOT + NULL_FILES ? &files[node - NULL_ROOT - 1]
								  : NULL;
}

static void fill_attr(const struct null_file *file, struct null_attr *attr)
{
	*attr = (struct null_attr){
		.node = (uint64_t)(file - files) + NULL_ROOT + 1,
		.size = __atomic_load_n(&file->size, __ATOMIC_RELAXED),
		.mode = file->mode,
		.mtime = __atomic_load_n(&file->mtime, __ATOMIC_RELAXED),
	};
}

static struct null_file *find_locked(const char *name)
{
	for (size_t i = 0; i < NULL_FILES; i++)
		if (strcmp(files[i].name, name) == 0)
			return &files[i];
	return NULL;
}

static struct null_file *find_free_locked(void)
{
	for (size_t i = 0; i < NULL_FILES; i++)
		if (!files[i].name[0] && !files[i].nlookup)
			return &files[i];
	return NULL;
}

static void touch(struct null_file *file)
{
	__atomic_store_n(&file->mtime, realtime_ns(), __ATOMIC_RELAXED);
}

int null_lookup(const char *name, struct null_attr *attr)
{
	struct null_file *file;

	pthread_mutex_lock(&lock);
	file = find_locked(name);
	if (file) {
		file->nlookup++;
		fill_attr(file, attr);
	}
	pthread_mutex_unlock(&lock);
	return file ? 0 : -ENOENT;
}

int null_create(const char *name, uint32_t mode, struct null_attr *attr)
{
	struct null_file *file;

	if (!name[0] || strlen(name) >= NAME_BYTES)
		return -ENAMETOOLONG;
	pthread_mutex_lock(&lock);
	file = find_locked(name);
	if (!file) {
		file = find_free_locked();
		if (file) {
			strcpy(file->name, name);
			file->mode = S_IFREG | (mode & 07777);
			__atomic_store_n(&file->size, 0, __ATOMIC_RELAXED);
			touch(file);
		}
	}
	if (file) {
		file->nlookup++;
		fill_attr(file, attr);
	}
	pthread_mutex_unlock(&lock);
	return file ? 0 : -ENOSPC;
}

void null_forget(uint64_t node, uint64_t nlookup)
{
	struct null_file *file = file_of(node);

	if (!file)
		return;
	pthread_mutex_lock(&lock);
	file->nlookup -= min_u64(nlookup, file->nlookup);
	pthread_mutex_unlock(&lock);
}

int null_unlink(const char *name)
{
	struct null_file *file;

	pthread_mutex_lock(&lock);
	file = find_locked(name);
	if (file)
		file->name[0] = '\0';
	pthread_mutex_unlock(&lock);
	return file ? 0 : -ENOENT;
}

int null_getattr(uint64_t node, struct null_attr *attr)
{
	struct null_file *file = file_of(node);

	if (node == NULL_ROOT) {
		*attr = (struct null_attr){.node = node, .mode = S_IFDIR | 0755};
		return 0;
	}
	if (!file)
		return -ESTALE;
	pthread_mutex_lock(&lock);
	fill_attr(file, attr);
	pthread_mutex_unlock(&lock);
	return 0;
}

int null_truncate(uint64_t node, uint64_t size)
{
	struct null_file *file = file_of(node);

	if (!file)
		return -EISDIR;
	__atomic_store_n(&file->size, size, __ATOMIC_RELAXED);
	touch(file);
	return 0;
}

void null_write(uint64_t node, uint64_t off, uint64_t len)
{
	struct null_file *file = file_of(node);
	uint64_t end = off + len, size;

	if (!file)
		return;
	size = __atomic_load_n(&file->size, __ATOMIC_RELAXED);
	while (size < end && !__atomic_compare_exchange_n(&file->size, &size, end, true,
				     __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

uint32_t null_read(uint64_t node, uint64_t off, uint32_t len, const uint8_t **data)
{
	struct null_file *file = file_of(node);
	uint64_t size = file ? __atomic_load_n(&file->size, __ATOMIC_RELAXED) : 0;

	*data = pattern + off % NULL_PATTERN_BYTES;
	if (off >= size)
		return 0;
	return (uint32_t)min_u64(min_u64(len, NULL_READ_MAX), size - off);
}
