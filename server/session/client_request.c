/* client_request.c - refusals in words, and the export that a request names. */
#include "server/session/client_request.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "common/base/printable.h"
#include "server/session/conn.h"

void client_request_refuse(struct client_request *req, int err, const char *format, ...)
{
	char text[RPC_TEXT_MAX + 1];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	printable_clean_string(text);
	client_request_deny(req, err, text, text);
}

struct export *client_request_export(struct client_request *req, const struct rpc_str *name)
{
	struct exports *exports = req->conn->server->exports;
	struct export *export = exports_find(exports, name);
	char names[RPC_TEXT_MAX];

	if (export)
		return export;
	if (conn_is_stranger(req->conn)) {
		client_request_refuse(req, -ENOENT,
			"no export '%.*s'; 'rmemfsctl status' on the server lists them", name->len,
			name->s);
		return NULL;
	}
	exports_names(exports, names, sizeof(names));
	client_request_refuse(
		req, -ENOENT, "no export '%.*s'; exports: %s", name->len, name->s, names);
	return NULL;
}
