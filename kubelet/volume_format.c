/*
 * Disks that are to be mounted: an empty one gets a file system, another is checked, as Kubernetes does (SafeFormatAndMount), by the
 * programs blkid, mkfs and fsck. What is on a disk already is never overwritten.
 */
#include <signal.h>

#include "base/log.h"
#include "base/process.h"
#include "kubelet/volume_priv.h"

enum { BLKID_NOTHING = 2, FSCK_CORRECTED = 1, FSCK_UNCORRECTED = 4, OUTPUT_MAX = 64 << 10 };

/* (suspends) Runs a program; *ret_text is all it has said, in the arena. */
static int run(struct arena *a, const char *const *argv, struct process_status *ret_status, str *ret_text, struct err *err)
{
	struct process_output out = { 0 };
	int r = process_run(&(struct process_spec){ .argv = argv, .group = true }, STR_NONE, OUTPUT_MAX, &out, err);

	if (r == 0) {
		*ret_status = out.status;
		*ret_text = arena_join(a, buf_str(&out.out), buf_str(&out.err));
	}
	process_output_done(&out);
	return r;
}

const char *volume_exit_text(struct arena *a, struct process_status status)
{
	return status.signal ? arena_printf(a, "signal: %s", strsignal(status.signal)).p : arena_printf(a, "exit status %d", status.exit_code).p;
}

/* (suspends) What is on the disk; "": nothing. */
static int disk_format(struct arena *a, const char *disk, str *ret, struct err *err)
{
	const char *argv[] = { "blkid", "-p", "-s", "TYPE", "-s", "PTTYPE", "-o", "export", disk, NULL };
	struct process_status status;
	str text, line, type = STR(""), name, value;
	bool partitions = false;
	int r = run(a, argv, &status, &text, err);

	if (r < 0)
		return r;
	*ret = STR("");
	if (status.exit_code == BLKID_NOTHING && !status.signal)
		return 0;
	if (status.exit_code)
		return err_set(err, ERR_SYSTEM, "%s", volume_exit_text(a, status));
	while (text.n) {
		(void)str_cut(text, '\n', &line, &text);
		if (!line.n)
			continue;
		if (!str_cut(line, '=', &name, &value))
			return err_set(err, ERR_SYSTEM, "blkid returns invalid output: " STR_FMT, STR_ARG(line));
		if (str_eq(name, STR("TYPE")))
			type = value;
		partitions = partitions || (str_eq(name, STR("PTTYPE")) && value.n);
	}
	*ret = partitions ? STR("unknown data, probably partitions") : type;
	return 0;
}

/* (suspends) */
static int format(struct volume_setup *s, const char *type, const char *disk, struct err *err)
{
	struct arena *a = s->arena;
	const char *argv[5] = { arena_printf(a, "mkfs.%s", type).p };
	struct process_status status;
	size_t n = 1;
	str text;

	if (strcmp(type, "ext4") == 0 || strcmp(type, "ext3") == 0) {
		argv[n++] = "-F";
		argv[n++] = "-m0";
	} else if (strcmp(type, "xfs") == 0) {
		argv[n++] = "-f";
	}
	argv[n] = disk;
	log_info("a disk is empty: it is formatted", KV("disk", disk), KV("type", type));
	int r = run(a, argv, &status, &text, err);
	if (r < 0)
		text = r == -ERR_CANCELED ? STR("") : arena_str(a, err ? err_str(err) : STR(""));
	if (r == -ERR_CANCELED)
		return r;
	if (r < 0 || status.exit_code)
		return err_set(err, ERR_SYSTEM, "format of disk \"%s\" failed: type:(\"%s\") target:(\"%s\") options:(\"defaults\") errcode:(%s) "
			       "output:(" STR_FMT ") ", disk, type, s->volume->path, r < 0 ? "executable file not found in $PATH" :
			       volume_exit_text(a, status), STR_ARG(text));
	return 0;
}

/* (suspends) What can be mended is; what cannot must not be mounted. */
static int check(struct volume_setup *s, const char *disk, struct err *err)
{
	const char *argv[] = { "fsck", "-a", disk, NULL };
	struct process_status status;
	struct err why = ERR_INIT;
	str text;
	int r = run(s->arena, argv, &status, &text, &why);

	if (r == -ERR_CANCELED || r == -ERR_TIMEOUT)
		return err_set(err, why.code, "%s", why.msg);
	if (r < 0) {
		log_warn("cannot check a disk: it is mounted without that", KV("disk", disk), KV("error", &why));
		return 0;
	}
	if (status.exit_code == FSCK_UNCORRECTED)
		return err_set(err, ERR_SYSTEM, "'fsck' found errors on device %s but could not correct them: " STR_FMT, disk, STR_ARG(text));
	if (status.exit_code)
		log_info("fsck", KV("disk", disk), KV("exit", status.exit_code), KV("mended", status.exit_code == FSCK_CORRECTED),
			 KV("output", text));
	return 0;
}

int volume_format(struct volume_setup *s, const char *type, const char *disk, struct err *err)
{
	str there;
	int r = disk_format(s->arena, disk, &there, err);

	if (r < 0)
		return r == -ERR_CANCELED ? r : err_wrap(err, r, "failed to get disk format of disk %s", disk);
	if (!there.n && s->volume->readonly)
		return err_set(err, ERR_INVALID, "cannot mount unformatted disk %s as we are manipulating it in read-only mode", disk);
	if (!there.n)
		return format(s, type, disk, err);
	if (!str_eq(there, str_of(type)))
		log_warn("a disk has another format than its volume says", KV("disk", disk), KV("wanted", type), KV("there", there));
	return s->volume->readonly ? 0 : check(s, disk, err);
}
