/* /version */
#include "apiserver/version.h"

#include "apiserver/documents_priv.h"
#include "codec/atoms.h"

#ifdef __aarch64__
#define ARCHITECTURE "arm64"
#else
#define ARCHITECTURE "amd64"
#endif
#ifdef __clang__
#define COMPILER "clang"
#else
#define COMPILER "gcc"
#endif

/* Where Kubernetes tells its version of Go stands the language that this server is written in. */
const struct version_info version_info = {
	.major = "1", .minor = "36", .min_minor = "35", .git_version = "v1.36.4", .git_commit = "unknown", .git_tree_state = "",
	.build_date = "1970-01-01T00:00:00Z", .go_version = "C17", .compiler = COMPILER, .platform = "linux/" ARCHITECTURE,
};

static struct val text(const char *s) { return val_of_str(str_of(s)); }

int version_handle(struct request *q, struct err *err)
{
	const struct version_info *v = &version_info;
	int r = require_get(q);
	if (r < 0)
		return r;
	struct val info = OBJECT(q->arena, F(major, text(v->major)), F(minor, text(v->minor)),
				 F(emulationMajor, text(v->major)),
				 F(emulationMinor, text(v->minor)), F(minCompatibilityMajor, text(v->major)),
				 F(minCompatibilityMinor, text(v->min_minor)), F(gitVersion, text(v->git_version)),
				 F(gitCommit, text(v->git_commit)), F(gitTreeState, text(v->git_tree_state)),
				 F(buildDate, text(v->build_date)), F(goVersion, text(v->go_version)),
				 F(compiler, text(v->compiler)), F(platform, text(v->platform)));
	return answer_indented(q, info, err);
}
