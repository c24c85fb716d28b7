/*
 * crypto_part: OpenSSL's algorithms for short-lived programs. At the first use of each kind OpenSSL makes objects for all algorithms that
 * it has of that kind, hundreds in all, and every certificate that is read is offered to the decoders of all sorts of keys: for a
 * client that asks one question, that is most of its time. Here only those are shown that TLS and its certificates need.
 */
#ifndef C8S_NET_CRYPTO_PART_H
#define C8S_NET_CRYPTO_PART_H

/*
 * For the whole process, before anything else of OpenSSL is used. OpenSSL's configuration is not read, and its tables are not put away
 * at the end. A program that is not linked with OpenSSL statically keeps all algorithms. Ends the process when OpenSSL does not work.
 */
void crypto_part_use(void);
/* To be called before the text of an error is asked for, from any thread: crypto_part_use leaves out what loading them costs. */
void crypto_part_texts(void);

#endif
