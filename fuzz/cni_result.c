/*
 * What plugins answer: results, which can be had in the form of every version that can hold them, and lose no address on the way;
 * and errors, which always say something. The first byte chooses the version that the network has.
 */
#include "cni/attach.h"
#include "cni/cni_priv.h"
#include "cni/result.h"
#include "codec/atoms.h"
#include "fuzz/fuzz.h"

static void convert(struct arena *a, struct val result, str version)
{
	struct plugin p = { .arena = a, .ifname = "eth0", .netns = "/ns" };
	struct attach_ip *ips;
	struct val other, back;
	size_t n;

	for (size_t i = 0; cni_versions[i]; i++) {
		str to = str_of(cni_versions[i]);
		if (result_convert(a, result, version, to, &other, NULL) < 0)
			continue;
		check(val_is(other, VAL_OBJECT) && str_eq(val_str(other, cniVersion), to), "it says which version it has");
		/* The oldest versions have room for one address of each family. */
		if (cni_version_cmp(to, STR("0.3.0")) < 0 || cni_version_cmp(version, STR("0.3.0")) < 0)
			continue;
		check(result_convert(a, other, to, version, &back, NULL) == 0, "there is a way back");
		check(val_len(val_get(back, ips)) == val_len(val_get(result, ips)), "no address is lost");
	}
	if (result_convert(a, result, version, STR(CNI_VERSION), &other, NULL) == 0 && attach_ips(&p, other, &ips, &n, NULL) == 0)
		for (size_t i = 0; i < n; i++)
			check(inet_exists(ips[i].net.ip) && ips[i].net.prefix <= inet_bits(ips[i].net.ip), "an address is one");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct arena a = ARENA_INIT;
	struct err err = ERR_INIT;
	struct val result;
	size_t known = 0;

	if (n < 1)
		return 0;
	while (cni_versions[known])
		known++;
	str version = str_of(cni_versions[data[0] % known]), text = str_span((const char *)data + 1, n - 1);
	if (cni_execute_result(&a, version, text, &result, &err) < 0)
		check(err.n > 0, "an error says what is wrong");
	else
		convert(&a, result, version);
	struct process_status status = { .exit_code = 1, .signal = data[0] & 128 ? 9 : 0 };
	check(cni_execute_failure(&a, text, str_skip(text, text.n / 2), status, &err) < 0, "a failure is one");
	arena_done(&a);
	return 0;
}
