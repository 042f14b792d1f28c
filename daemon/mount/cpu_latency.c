#include "daemon/mount/cpu_latency.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>

#include "common/base/log.h"
#include "common/base/util.h"

int cpu_latency_hold(void)
{
	static const int32_t none_us;
	int fd = open("/dev/cpu_dma_latency", O_WRONLY | O_CLOEXEC);
	int err = 0;

	if (fd < 0)
		err = -errno;
	else if (write(fd, &none_us, sizeof(none_us)) != (ssize_t)sizeof(none_us))
		err = -errno;
	if (!err)
		return fd;
	log_warning(
		"low_latency: /dev/cpu_dma_latency: %s: the CPUs may sleep, and take time to wake",
		errno_text(err));
	if (fd >= 0)
		close(fd);
	return -1;
}
