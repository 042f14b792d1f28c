/* reload.c - see reload.h. */
#include "server/serve/reload.h"

#include <errno.h>

#include "common/base/log.h"
#include "common/base/service.h"
#include "server/access/access_report.h"
#include "server/config/options.h"
#include "server/session/permit.h"

static void use_table(struct server *s, struct access_table *table)
{
	size_t nkeys = table->nkeys;
	unsigned closed;

	access_current_set(&s->access, table);
	closed = permit_judge(s);
	log_event(LOG_LEVEL_NOTICE, &(struct log_fields){.event = "reload"},
		"reloaded the clients of the exports, with %zu key%s; %u channel%s closed", nkeys,
		nkeys == 1 ? "" : "s", closed, closed == 1 ? "" : "s");
}

static int read_anew(struct server *s, char *why, size_t whylen)
{
	struct server_config config;
	struct access_table *table;
	int err;

	server_config_init(&config);
	err = server_options_again(s->config, &config, why, whylen);
	if (!err)
		err = access_table_new(&config, &table, why, whylen);
	if (!err) {
		access_report_warn(table, &config);
		use_table(s, table);
	}
	server_config_fini(&config);
	return err;
}

int reload_run(struct server *s, char *why, size_t whylen)
{
	int err;

	service_reloading();
	err = read_anew(s, why, whylen);
	if (err)
		log_event(LOG_LEVEL_ERROR, &(struct log_fields){.event = "reload", .reason = why},
			"nothing is reloaded: %s", why);
	service_ready();
	return err;
}

void reload_request(struct client_request *req)
{
	char why[RPC_TEXT_MAX];
	int err;

	if (!conn_is_admin(req->conn)) {
		client_request_refuse(req, -EPERM,
			"a reload is for root and the server's user, by the socket on the "
			"server's machine");
		return;
	}
	err = reload_run(req->conn->server, why, sizeof(why));
	if (err)
		client_request_deny(req, err, "see the line before", why);
	else
		client_request_answer(req, &(struct rpc_reply){0});
}
