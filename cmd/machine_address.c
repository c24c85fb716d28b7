#include "cmd/machine_address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <unistd.h>

/* The address that packets to the world would come from; no packet is sent. False without a default route. */
static bool route_address(int family, char out[IP_TEXT_MAX])
{
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(9), .sin_addr.s_addr = htonl(0xc0000201) };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(9), .sin6_addr.s6_addr = { 0x20, 0x01, 0x0d, 0xb8, [15] = 1 } };
	struct sockaddr_storage from = { 0 };
	socklen_t n = sizeof(from);
	int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool ok = fd >= 0 && connect(fd, family == AF_INET ? (const struct sockaddr *)&v4 : (const struct sockaddr *)&v6,
				     family == AF_INET ? sizeof(v4) : sizeof(v6)) == 0 &&
		  getsockname(fd, (struct sockaddr *)&from, &n) == 0;

	if (ok && family == AF_INET)
		ok = inet_ntop(AF_INET, &((const struct sockaddr_in *)&from)->sin_addr, out, IP_TEXT_MAX);
	else if (ok)
		ok = inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)&from)->sin6_addr, out, IP_TEXT_MAX);
	if (fd >= 0)
		close(fd);
	return ok;
}

/* Without a default route: the first address of an interface that is up and not the loopback. */
static bool interface_address(int family, char out[IP_TEXT_MAX])
{
	struct ifaddrs *list;
	bool found = false;

	if (getifaddrs(&list) < 0)
		return false;
	for (const struct ifaddrs *i = list; i && !found; i = i->ifa_next) {
		if (!i->ifa_addr || i->ifa_addr->sa_family != family || !(i->ifa_flags & IFF_UP) || (i->ifa_flags & IFF_LOOPBACK))
			continue;
		if (family == AF_INET)
			found = inet_ntop(family, &((const struct sockaddr_in *)i->ifa_addr)->sin_addr, out, IP_TEXT_MAX);
		else if (!IN6_IS_ADDR_LINKLOCAL(&((const struct sockaddr_in6 *)i->ifa_addr)->sin6_addr))
			found = inet_ntop(family, &((const struct sockaddr_in6 *)i->ifa_addr)->sin6_addr, out, IP_TEXT_MAX);
	}
	freeifaddrs(list);
	return found;
}

bool machine_address(int family, char out[IP_TEXT_MAX]) { return route_address(family, out) || interface_address(family, out); }
