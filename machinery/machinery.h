/*
 * machinery/: what can be done with objects apart from storing them: select, patch, apply, default, validate, print.
 * Everything here is pure: arena and values in, values out. No I/O, no clock, no state.
 */
#ifndef C8S_MACHINERY_MACHINERY_H
#define C8S_MACHINERY_MACHINERY_H

#include "machinery/apply.h"          /* server-side apply, and who owns which field afterwards */
#include "machinery/cel.h"            /* expressions: object.spec.replicas <= 5 */
#include "machinery/cel_device.h"     /* ... that choose devices */
#include "machinery/cron.h"           /* schedules of CronJobs */
#include "machinery/field_error.h"    /* errors of validation, and the Status that they become */
#include "machinery/field_selector.h" /* spec.nodeName=node-1 */
#include "machinery/image_name.h"     /* names of container images */
#include "machinery/ip.h"             /* IP addresses and CIDR blocks, and the checks of fields that hold them */
#include "machinery/jsonpath.h"       /* {.items[*].metadata.name} */
#include "machinery/managed_fields.h" /* metadata.managedFields */
#include "machinery/names.h"          /* the formats of names, labels, ports and other words */
#include "machinery/node_selector.h"  /* which nodes a pod or volume may use */
#include "machinery/openapi.h"        /* OpenAPI documents of the built-in API */
#include "machinery/patch.h"          /* JSON, merge and strategic patches, and how kubectl makes them */
#include "machinery/pem.h"            /* blocks of PEM */
#include "machinery/resources.h"      /* CPU, memory and others that containers ask for; QoS */
#include "machinery/selector.h"       /* app in (web,db),!canary */
#include "machinery/semver.h"         /* 1.2.3-rc.1 */
#include "machinery/table.h"          /* what kubectl get prints */
#include "machinery/text_diff.h"      /* unified differences of texts */
#include "machinery/validate.h"       /* defaults and validation of built-in kinds */

#endif
