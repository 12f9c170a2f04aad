/* Included before everything: functions that cut, overrun or guess do not compile here. */
#ifndef SPACE_BANNED_H
#define SPACE_BANNED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#undef sprintf /* glibc makes it a macro under clang with _FORTIFY_SOURCE */

#pragma GCC poison strcpy strcat sprintf vsprintf strtok strncpy strncat
#pragma GCC poison atoi atol atoll strtol strtoul strtoll strtoull gets localtime gmtime
#pragma GCC poison mktemp tmpnam system popen

#endif
