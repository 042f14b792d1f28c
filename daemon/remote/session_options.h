/* session_options.h - what a mount wants of its session, and what an earlier process knows of it. */
#ifndef RMEMFS_DAEMON_REMOTE_SESSION_OPTIONS_H
#define RMEMFS_DAEMON_REMOTE_SESSION_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/transport/address.h"
#include "common/transport/protection.h"
#include "common/transport/transport.h"

/* The findings of a session that changes between tcp and verbs. A process that did not know it
 * would try verbs at once. */
enum { VERBS_WHY_BYTES = 512 };
struct session_verbs {
	bool refused;        /* by the export, for good */
	uint32_t penalty_ms; /* the last wait after channels over verbs did not last; 0: none */
	uint32_t again_ms;   /* verbs is not tried for so long from now on */
	char why[VERBS_WHY_BYTES]; /* the session is not on verbs; "": it is, or may not be */
};

struct session_options {
	struct source source;
	char mountpoint[4096];
	bool auto_transport; /* else transport */
	bool without_verbs;  /* auto_transport does not take it */
	enum transport_kind transport;
	unsigned port;        /* 0: not given */
	const char *key_file; /* NULL: the mount has no key */
	enum protection protection;
	bool read_only;
	bool exclusive; /* no other client may have the export meanwhile */
	bool sharing;   /* other clients may write what this mount writes: lease.h */
	bool converts;  /* the same from the time on at which another client comes: conversion.h */
	unsigned connect_timeout_ms;
	int64_t connect_until_ms; /* by now_ms(); 0: connect_timeout_ms from session_new() on */
	unsigned peer_timeout_ms; /* a connection that is silent for so long is given up */
	unsigned soft_ms;         /* operations without the server get EIO after this; 0: never */
	unsigned io_threads;      /* 1 .. IO_THREADS_MAX */
	bool exit_when_lost;      /* for the log: the caller ends a lost session's mount */
	uint64_t instance;        /* of this run */
	/* NULL; or the session is taken over from another process, which has it at this address:
	 * session_handover.h. The owner is told later. */
	const struct transport_address *taken;
	const struct session_verbs *verbs; /* of that process; NULL: nothing is known */
};

#endif
