/* The progress of a pull or a push: a bar per layer on a terminal, else a line when one is complete. Goes to standard error. */
#ifndef C8S_CMD_IMAGE_PROGRESS_H
#define C8S_CMD_IMAGE_PROGRESS_H

#include "runtime/image.h"

struct image_progress_lines;

struct image_progress_lines *image_progress_lines_new(bool quiet);
const struct image_progress *image_progress_lines_of(struct image_progress_lines *p);
/* Leaves the last state on the screen. */
void image_progress_lines_free(struct image_progress_lines *p);

#endif
