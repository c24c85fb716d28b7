/*
 * base/: what every other room stands on: memory, strings, errors, containers, time, randomness, logging, and the fibers
 * that all waiting is done with. It knows nothing of Kubernetes and uses nothing but libc, libuv and OpenSSL's libcrypto.
 *
 * Values
 *	defs.h        the few macros: CLEANUP, TAKE, ARRAY_LEN, CONTAINER_OF, MIN, MAX
 *	str.h         str: a borrowed slice of bytes, passed by value
 *	err.h         how functions fail: -ERR_x and a message, wrapped on the way up
 *	encoding.h    base64, hexadecimal, SHA-256, UUIDs
 * Memory
 *	mem.h         malloc that does not return NULL
 *	arena.h       memory of one task, given back at once
 *	buf.h         a growing, bounded byte buffer
 * Containers
 *	list.h        intrusive linked list
 *	map.h         hash map: str to pointer
 *	omap.h        ordered map: str to counted value, with O(1) snapshots that other threads may read
 * Seams to the world
 *	calendar.h    dates of UTC
 *	clock.h       monotonic and wall time; a virtual clock for tests
 *	random.h      the kernel's randomness; a seeded sequence for tests
 *	log.h         structured log lines with context
 * Waiting
 *	loop.h        one event loop per thread, timers, messages between threads
 *	fiber.h       sequential code that waits without blocking its thread: fibers, conditions, channels, groups
 *	fiber_io.h    file descriptors and the thread pool, for fibers
 *	process.h     child processes, for fibers
 *
 * Not included here: test.h (unit tests), banned.h (the build puts it before every source).
 */
#ifndef C8S_BASE_BASE_H
#define C8S_BASE_BASE_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/calendar.h"
#include "base/clock.h"
#include "base/defs.h"
#include "base/encoding.h"
#include "base/err.h"
#include "base/fiber.h"
#include "base/fiber_io.h"
#include "base/list.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/omap.h"
#include "base/process.h"
#include "base/random.h"
#include "base/str.h"

#endif
