/* exit_status.h - exit statuses of rmemfs-server; its systemd unit acts on them. */
#ifndef RMEMFS_SERVER_BASE_EXIT_STATUS_H
#define RMEMFS_SERVER_BASE_EXIT_STATUS_H

enum server_status {
	SERVER_DONE = 0,
	/* Another start may succeed: an address is not there yet or is taken, a name is not
	 * resolved, a device is missing. Also the end of a server that had served. */
	SERVER_FAILED = 1,
	/* EX_CONFIG of sysexits.h: each start is refused until somebody changes the configuration,
	 * the machine or the memory directory. The unit's RestartPreventExitStatus= names it. */
	SERVER_REFUSED = 78,
};

#endif
