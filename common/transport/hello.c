/* hello.c - the first 32 bytes on every channel: magic, version, sizes, status, flags. */
#include "common/transport/transport_ops.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>

#include "common/rpc/wire.h"
#include "common/rpc/wire_version.h"

enum { MAGIC_BYTES = 8 };
static const uint8_t magic[MAGIC_BYTES] = {'r', 'm', 'e', 'm', 'f', 's', '\r', '\n'};

void transport_hello_encode(const struct transport_hello *hello, uint8_t out[TRANSPORT_HELLO_BYTES])
{
	struct wire_out w;

	wire_out_init(&w, out, TRANSPORT_HELLO_BYTES);
	wire_put(&w, magic, MAGIC_BYTES);
	wire_put_u32(&w, hello->version);
	wire_put_u32(&w, hello->msg_bytes);
	wire_put_u32(&w, hello->nrecv);
	wire_put_u32(&w, hello->nwork);
	wire_put_u32(&w, (uint32_t)hello->status);
	wire_put_u32(&w, hello->flags);
	assert(!w.overflow && wire_out_len(&w) == TRANSPORT_HELLO_BYTES);
}

int transport_hello_decode(const uint8_t in[TRANSPORT_HELLO_BYTES], struct transport_hello *hello)
{
	struct wire_in r;

	wire_in_init(&r, in, TRANSPORT_HELLO_BYTES);
	if (memcmp(wire_get_ref(&r, MAGIC_BYTES), magic, MAGIC_BYTES) != 0)
		return -EPROTO;
	hello->version = wire_get_u32(&r);
	hello->msg_bytes = wire_get_u32(&r);
	hello->nrecv = wire_get_u32(&r);
	hello->nwork = wire_get_u32(&r);
	hello->status = (int32_t)wire_get_u32(&r);
	hello->flags = wire_get_u32(&r);
	return 0;
}

static_assert(HELLO_WHY_BYTES >= (int)WIRE_VERSION_TEXT_BYTES, "it has the reason");

int transport_hello_judge(
	const uint8_t in[TRANSPORT_HELLO_BYTES], uint32_t *version, char why[HELLO_WHY_BYTES])
{
	struct transport_hello hello;

	*version = wire_version();
	if (transport_hello_decode(in, &hello)) {
		snprintf(why, HELLO_WHY_BYTES, "it does not speak our protocol");
		return -EPROTO;
	}
	if (!wire_version_is_spoken(*version, hello.version)) {
		wire_version_refused_client(hello.version, why);
		return -EPROTONOSUPPORT;
	}
	*version = hello.version;
	return 0;
}
