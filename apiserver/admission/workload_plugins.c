/*
 * PodGroupProtection, PodGroupWorkloadExists, JobValidation: plugins of the feature GenericWorkload, which is off. They have
 * names, so that flags can name them, and nothing to do.
 */
#include "apiserver/admission/plugins.h"

const struct admission_plugin admission_pod_group_protection = { .name = "PodGroupProtection" },
	admission_pod_group_workload_exists = { .name = "PodGroupWorkloadExists" },
	admission_job_validation = { .name = "JobValidation" };
