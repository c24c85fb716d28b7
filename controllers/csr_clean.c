/* Requests for certificates that are over, or that nobody has decided about for long, are deleted. */
#include "base/clock.h"
#include "base/fiber.h"
#include "base/log.h"
#include "codec/atoms.h"
#include "codec/types.h"
#include "controllers/controller.h"
#include "controllers/csr_request.h"

enum { PERIOD_MS = 3600 * 1000 };

/* (suspends) */
static int clean(struct controller *c, struct informer *all, struct err *err)
{
	INFORMER_EACH(csr, informer_each(all)) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct err failed = ERR_INIT;
		str name = val_str(csr->val, metadata, name);
		const char *why = csr_useless(&a, csr->val, clock_wall_ns());
		if (!why)
			continue;
		log_info("cleaning CSR", KV("csr", name), KV("reason", why));
		int r = client_delete(c->client, TYPE(certificates_v1, CertificateSigningRequest), STR_NONE, name, NULL, &failed);
		if (r == -ERR_CANCELED)
			return err_set(err, failed.code, "%s", failed.msg);
		if (r < 0 && r != -ERR_NOT_FOUND)
			log_warn("error while attempting to clean CSR", KV("csr", name), KV("err", &failed));
	}
	return 0;
}

static int run(struct controller *c, struct err *err)
{
	struct informer *all = controller_informer(c, TYPE(certificates_v1, CertificateSigningRequest));
	for (;;) {
		int r = clean(c, all, err);
		if (r < 0 || (r = fiber_sleep_ms(PERIOD_MS, err)) < 0)
			return r;
	}
}

static int start(struct controller *c, struct err *err)
{
	(void)err;
	(void)controller_informer(c, TYPE(certificates_v1, CertificateSigningRequest));
	c->run = run;
	return 0;
}

const struct controller_kind controller_csr_cleaner = {
	.name = "certificatesigningrequest-cleaner-controller", .start = start, .account = "certificate-controller",
};
