/* exit_status.h - exit statuses of rmemfs-server; the unit goes by them. */
#ifndef RMEMFS_SERVER_BASE_EXIT_STATUS_H
#define RMEMFS_SERVER_BASE_EXIT_STATUS_H

enum server_status {
	SERVER_DONE = 0,
	/* It may go well another time: an address that is not there yet or is taken, a name that is
	 * not resolved, a device that is missing. Also the end of a server that had served. */
	SERVER_FAILED = 1,
	/* EX_CONFIG of sysexits.h: another start is refused, too, until somebody changes the
	 * configuration, the machine or the memory directory. RestartPreventExitStatus= names it.
	 */
	SERVER_REFUSED = 78,
};

#endif
