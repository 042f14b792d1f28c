/* gather_show.h - the sections of a report that are no commands. Each prints to standard output, in
 * a process of its own, and may block (gather.h). */
#ifndef RMEMFS_DAEMON_CTL_SURVEY_GATHER_SHOW_H
#define RMEMFS_DAEMON_CTL_SURVEY_GATHER_SHOW_H

void gather_show_program(void);
/* Their files, whose names have the versions. */
void gather_show_libraries(void);
void gather_show_system(void);
void gather_show_health(void);
void gather_show_mounts(void);
void gather_show_server(void);
void gather_show_doctor(void);
/* Of all processes of rmemfs. */
void gather_show_limits(void);
/* Without comments, and without files of keys. */
void gather_show_configuration(void);
void gather_show_keys(void);

#endif
