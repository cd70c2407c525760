/* SPDX-License-Identifier: Apache-2.0
 *
 * A stand-in for libibverbs and libmlx5 that records what the marker asks of the NIC.
 *
 * Environment: RECORDING names the file that each call adds one line of JSON to. RECORDING_DEVICES
 * lists devices as NAME:mlx5 or NAME:other, with commas. RECORDING_REFUSE names a call and which
 * one of its kind fails, like create_flow:2. RECORDING_EVENT is "fatal" or "port": an event that
 * waits once the device is open.
 */

#ifndef RECORDING_H
#define RECORDING_H

#include <stdbool.h>
#include <stddef.h>

/* Adds one line of JSON; the arguments are those of printf. */
void record(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Two hexadecimal digits for each byte. The text lasts until the next call. */
const char *hexadecimal(const void *data, size_t size);

/* Whether this call, the nth of its kind, is to fail; sets errno then. */
bool refused(const char *call);

#endif
