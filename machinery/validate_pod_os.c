/* What pods for Linux and for Windows may have. */
#include "codec/atoms.h"
#include "machinery/validate_pod.h"

enum { GMSA_SPEC_MAX = 64 << 10, USER_DOMAIN_MAX = 255, USER_NAME_MAX = 104, NETBIOS_MAX = 15, DNS_LABEL_MAX = 63 };

/* ---- names of Windows users ---- */

static bool has_any(str s, const char *chars)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] && strchr(chars, s.p[i]))
			return true;
	return false;
}

static bool has_control(str s)
{
	for (size_t i = 0; i < s.n; i++)
		if ((unsigned char)s.p[i] < ' ' || s.p[i] == 0x7f)
			return true;
	return false;
}

/* Characters, not bytes. */
static size_t count_runes(str s)
{
	size_t n = 0;
	for (; s.n; n++)
		s = str_skip(s, MAX(str_rune(s, NULL), (size_t)1));
	return n;
}

static bool is_netbios(str s)
{
	return s.n && s.p[0] != '.' && count_runes(s) <= NETBIOS_MAX && !has_any(s, "\\/:*?\"<>|");
}

static bool is_dns(str s)
{
	for (bool more = true; more;) {
		str label;
		more = str_cut(s, '.', &label, &s);
		if (label.n == 0 || label.n > DNS_LABEL_MAX || label.p[0] == '-' || label.p[label.n - 1] == '-')
			return false;
		for (size_t i = 0; i < label.n; i++) {
			char c = label.p[i];
			if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-'))
				return false;
		}
	}
	return true;
}

static bool is_dots_and_spaces(str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] != '.' && s.p[i] != ' ')
			return false;
	return s.n > 0;
}

/* [DOMAIN\]USER, without control characters and with at most one backslash. */
static void check_user_parts(struct field_errors *e, const struct field_path *at, struct val name)
{
	str domain, user;
	bool has_domain = str_cut(val_as_str(name), '\\', &domain, &user);

	if (!has_domain)
		user = domain;
	if (has_domain && domain.n > USER_DOMAIN_MAX)
		field_invalid(e, at, name, "runAsUserName's Domain length must be under 256 characters");
	if (has_domain && !is_netbios(domain) && !is_dns(domain))
		field_invalid(e, at, name, "runAsUserName's Domain doesn't match the NetBios nor the DNS format");
	if (user.n == 0)
		field_invalid(e, at, name, "runAsUserName's User cannot be empty");
	else if (user.n > USER_NAME_MAX)
		field_invalid(e, at, name, "runAsUserName's User length must not be longer than 104 characters");
	if (is_dots_and_spaces(user))
		field_invalid(e, at, name, "runAsUserName's User cannot contain only periods or spaces");
	if (has_any(user, "\"/\\:;|=,+*?<>@[]"))
		field_invalid(e, at, name,
			      "runAsUserName's User cannot contain the following characters: \"/\\:;|=,+*?<>@[]");
}

static void check_user_name(struct field_errors *e, const struct field_path *at, struct val name)
{
	str text = val_as_str(name);

	if (text.n == 0)
		field_invalid(e, at, name, "runAsUserName cannot be an empty string");
	else if (has_control(text))
		field_invalid(e, at, name, "runAsUserName cannot contain control characters");
	else if (str_chr(text, '\\') != str_rchr(text, '\\'))
		field_invalid(e, at, name, "runAsUserName cannot contain more than one backslash");
	else
		check_user_parts(e, at, name);
}

void check_windows_options(struct field_errors *e, const struct field_path *at, struct val options)
{
	struct val spec = val_get(options, gmsaCredentialSpec);

	if (val_has(options, gmsaCredentialSpecName))
		check_name(e, FIELD(at, "gmsaCredentialSpecName"), val_str(options, gmsaCredentialSpecName),
			   name_check_dns1123_subdomain);
	if (val_exists(spec) && val_as_str(spec).n == 0)
		field_invalid(e, FIELD(at, "gmsaCredentialSpec"), spec, "gmsaCredentialSpec cannot be an empty string");
	else if (val_as_str(spec).n > GMSA_SPEC_MAX)
		field_invalid(e, FIELD(at, "gmsaCredentialSpec"), spec, "gmsaCredentialSpec size must be under 64 KiB");
	if (val_has(options, runAsUserName))
		check_user_name(e, FIELD(at, "runAsUserName"), val_get(options, runAsUserName));
}

/* ---- host processes ---- */

struct host_processes {
	struct val of_pod;
	size_t containers, host_processes;
};

