/* main.c - rmemfs-server: serves this machine's memory to rmemfs clients. */
#include <errno.h>
#include <stdlib.h>

#include "common/auth/auth_memory.h"
#include "common/base/log.h"
#include "common/base/service.h"
#include "common/base/util.h"
#include "common/sandbox/sandbox.h"
#include "server/check/check_dir.h"
#include "server/config/options.h"
#include "server/base/refusal.h"
#include "server/session/context.h"
#include "server/serve/ports.h"
#include "server/serve/start_check.h"

/* Before the first thread. */
static int enter_sandbox(const struct server_config *config)
{
	size_t n = config->listen.n;
	autofree uint16_t *ports = calloc(n, sizeof(*ports));

	if (!ports)
		return -ENOMEM;
	sandbox_enter_server(ports, ports_of_tcp(config, ports));
	return 0;
}

static enum server_status main_serve(struct server_config *config)
{
	struct server *server;
	enum server_status status;
	int err;

	log_init("rmemfs-server", config->log_level);
	refusal_watch();
	err = enter_sandbox(config);
	if (!err)
		err = server_new(config, &server);
	status = refusal_end(err);
	if (err)
		return status;
	err = server_run(server);
	server_delete(server);
	return err ? SERVER_FAILED : SERVER_DONE;
}

int main(int argc, char **argv)
{
	struct server_config config;
	int status = SERVER_DONE;

	auth_memory_init();
	service_open();
	server_config_init(&config);
	switch (server_options_parse(argc, argv, &config)) {
	case OPTIONS_RUN:
		status = (int)main_serve(&config);
		break;
	case OPTIONS_CHECK_CONFIG:
		log_init_command("rmemfs-server", LOG_LEVEL_WARNING);
		status = (int)start_check(&config);
		break;
	case OPTIONS_CHECK:
		log_init_command("rmemfs-server", LOG_LEVEL_WARNING);
		status = (int)check_directory(config.check);
		break;
	case OPTIONS_WRONG:
		status = config.check ? (int)CHECK_IMPOSSIBLE : (int)SERVER_REFUSED;
		break;
	case OPTIONS_UNRESOLVED:
		status = SERVER_FAILED;
		break;
	case OPTIONS_DONE:
		break;
	}
	server_config_fini(&config);
	return status;
}
