/*
 * Frames of SPDY/3.1 without I/O, as far as Kubernetes' streaming (moby/spdystream) uses them. Header blocks pass through
 * one zlib stream per direction of a connection, so they must be packed and unpacked in the order in which their frames
 * travel, and an error there ends the connection.
 */
#ifndef C8S_NET_SPDY_FRAME_H
#define C8S_NET_SPDY_FRAME_H

#include "base/arena.h"
#include "base/buf.h"
#include "net/http.h"

enum spdy_type {
	SPDY_SYN_STREAM = 1, SPDY_SYN_REPLY = 2, SPDY_RST_STREAM = 3, SPDY_SETTINGS = 4, SPDY_PING = 6, SPDY_GOAWAY = 7,
	SPDY_HEADERS = 8, SPDY_WINDOW_UPDATE = 9,
};

/* Why a stream was reset. */
enum spdy_status {
	SPDY_PROTOCOL_ERROR = 1, SPDY_INVALID_STREAM = 2, SPDY_REFUSED_STREAM = 3, SPDY_CANCEL = 5, SPDY_INTERNAL_ERROR = 6,
};

enum { SPDY_FIN = 1, SPDY_UNIDIRECTIONAL = 2 };

enum {
	SPDY_FRAME_HEAD = 8,
	SPDY_DATA_MAX = (1 << 24) - 1,
	SPDY_CONTROL_MAX = 64 * 1024,  /* payload of a control frame that is accepted */
	SPDY_BLOCK_MAX = 256 * 1024,   /* a header block, unpacked */
	SPDY_HEADERS_MAX = 200,
};

struct spdy_frame {
	bool control;
	uint16_t type;          /* of a control frame */
	uint32_t stream;        /* of a data frame */
	uint8_t flags;
	uint32_t length;        /* of the payload that follows */
};

/* -ERR_BAD_REQUEST for another version, stream 0, or a control frame that is too long. */
int spdy_frame_parse(const char p[SPDY_FRAME_HEAD], struct spdy_frame *ret_frame, struct err *err);

/* ---- header blocks ---- */

struct spdy_packer;
struct spdy_unpacker;

struct spdy_packer *spdy_packer_new(void) NONNULL_RESULT;
struct spdy_unpacker *spdy_unpacker_new(void) NONNULL_RESULT;
/* Both take NULL. */
void spdy_packer_free(struct spdy_packer *p);
void spdy_unpacker_free(struct spdy_unpacker *u);

/* Appends a block. Names become lower case; headers of one name become one with several values, as the protocol wants. */
int spdy_pack(struct spdy_packer *p, const struct http_header *headers, size_t n, struct buf *out, struct err *err);
/* The headers of a whole block, one per value, in memory of the arena. */
int spdy_unpack(struct spdy_unpacker *u, str block, struct arena *a, struct http_header **ret_headers, size_t *ret_n,
		struct err *err);

/* ---- control frames ---- */

struct spdy_control {
	uint32_t stream;        /* also: last good stream of GOAWAY */
	uint32_t value;         /* status of RST_STREAM and GOAWAY, id of PING, delta of WINDOW_UPDATE */
	const struct http_header *headers;
	size_t n_headers;
};

/* The payload of a control frame; frames of other types are left alone. */
int spdy_control_parse(const struct spdy_frame *f, str payload, struct spdy_unpacker *u, struct arena *a,
		       struct spdy_control *ret_control, struct err *err);

/* ---- writing ---- */

void spdy_write_data_head(char p[SPDY_FRAME_HEAD], uint32_t stream, uint8_t flags, size_t length);
/* SYN_STREAM, SYN_REPLY or HEADERS. */
int spdy_add_headers(struct buf *b, enum spdy_type type, uint32_t stream, uint8_t flags, struct spdy_packer *p,
		     const struct http_header *headers, size_t n, struct err *err);
void spdy_add_rst(struct buf *b, uint32_t stream, enum spdy_status status);
void spdy_add_ping(struct buf *b, uint32_t id);
void spdy_add_goaway(struct buf *b, uint32_t last_stream, uint32_t status);

#endif
