#include "runtime/logs_rotate.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/calendar.h"
#include "base/err.h"
#include "base/mem.h"

static const char shape[] = ".00000000-000000";

void logs_suffix(int64_t seconds, char out[LOGS_SUFFIX_MAX])
{
	struct civil t = civil_of_seconds(seconds);

	(void)snprintf(out, LOGS_SUFFIX_MAX, ".%04d%02u%02u-%02u%02u%02u", (int)(t.year % 10000), t.month, t.day, t.hour, t.minute, t.second);
}

static bool is_suffix(const char *s)
{
	if (strlen(s) != sizeof(shape) - 1)
		return false;
	for (size_t i = 0; i < sizeof(shape) - 1; i++)
		if (shape[i] == '0' ? s[i] < '0' || s[i] > '9' : s[i] != shape[i])
			return false;
	return true;
}

char *logs_rotated(const char *path, const char *suffix)
{
	size_t n = strlen(path), more = strlen(suffix);
	char *all = mem_alloc(n + more + 1);

	memcpy(all, path, n);
	memcpy(all + n, suffix, more + 1);
	return all;
}

static DIR *open_folder(const char *path, size_t n)
{
	CLEANUP(mem_freep) char *folder = mem_alloc(n + 2);

	memcpy(folder, path, n);
	memcpy(folder + n, n ? "" : ".", n ? 1 : 2);
	return opendir(folder);
}

int logs_rotated_after(const char *path, const char *after, char ret_suffix[LOGS_SUFFIX_MAX], size_t *ret_n, struct err *err)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	size_t length = strlen(name);
	char from[LOGS_SUFFIX_MAX], oldest[LOGS_SUFFIX_MAX] = "";
	DIR *dir = open_folder(path, (size_t)(name - path));

	if (!dir)
		return err_sys(err, errno, "the folder of %s", path);
	(void)snprintf(from, sizeof(from), "%s", after);
	*ret_n = 0;
	for (const struct dirent *e; (e = readdir(dir));) {
		const char *suffix = e->d_name + length;
		if (strncmp(e->d_name, name, length) != 0 || !is_suffix(suffix) || strcmp(suffix, from) <= 0)
			continue;
		++*ret_n;
		if (!*oldest || strcmp(suffix, oldest) < 0)
			memcpy(oldest, suffix, sizeof(shape));
	}
	(void)closedir(dir);
	memcpy(ret_suffix, oldest, sizeof(oldest));
	return 0;
}
