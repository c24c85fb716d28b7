/* Names of container images: [domain[:port]/]path[:tag][@digest], as the API server and runtimes read them. */
#ifndef C8S_MACHINERY_IMAGE_NAME_H
#define C8S_MACHINERY_IMAGE_NAME_H

#include "base/str.h"

struct image_name {
	str domain;  /* "docker.io" when there is none */
	str path;    /* without "library/" when it was not given */
	str tag;     /* n == 0: none */
	str digest;  /* sha256:..., n == 0: none */
};

/* False when text is no image name. The parts are slices of text, except for the default domain. */
bool image_name_parse(str text, struct image_name *ret);
/* True for a name that means the newest image: with the tag "latest", or with neither tag nor digest. */
bool image_name_is_latest(str text);

#endif
