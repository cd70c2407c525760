/* SPDX-License-Identifier: Apache-2.0 */

#include "recording.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_DEVICES = 8, MAX_CALLS = 32 };

static struct ibv_device devices[MAX_DEVICES];
static struct verbs_context opened;
static int events[2];

void record(const char *format, ...) {
    va_list arguments;
    FILE *file = fopen(getenv("RECORDING"), "a");
    if (file == NULL)
        abort();
    va_start(arguments, format);
    vfprintf(file, format, arguments);
    va_end(arguments);
    fputc('\n', file);
    fclose(file);
}

const char *hexadecimal(const void *data, size_t size) {
    static char text[2 * 1024 + 1];
    const unsigned char *bytes = data;
    if (2 * size >= sizeof(text))
        abort();
    for (size_t i = 0; i < size; i++)
        sprintf(&text[2 * i], "%02x", bytes[i]);
    return text;
}

bool refused(const char *call) {
    static struct {
        const char *call;
        int count;
    } calls[MAX_CALLS];
    const char *wanted = getenv("RECORDING_REFUSE");
    size_t length = strlen(call);
    int count = 0;

    for (size_t i = 0; i < MAX_CALLS; i++) {
        if (calls[i].call == NULL || strcmp(calls[i].call, call) == 0) {
            calls[i].call = call;
            count = ++calls[i].count;
            break;
        }
    }
    if (wanted == NULL || strncmp(wanted, call, length) != 0 || wanted[length] != ':' ||
        atoi(&wanted[length + 1]) != count)
        return false;
    errno = EPERM;
    return true;
}

/* The header makes a macro of this name. */
#undef ibv_get_device_list

struct ibv_device **ibv_get_device_list(int *count) {
    const char *names = getenv("RECORDING_DEVICES");
    struct ibv_device **list = calloc(MAX_DEVICES + 1, sizeof(*list));
    char *copy = strdup(names == NULL ? "" : names);

    *count = 0;
    for (char *name = strtok(copy, ","); name != NULL; name = strtok(NULL, ",")) {
        struct ibv_device *device = &devices[*count];
        char *kind = strchr(name, ':');
        *kind++ = '\0';
        snprintf(device->name, sizeof(device->name), "%s", name);
        snprintf(device->dev_name, sizeof(device->dev_name), "%s", kind);
        list[(*count)++] = device;
    }
    free(copy);
    return list;
}

void ibv_free_device_list(struct ibv_device **list) { free(list); }

const char *ibv_get_device_name(struct ibv_device *device) { return device->name; }

static int destroy_flow(struct ibv_flow *flow) {
    record("{\"call\": \"destroy_flow\", \"flow\": %u}", flow->handle);
    free(flow);
    return refused("destroy_flow") ? EPERM : 0;
}

static int destroy_flow_action(struct ibv_flow_action *action) {
    record("{\"call\": \"destroy_action\"}");
    free(action);
    return 0;
}

struct ibv_context *ibv_open_device(struct ibv_device *device) {
    const char *event = getenv("RECORDING_EVENT");
    record("{\"call\": \"open\", \"device\": \"%s\"}", device->name);
    if (refused("open") || pipe(events) != 0)
        return NULL;
    if (event != NULL && write(events[1], event, 1) != 1)
        abort();
    opened.sz = sizeof(opened);
    opened.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
    opened.context.device = device;
    opened.context.async_fd = events[0];
    opened.ibv_destroy_flow = destroy_flow;
    opened.destroy_flow_action = destroy_flow_action;
    return &opened.context;
}

int ibv_close_device(struct ibv_context *context) {
    (void)context;
    record("{\"call\": \"close\"}");
    close(events[0]);
    close(events[1]);
    return 0;
}

int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event) {
    char kind;
    if (read(context->async_fd, &kind, 1) != 1)
        return -1;
    event->event_type = kind == 'f' ? IBV_EVENT_DEVICE_FATAL : IBV_EVENT_PORT_ACTIVE;
    return 0;
}

void ibv_ack_async_event(struct ibv_async_event *event) {
    record("{\"call\": \"ack_event\", \"type\": %d}", event->event_type);
}
