/* docs_metrics.c - all metrics that rmemfs-metrics can serve, with all of their labels, as it writes
 * them: of a mount with each kind of operation, and of a server with an export.
 */
#include <jansson.h>
#include <stdlib.h>

#include "daemon/metrics/openmetrics.h"
#include "daemon/request/counters.h"

static json_t *make_mount(void)
{
	json_t *operations = json_object();

	for (int op = 0; op < OP_NOPS; op++)
		json_object_set_new(
			operations, request_op_name((enum request_op)op), json_object());
	return json_pack("{s:i, s:s, s:s, s:{s:s, s:s, s:s, s:s, s:{s:i}, s:o}}", "connection", 1,
		"mountpoint", "/mnt", "source", "host:/export", "answer", "state", "connected",
		"transport", "tcp", "protection", "all", "version", "0", "waiting", "server", 1,
		"operations", operations);
}

int main(void)
{
	json_t *mounts = json_pack("[o]", make_mount());
	json_t *server = json_pack(
		"{s:[{s:s}], s:[{s:s}]}", "exports", "name", "export", "keys", "key", "web-k7q2");
	const struct observed seen = {
		.mounts = mounts, .server = server, .server_wanted = true, .details = true};

	openmetrics_write(stdout, &seen);
	json_decref(mounts);
	json_decref(server);
	return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
