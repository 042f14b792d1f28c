#include "common/auth/auth_memory.h"

#include <openssl/crypto.h>

#include "common/base/log.h"
#include "common/base/nodump.h"

/* file and line are those of the caller in OpenSSL. */
static void *alloc(size_t bytes, const char *file, int line)
{
	(void)file;
	(void)line;
	return nodump_alloc(bytes);
}

static void *resize(void *p, size_t bytes, const char *file, int line)
{
	(void)file;
	(void)line;
	return nodump_realloc(p, bytes);
}

static void release(void *p, const char *file, int line)
{
	(void)file;
	(void)line;
	nodump_free(p);
}

void auth_memory_init(void)
{
	if (!CRYPTO_set_mem_functions(alloc, resize, release))
		log_warning("keys can get into core dumps: OpenSSL has allocated memory before");
}
