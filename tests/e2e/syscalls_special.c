/* syscalls_special.c - devices, FIFOs and sockets, and that they work. */
#include "syscalls.h"

#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <sys/un.h>

static void every_type(void)
{
	struct stat st;

	works(mknod("c", S_IFCHR | 0620, makedev(1, 3)));
	works(mknod("b", S_IFBLK | 0660, makedev(259, 70000)));
	works(mknod("p", S_IFIFO | 0600, 0));
	works(mknod("s", S_IFSOCK | 0755, 0));
	works(mknod("f", S_IFREG | 0640, 0));
	works(mknod("g", 0644, 0));
	works(stat("c", &st));
	equal(st.st_mode, S_IFCHR | 0620);
	equal(st.st_rdev, makedev(1, 3));
	equal(st.st_size, 0);
	works(stat("b", &st));
	equal(st.st_mode, S_IFBLK | 0660);
	equal(major(st.st_rdev), 259);
	equal(minor(st.st_rdev), 70000);
	equal(type_of("p"), S_IFIFO);
	equal(type_of("s"), S_IFSOCK);
	equal(type_of("f"), S_IFREG);
	equal(type_of("g"), S_IFREG);
	fails(mknod("d", S_IFDIR | 0755, 0), EPERM);
	fails(mknod("l", S_IFLNK | 0777, 0), EINVAL);
}

static void devices_are_roots(void)
{
	fails(mknod("c", S_IFCHR | 0666, makedev(1, 3)), EPERM);
	fails(mknod("b", S_IFBLK | 0666, makedev(7, 0)), EPERM);
	works(mknod("p", S_IFIFO | 0666, 0));
	works(mknod("f", S_IFREG | 0666, 0));
}

static void a_device_works(void)
{
	char buf[4] = "abc";
	int fd;

	works(mknod("null", S_IFCHR | 0666, makedev(1, 3)));
	works(mknod("zero", S_IFCHR | 0666, makedev(1, 5)));
	fd = (int)works(open("null", O_RDWR));
	equal(write(fd, buf, 4), 4);
	equal(read(fd, buf, 4), 0);
	fd = (int)works(open("zero", O_RDONLY | O_TRUNC));
	equal(read(fd, buf, 4), 4);
	equal(buf[0] | buf[1] | buf[2], 0);
	as(ALICE, ALICE);
	works(open("null", O_RDWR));
	as_root();
	works(chmod("null", 0600));
	as(ALICE, ALICE);
	fails(open("null", O_RDWR), EACCES);
	as_root();
	works(mknod("none", S_IFCHR | 0666, makedev(250, 250)));
	fails(open("none", O_RDONLY), ENXIO);
	fails(truncate("null", 0), EINVAL);
}

static void writes_to_a_fifo(void *arg)
{
	int fd = (int)works(open("p", O_WRONLY));

	equal(write(fd, "through the pipe", 16), 16);
}

static void a_fifo_works(void)
{
	char buf[32] = "";
	pid_t pid;
	int fd;

	works(mkfifo("p", 0600));
	works(link("p", "q"));
	pid = child(writes_to_a_fifo, NULL);
	fd = (int)works(open("q", O_RDONLY));
	equal(read(fd, buf, sizeof(buf)), 16);
	same(buf, "through the pipe");
	equal(read(fd, buf, sizeof(buf)), 0);
	finished(pid);
	equal(size_of("p"), 0);
	works(unlink("p"));
	works(unlink("q"));
}

static const struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "s"};

static void talks_to_a_socket(void *arg)
{
	int fd = (int)works(socket(AF_UNIX, SOCK_STREAM, 0));

	works(connect(fd, (const struct sockaddr *)&address, sizeof(address)));
	equal(write(fd, "hello", 5), 5);
}

static void a_socket_works(void)
{
	int listener = (int)works(socket(AF_UNIX, SOCK_STREAM, 0)), fd;
	const struct sockaddr *to = (const struct sockaddr *)&address;
	char buf[8] = "";
	pid_t pid;

	works(bind(listener, to, sizeof(address)));
	equal(type_of("s"), S_IFSOCK);
	equal(mode_of("s"), 0777);
	fails(bind((int)works(socket(AF_UNIX, SOCK_STREAM, 0)), to, sizeof(address)), EADDRINUSE);
	fails(connect((int)works(socket(AF_UNIX, SOCK_STREAM, 0)), to, sizeof(address)),
		ECONNREFUSED);
	works(listen(listener, 1));
	pid = child(talks_to_a_socket, NULL);
	fd = (int)works(accept(listener, NULL, NULL));
	equal(read(fd, buf, sizeof(buf)), 5);
	same(buf, "hello");
	finished(pid);
	works(chmod("s", 0600));
	works(unlink("s"));
	fails(connect((int)works(socket(AF_UNIX, SOCK_STREAM, 0)), to, sizeof(address)), ENOENT);
	make("s", "");
	fails(connect((int)works(socket(AF_UNIX, SOCK_STREAM, 0)), to, sizeof(address)),
		ECONNREFUSED);
}

static void a_socket_of_another(void)
{
	int listener = (int)works(socket(AF_UNIX, SOCK_STREAM, 0));
	const struct sockaddr *to = (const struct sockaddr *)&address;

	works(bind(listener, to, sizeof(address)));
	works(listen(listener, 1));
	works(chmod("s", 0700));
	as(ALICE, ALICE);
	fails(connect((int)works(socket(AF_UNIX, SOCK_STREAM, 0)), to, sizeof(address)), EACCES);
}

static const struct syscall_case table[] = {
	{"mknod of every type", every_type, NEEDS_ROOT},
	{"devices are root's to make", devices_are_roots, NOT_ROOT},
	{"a device works", a_device_works, NEEDS_ROOT},
	{"a FIFO works, by both its names", a_fifo_works},
	{"a socket works", a_socket_works},
	{"a socket that may not be written", a_socket_of_another, NEEDS_ROOT},
};
SYSCALL_AREA(area_special, table);
