/*
 * encoding: base64, hexadecimal, SHA-256 and UUIDs. Encoders exist in two forms: into memory that the caller has sized
 * (nothing is terminated; they return the bytes written), and appended to a struct buf, with its overflow rule.
 */
#ifndef C8S_BASE_ENCODING_H
#define C8S_BASE_ENCODING_H

#include "base/buf.h"

/* Standard base64 with padding (RFC 4648, section 4). */
static inline size_t base64_encoded_len(size_t n) { return (n + 2) / 3 * 4; }
size_t base64_encode(char *out, str in);
void base64_encode_buf(struct buf *b, str in);

/* The most bytes that n characters decode to, with or without padding. */
static inline size_t base64_decoded_max(size_t n) { return n / 4 * 3 + n % 4 * 3 / 4; }
/*
 * Decodes as Go's StdEncoding does: line ends are skipped wherever they are, padding is required, spare bits of the last
 * character are ignored. out has base64_decoded_max(in.n) bytes. -ERR_BAD_REQUEST with Go's message "illegal base64 data
 * at input byte N".
 */
int base64_decode(char *out, str in, size_t *ret_n, struct err *err);
/* Appends; on failure (also -ERR_TOO_LARGE when it does not fit) the buffer's content is as before. */
int base64_decode_buf(struct buf *b, str in, struct err *err);

/* The URL alphabet without padding (RFC 4648, section 5), as in JWTs; otherwise the same rules. */
static inline size_t base64url_encoded_len(size_t n) { return n / 3 * 4 + (n % 3 * 4 + 2) / 3; }
size_t base64url_encode(char *out, str in);
void base64url_encode_buf(struct buf *b, str in);
int base64url_decode(char *out, str in, size_t *ret_n, struct err *err);
int base64url_decode_buf(struct buf *b, str in, struct err *err);

/* Hexadecimal: 2 * in.n lower-case digits. */
size_t hex_encode(char *out, str in);
void hex_encode_buf(struct buf *b, str in);
/* Digits of either case, two per byte, nothing else; out has in.n / 2 bytes. -ERR_BAD_REQUEST says where it went wrong. */
int hex_decode(char *out, str in, size_t *ret_n, struct err *err);

/* SHA-256, at once or in pieces. It cannot fail: without OpenSSL's implementation the process ends. */
enum { SHA256_BYTES = 32, SHA256_HEX = 2 * SHA256_BYTES };

void sha256(str in, uint8_t ret_sum[SHA256_BYTES]);
/* The same as lower-case digits with a '\0'. */
void sha256_hex(str in, char ret_hex[SHA256_HEX + 1]);

struct sha256 {
	void *ctx;
};

void sha256_init(struct sha256 *h);
void sha256_add(struct sha256 *h, str in);
/* The sum of all that was added; to be followed only by sha256_done. */
void sha256_sum(struct sha256 *h, uint8_t ret_sum[SHA256_BYTES]);
/* Also right for a zeroed struct, so that it fits CLEANUP. */
void sha256_done(struct sha256 *h);

/* A random (version 4) UUID as text with a '\0'. */
enum { UUID_TEXT = 36 };
void uuid_v4(char ret_text[UUID_TEXT + 1]);

#endif
