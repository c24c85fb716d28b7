/* loopback: brings up lo of the pod. It has no addresses to give out and nothing to give back. */
#include <net/if.h>
#include <unistd.h>

#include "cni/attach.h"
#include "cni/result.h"
#include "codec/atoms.h"

/* lo is always called so, whatever the caller says. */
static int open_lo(struct attach *t, struct plugin *p, struct err *err)
{
	int r = attach_open(t, p, err);
	return r < 0 ? r : link_get(&t->pod, "lo", &t->pod_link, err);
}

static int addresses(struct attach *t, struct plugin *p, struct val *ret, struct err *err)
{
	struct val_builder ips = val_builder(p->arena);
	bool seen[2] = { false, false };
	struct addr *addrs;
	size_t n;
	int r = addr_list(&t->pod, t->pod_link.index, p->arena, &addrs, &n, err);

	for (size_t i = 0; r == 0 && i < n; i++) {
		bool six = !inet_is_v4(addrs[i].net.ip);
		char text[INET_TEXT];
		if (!inet_is_loopback(addrs[i].net.ip))
			return err_set(err, ERR_CONFLICT, "loopback interface found with non-loopback address \"%s\"",
				       inet_text(addrs[i].net.ip, text));
		if (!seen[six])
			val_add_item(&ips, OBJECT(p->arena, F(address, val_of_str(inet_net_str(p->arena, addrs[i].net))),
						  F(interface, val_of_int(0))));
		seen[six] = true;
	}
	*ret = val_end_list(&ips);
	return r;
}

static int add(struct plugin *p, struct val *ret, struct err *err)
{
	CLEANUP(attach_close) struct attach t = ATTACH_INIT;
	struct val ips;
	int r;

	if ((r = open_lo(&t, p, err)) < 0 || (r = attach_up(&t, err)) < 0 || (r = addresses(&t, p, &ips, err)) < 0)
		return r;
	*ret = p->prev;
	if (!val_exists(p->prev))
		*ret = OBJECT(p->arena, F(cniVersion, VAL_LIT(CNI_VERSION)), F(interfaces, LIST(p->arena, attach_interface(p, &t.pod_link, true))), F(ips, ips));
	return 0;
}

static int del(struct plugin *p, struct err *err)
{
	CLEANUP(attach_close) struct attach t = ATTACH_INIT;

	if (!*p->netns)
		return 0;
	int r = open_lo(&t, p, err);
	if (r == -ERR_NOT_FOUND)
		return 0;
	return r < 0 ? r : link_set(&t.pod, t.pod_link.index, &(struct link_change){ .up = LINK_OFF }, err);
}

static int check(struct plugin *p, struct err *err)
{
	CLEANUP(attach_close) struct attach t = ATTACH_INIT;
	int r = open_lo(&t, p, err);

	if (r < 0)
		return r;
	return t.pod_link.flags & IFF_UP ? 0 : err_set(err, ERR_UNAVAILABLE, "loopback interface is down");
}

const struct plugin_ops plugin_loopback = { "loopback", add, check, del, NULL, NULL };
