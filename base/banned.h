/*
 * Calls that this tree does without, as compile errors that name the replacement. The build puts this file before every
 * source with -include (before assembly too, which sees nothing of it). The system headers that declare the calls come
 * first, so that only our own code is stopped.
 */
#ifndef C8S_BASE_BANNED_H
#define C8S_BASE_BANNED_H
#ifndef __ASSEMBLER__

#include <alloca.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BANNED(call, instead) ({ _Static_assert(0, #call "() is banned: " instead); 0; })

/* No bound on what they write. */
#undef strcpy
#define strcpy(...) BANNED(strcpy, "use struct buf, arena_str or memcpy with a checked length")
#undef strcat
#define strcat(...) BANNED(strcat, "use struct buf or arena_join")
#undef stpcpy
#define stpcpy(...) BANNED(stpcpy, "use struct buf")
#undef sprintf
#define sprintf(...) BANNED(sprintf, "use snprintf, buf_addf or arena_printf")
#undef vsprintf
#define vsprintf(...) BANNED(vsprintf, "use vsnprintf")
#undef gets
#define gets(...) BANNED(gets, "use getline or read")
#undef alloca
#define alloca(...) BANNED(alloca, "fiber stacks are small; use an arena")

/* Bounded, but they cut silently and may leave no terminator. */
#undef strncpy
#define strncpy(...) BANNED(strncpy, "use struct buf or memcpy with a checked length")
#undef strncat
#define strncat(...) BANNED(strncat, "use struct buf")
#undef stpncpy
#define stpncpy(...) BANNED(stpncpy, "use struct buf")

/* They cannot report an error. */
#undef atoi
#define atoi(...) BANNED(atoi, "use str_to_i64")
#undef atol
#define atol(...) BANNED(atol, "use str_to_i64")
#undef atoll
#define atoll(...) BANNED(atoll, "use str_to_i64")
#undef atof
#define atof(...) BANNED(atof, "use strtod and look at its end pointer")

/* Hidden static state. */
#undef strtok
#define strtok(...) BANNED(strtok, "use str_cut")
#undef asctime
#define asctime(...) BANNED(asctime, "format through gmtime_r")
#undef ctime
#define ctime(...) BANNED(ctime, "format through gmtime_r")
#undef gmtime
#define gmtime(...) BANNED(gmtime, "use gmtime_r")
#undef localtime
#define localtime(...) BANNED(localtime, "use localtime_r")

/* Around the seam of base/random.h. */
#undef rand
#define rand(...) BANNED(rand, "use random_below")
#undef srand
#define srand(...) BANNED(srand, "use random_seed")
#undef random
#define random(...) BANNED(random, "use random_u64")
#undef srandom
#define srandom(...) BANNED(srandom, "use random_seed")

/* Races on names, and shells fed with input. */
#undef mktemp
#define mktemp(...) BANNED(mktemp, "use mkostemp")
#undef tmpnam
#define tmpnam(...) BANNED(tmpnam, "use mkostemp")
#undef tempnam
#define tempnam(...) BANNED(tempnam, "use mkostemp")
#undef system
#define system(...) BANNED(system, "run the program itself, with an argument vector")
#undef popen
#define popen(...) BANNED(popen, "run the program itself, with an argument vector")

#endif
#endif
