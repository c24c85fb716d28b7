#include "cmd/service_manager.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static struct sockaddr_un manager;
static socklen_t manager_len; /* 0: there is none */

void service_manager_find(void)
{
	const char *name = getenv("NOTIFY_SOCKET");
	size_t n = name ? strlen(name) : 0;

	if (n > 1 && n < sizeof(manager.sun_path) && (name[0] == '/' || name[0] == '@')) {
		manager.sun_family = AF_UNIX;
		memcpy(manager.sun_path, name, n + 1);
		manager_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
		if (name[0] == '@')
			manager.sun_path[0] = '\0'; /* of Linux' own name space, without a file */
	}
	(void)unsetenv("NOTIFY_SOCKET");
}

void service_manager_tell(const char *state)
{
	int fd = manager_len ? socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0) : -1;

	if (fd < 0)
		return;
	(void)sendto(fd, state, strlen(state), MSG_NOSIGNAL, (const struct sockaddr *)&manager, manager_len);
	(void)close(fd);
}
