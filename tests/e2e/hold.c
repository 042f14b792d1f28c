/* hold.c - keeps one thread of a process from running, and the others not.
 *
 *     hold PID NAME   stops the thread of that name and prints "held"; it goes on when we end
 */
#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

static int is_named(const char *pid, const char *tid, const char *name)
{
	char path[128], line[32] = "";
	FILE *comm;

	snprintf(path, sizeof(path), "/proc/%.32s/task/%.32s/comm", pid, tid);
	comm = fopen(path, "re");
	if (!comm)
		return 0;
	if (!fgets(line, sizeof(line), comm))
		line[0] = '\0';
	fclose(comm);
	line[strcspn(line, "\n")] = '\0';
	return strcmp(line, name) == 0;
}

static pid_t find_thread(const char *pid, const char *name)
{
	const struct dirent *entry;
	pid_t found = 0;
	char path[128];
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%.32s/task", pid);
	tasks = opendir(path);
	if (!tasks)
		err(1, "%s", path);
	while ((entry = readdir(tasks)) != NULL)
		if (is_named(pid, entry->d_name, name))
			found = (pid_t)atoi(entry->d_name);
	closedir(tasks);
	return found;
}

int main(int argc, char **argv)
{
	int status;
	pid_t tid;

	if (argc != 3)
		errx(2, "hold PID NAME");
	tid = find_thread(argv[1], argv[2]);
	if (!tid)
		errx(1, "process %s has no thread %s", argv[1], argv[2]);
	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) || ptrace(PTRACE_INTERRUPT, tid, NULL, NULL))
		err(1, "thread %d can't be stopped", tid);
	if (waitpid(tid, &status, __WALL) != tid || !WIFSTOPPED(status))
		err(1, "thread %d did not stop", tid);
	puts("held");
	fflush(stdout);
	for (;;)
		pause();
}
