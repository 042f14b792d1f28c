/* main.c - rmemfs-server: serves this machine's memory to rmemfs clients. */
#include <errno.h>
#include <stdlib.h>

#include "common/log.h"
#include "server/check_dir.h"
#include "server/options.h"
#include "server/server.h"

static int serve(const struct server_config *config)
{
	struct server *server;
	int err;

	log_init("rmemfs-server", config->log_level);
	err = server_new(config, &server);
	if (err)
		return err == -EINTR ? EXIT_SUCCESS : EXIT_FAILURE;
	err = server_run(server);
	server_delete(server);
	return err ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	struct server_config config;
	int status = EXIT_SUCCESS;

	server_config_init(&config);
	switch (options_parse(argc, argv, &config)) {
	case OPTIONS_RUN:
		status = serve(&config);
		break;
	case OPTIONS_CHECK:
		log_init_command("rmemfs-server", LOG_LEVEL_WARNING);
		status = (int)check_directory(config.check);
		break;
	case OPTIONS_WRONG:
		status = config.check ? CHECK_IMPOSSIBLE : EXIT_FAILURE;
		break;
	case OPTIONS_DONE:
		break;
	}
	server_config_fini(&config);
	return status;
}
