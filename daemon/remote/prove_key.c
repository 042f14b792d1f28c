/* prove_key.c - see prove_key.h. */
#include "daemon/remote/prove_key.h"

#include <errno.h>

#include "common/auth/auth_key_file.h"

static int send_flight(void *user, const struct rpc_request *req)
{
	return remote_channel_send(user, req);
}

static struct key_proof_channel channel_of(struct remote *r)
{
	return (struct key_proof_channel){
		.channel = r->ch,
		.kind = r->path->address.kind,
		.send = send_flight,
		.user = r,
		.server = r->session->server,
	};
}

int prove_key_begin(struct remote *r, char *why, size_t whylen)
{
	const struct key_proof_channel on = channel_of(r);
	struct auth_key_file file = {0};
	int err = auth_key_file_read(r->session->key_file, &file, why, whylen);

	prove_key_forget(r);
	if (!err) {
		r->proving.nkeys = (unsigned)file.n;
		if (r->proving.at >= file.n)
			r->proving.at = 0;
		err = key_proof_begin(&r->proving.proof, r->session->handshakes,
			&file.v[r->proving.at], &on, why, whylen);
	}
	auth_key_file_free(&file);
	return err;
}

int prove_key_answered(struct remote *r, const struct rpc_reply *rep, char *why, size_t whylen)
{
	const struct key_proof_channel on = channel_of(r);
	int ret = key_proof_answered(&r->proving.proof, &on, rep, why, whylen);

	/* The next connection tries the next key. */
	if (ret == -EACCES) {
		r->proving.nrefused++;
		r->proving.at++;
	}
	return ret;
}

void prove_key_forget(struct remote *r)
{
	key_proof_forget(&r->proving.proof);
}

bool prove_key_has_more(const struct remote *r)
{
	return r->proving.nrefused < r->proving.nkeys;
}

void prove_key_accepted(struct remote *r)
{
	r->proving.nrefused = 0;
}
