/* figure.h - numbers as people read them: four digits at most, and a unit. Each returns buf. */
#ifndef RMEMFS_DAEMON_METRICS_FIGURE_H
#define RMEMFS_DAEMON_METRICS_FIGURE_H

enum { FIGURE_CHARS = 64 };

/* NAN is a dash, everywhere. */
const char *figure_bytes(double bytes, char buf[FIGURE_CHARS]);     /* "71.2 MiB" */
const char *figure_byte_rate(double bytes, char buf[FIGURE_CHARS]); /* "71.2 MiB/s" */
const char *figure_count(double n, char buf[FIGURE_CHARS]);         /* "1820", "18.2 k" */
const char *figure_rate(double n, char buf[FIGURE_CHARS]);          /* "18.2 k/s" */
/* "41.0 us"; INT64_MAX is a time above the largest bound of a daemon's histogram: "> 68 s". */
const char *figure_time(double ns, char buf[FIGURE_CHARS]);
/* "41 %", "< 1 %"; all 0: a dash. Rounded down. */
const char *figure_share(double part, double all, char buf[FIGURE_CHARS]);

#endif
