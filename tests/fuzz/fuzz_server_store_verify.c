/* fuzz_server_store_verify.c - any bytes as a store's file, or a real store with any bytes changed.
 * Either it is found damaged, or LMDB reads and writes it without harm and it is whole afterwards.
 *
 * The first byte of an input decides. 0: the rest is the file. Else the rest are changes of a
 * store, each {page (2 bytes), offset in the page (2 bytes), length (1 byte), bytes}. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/base/util.h"
#include "server/store/store.h"
#include "server/store/store_verify.h"

enum { STORE_BYTES = 1 << 20, RECORDS = 120, BIG = 9000, CHANGE_BYTES = 5 };

static uint8_t *base, *bytes; /* STORE_BYTES each, aligned as pages */
static uint64_t used_pages;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

/* In memory, under a name beside which LMDB can have its lock file. */
static const char path[] = "store.fuzzed";

static int new_file(void)
{
	int fd = memfd_create("store", MFD_CLOEXEC);
	char target[64];

	assert(fd >= 0);
	snprintf(target, sizeof(target), "/proc/self/fd/%d", fd);
	unlink(path);
	assert(symlink(target, path) == 0);
	return fd;
}

static void end_file(int fd)
{
	unlink(path);
	close(fd);
}

static struct store *open_store(void)
{
	struct store *s;
	char why[256];
	bool is_new;
	int err = store_open(path, STORE_BYTES, &s, &is_new, why, sizeof(why));

	if (err)
		fprintf(stderr, "%s\n", why);
	assert(!err);
	return s;
}

/* One transaction in each table: it adds some records, deletes some, and one record has pages of
 * its own. */
static void change(struct store *s, uint64_t from)
{
	static uint8_t data[BIG];

	assert(store_begin(s) == 0);
	for (uint64_t i = from; i < from + RECORDS; i++) {
		enum store_table table = (enum store_table)(i % STORE_TABLES);
		struct store_key key = {i * 7919 % 1000, i};

		data[0] = (uint8_t)i;
		assert(store_put(s, table, key, data, i % 97 ? 40 + i % 50 : BIG) == 0);
		if (i % 5 == 0)
			assert(store_del(s, table, key) == 0);
	}
	assert(store_commit(s) == 0);
}

/* Every record that is found was stored before: its sum shows that. */
static void read_all(struct store *s)
{
	assert(store_begin_read(s) == 0);
	for (int i = 0; i < STORE_TABLES; i++) {
		enum store_table table = (enum store_table)i;
		struct store_key key;
		struct store_val val;
		int err = store_seek(s, table, STORE_KEY(0), &key, &val);

		while (!err)
			err = store_next(s, table, &key, &val);
		assert(err == -ENOENT);
	}
	store_abort(s);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct store_usage usage;
	struct store *s;
	int fd = new_file();

	s = open_store();
	for (uint64_t i = 0; i < 10; i++)
		change(s, i * RECORDS / 2);
	store_usage(s, &usage);
	used_pages = usage.used_pages;
	store_close(s);
	base = mmap(NULL, STORE_BYTES, PROT_READ, MAP_PRIVATE, fd, 0);
	bytes = mmap(NULL, STORE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert(base != MAP_FAILED && bytes != MAP_FAILED);
	end_file(fd);
	return 0;
}

static void patch(const uint8_t *data, size_t size)
{
	memcpy(bytes, base, STORE_BYTES);
	while (size > CHANGE_BYTES) {
		size_t page = (data[0] | (size_t)data[1] << 8) % used_pages;
		size_t offset = (data[2] | (size_t)data[3] << 8) % PAGE_BYTES;
		size_t len = min_u64(min_u64(data[4], size - CHANGE_BYTES), PAGE_BYTES - offset);

		memcpy(bytes + page * PAGE_BYTES + offset, data + CHANGE_BYTES, len);
		data += CHANGE_BYTES + len;
		size -= CHANGE_BYTES + len;
	}
}

/* LMDB gets a file that passed the check. */
static void use(void)
{
	struct store *s;
	int fd = new_file();

	assert(write(fd, bytes, STORE_BYTES) == STORE_BYTES);
	s = open_store();
	read_all(s);
	change(s, RECORDS);
	read_all(s);
	store_close(s);
	store_close(open_store()); /* verifies it */
	end_file(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char why[256];

	if (!size)
		return 0;
	if (data[0]) {
		patch(data + 1, size - 1);
		if (store_verify_bytes(bytes, STORE_BYTES, why, sizeof(why)) == 0)
			use();
		return 0;
	}
	size = min_u64(size - 1, STORE_BYTES);
	memcpy(bytes, data + 1, size);
	store_verify_bytes(bytes, size, why, sizeof(why));
	return 0;
}