static void count_host_process(struct pod_check *c, const struct field_path *at, struct val container, void *arg)
{
	struct host_processes *count = arg;
	struct val own = val_get(container, securityContext, windowsOptions, hostProcess);

	count->containers++;
	if (val_exists(count->of_pod) && val_exists(own) && val_as_bool(own) != val_as_bool(count->of_pod))
		field_invalid(c->e, FIELD(FIELD(FIELD(at, "securityContext"), "windowsOptions"), "hostProcess"), own,
			      "pod hostProcess value must be identical if both are specified, was %s",
			      val_as_bool(count->of_pod) ? "true" : "false");
	count->host_processes += val_as_bool(val_exists(own) ? own : count->of_pod);
}

void check_host_process(struct pod_check *c, const struct field_path *at)
{
	struct host_processes count = { .of_pod = val_get(c->spec, securityContext, windowsOptions, hostProcess) };

	each_container(c, at, count_host_process, &count);
	if (count.host_processes == 0)
		return;
	if (count.host_processes != count.containers)
		field_invalid(c->e, at, VAL_LIT(""),
			      "If pod contains any hostProcess containers then all containers must be HostProcess"
			      " containers");
	if (!val_bool(c->spec, hostNetwork))
		field_invalid(c->e, FIELD(at, "hostNetwork"), val_of_bool(false),
			      "hostNetwork must be true if pod contains any hostProcess containers");
	if (c->e->no_privileged)
		field_forbidden(c->e, at, "hostProcess containers are disallowed by cluster policy");
}

/* ---- what an operating system forbids ---- */

static void forbid(struct field_errors *e, const struct field_path *at, struct val object, const uint16_t *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (val_exists(val_member(object, names[i])))
			field_forbidden(e, FIELD_STR(at, atom_str(names[i])), "cannot be set for a windows pod");
}

static void check_windows_container(struct pod_check *c, const struct field_path *at, struct val container, void *arg)
{
	static const uint16_t names[] = {
		A_appArmorProfile, A_seLinuxOptions, A_seccompProfile, A_capabilities, A_readOnlyRootFilesystem,
		A_privileged, A_allowPrivilegeEscalation, A_procMount, A_runAsUser, A_runAsGroup,
	};
	(void)arg;
	forbid(c->e, FIELD(at, "securityContext"), val_get(container, securityContext), names, ARRAY_LEN(names));
}

static void check_windows(struct pod_check *c, const struct field_path *at)
{
	/* In the order of Kubernetes' checks; members of the spec and of its security context take turns. */
	static const struct {
		uint16_t name;
		bool of_spec;
	} fields[] = {
		{ A_appArmorProfile, false }, { A_seLinuxOptions, false }, { A_hostUsers, true }, { A_hostPID, true },
		{ A_hostIPC, true }, { A_seccompProfile, false }, { A_fsGroup, false }, { A_fsGroupChangePolicy, false },
		{ A_sysctls, false }, { A_shareProcessNamespace, true }, { A_runAsUser, false }, { A_runAsGroup, false },
		{ A_supplementalGroups, false }, { A_supplementalGroupsPolicy, false }, { A_seLinuxChangePolicy, false },
	};
	for (size_t i = 0; i < ARRAY_LEN(fields); i++)
		forbid(c->e, fields[i].of_spec ? at : FIELD(at, "securityContext"),
		       fields[i].of_spec ? c->spec : val_get(c->spec, securityContext), &fields[i].name, 1);
	each_container(c, at, check_windows_container, NULL);
}

static void check_linux_container(struct pod_check *c, const struct field_path *at, struct val container, void *arg)
{
	(void)arg;
	if (val_has(container, securityContext, windowsOptions))
		field_forbidden(c->e, FIELD(FIELD(at, "securityContext"), "windowsOptions"),
				"windows options cannot be set for a linux pod");
}

void check_pod_os(struct pod_check *c, const struct field_path *at)
{
	static const str known[] = { STR_INIT("linux"), STR_INIT("windows"), { NULL, 0 } };
	str name = val_str(c->spec, os, name);

	if (!val_has(c->spec, os))
		return;
	if (name.n == 0)
		field_missing(c->e, FIELD(FIELD(at, "os"), "name"));
	else if (!str_in(name, known))
		field_not_supported(c->e, FIELD(at, "os"), VAL_STR(name), known);
	else if (str_eq(name, STR("windows")))
		check_windows(c, at);
	else {
		check_linux_container(c, at, c->spec, NULL);
		each_container(c, at, check_linux_container, NULL);
	}
}
