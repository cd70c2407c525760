/* SPDX-License-Identifier: Apache-2.0
 *
 * Marks RDMA packets at their origin on one mlx5 device.
 *
 * For each --rule, packets that leave the device for that IPv4 address get the tag as EtherType
 * (0x88b5..0x88bb: 0x88b4 + relays to cross) instead of 0x0800. The NIC does it, in its RDMA-TX
 * flow table, before it computes the ICRC. The rules live exactly as long as this process.
 *
 * --source-port tags packets by their UDP source port instead, whatever their destination, where no
 * --rule holds: the older rule of some transports, at the next lower priority.
 *
 *   marker-mlx5 --device DEV --rule IP=TAG [--rule ...] [--source-port PORT=TAG] --managed
 *   marker-mlx5 --device DEV --rule IP=TAG [--rule ...] [--source-port PORT=TAG] --run-seconds N
 *
 * Once all rules are in, one line of JSON goes to standard output and, with NOTIFY_SOCKET set,
 * READY=1 to systemd. SIGTERM and SIGINT remove the rules and end it with 0; a failure ends it with
 * 1, wrong arguments with 2.
 *
 * Build: cc -O2 -Wall -Wextra marker_mlx5.c -o marker-mlx5 -libverbs -lmlx5
 */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum {
    MAX_RULES = 64,
    MAX_RUN_SECONDS = 7200,
    POLL_MILLISECONDS = 100,

    ETHERTYPE_IPV4 = 0x0800,
    FIRST_TAG = 0x88b5,
    LAST_TAG = 0x88bb,

    /* fte_match_param: what a flow may match, in the device's own layout. The outer headers are its
     * first 64 bytes (fte_match_set_lyr_2_4). */
    MATCH_BYTES = 0x180,
    MATCH_CRITERIA_OUTER = 0x1,
    MATCH_ETHERTYPE = 6,
    MATCH_UDP_SOURCE_PORT = 28,
    MATCH_DESTINATION_IPV4 = 60,

    /* set_action_in: type in the top four bits, then the field, then the length in bits. */
    ACTION_SET = 0x1,
    FIELD_OUTER_ETHERTYPE = 0x03,
    ETHERTYPE_BITS = 16,
};

enum exit_status { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

/* What a rule matches: a destination, or a UDP source port where that is not 0. */
struct rule {
    struct in_addr destination;
    uint16_t source_port;
    uint16_t tag;
    struct ibv_flow_action *action;
    struct ibv_flow *flow;
};

struct settings {
    const char *device;
    bool managed;
    long run_seconds;
    struct rule rules[MAX_RULES];
    size_t rule_count;
};

struct match {
    size_t size;
    union {
        uint8_t bytes[MATCH_BYTES];
        uint64_t words[MATCH_BYTES / sizeof(uint64_t)];
    };
};

_Static_assert(offsetof(struct match, bytes) ==
                   offsetof(struct mlx5dv_flow_match_parameters, match_buf),
               "struct match must have the layout of mlx5dv_flow_match_parameters");

static volatile sig_atomic_t stop_asked;

static void ask_to_stop(int signal_number) {
    (void)signal_number;
    stop_asked = 1;
}

__attribute__((format(printf, 1, 2))) static void complain(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("marker-mlx5: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
}

/* Reads a tag; 0, with a complaint, when it is not one. */
static uint16_t read_tag(const char *rule, const char *text) {
    char *end = NULL;
    unsigned long tag = strncmp(text, "0x", 2) == 0 ? strtoul(text, &end, 16) : 0;
    if (end == NULL || *end != '\0' || tag < FIRST_TAG || tag > LAST_TAG) {
        complain("rule %s: the tag must be 0x%x..0x%x", rule, FIRST_TAG, LAST_TAG);
        return 0;
    }
    return (uint16_t)tag;
}

static bool has_room(const struct settings *settings) {
    if (settings->rule_count < MAX_RULES)
        return true;
    complain("more than %d rules", MAX_RULES);
    return false;
}

/* Reads PORT=TAG into the next rule; false, with a complaint, when it is not one. */
static bool add_source_port(struct settings *settings, const char *text) {
    struct rule rule = {0};
    char *end = NULL;

    if (!has_room(settings))
        return false;
    errno = 0;
    long port = strtol(text, &end, 10);
    if (errno != 0 || end == text || *end != '=' || port < 1 || port > UINT16_MAX) {
        complain("rule %s: PORT=TAG is needed", text);
        return false;
    }
    for (size_t i = 0; i < settings->rule_count; i++) {
        if (settings->rules[i].source_port != 0) {
            complain("rule %s: there is a source port already", text);
            return false;
        }
    }
    rule.source_port = (uint16_t)port;
    rule.tag = read_tag(text, end + 1);
    settings->rules[settings->rule_count++] = rule;
    return rule.tag != 0;
}

/* Reads IP=TAG into the next rule; false, with a complaint, when it is not one. */
static bool add_rule(struct settings *settings, const char *text) {
    char address[INET_ADDRSTRLEN];
    const char *equals = strchr(text, '=');
    struct rule rule = {0};

    if (!has_room(settings))
        return false;
    if (equals == NULL || (size_t)(equals - text) >= sizeof(address)) {
        complain("rule %s: IP=TAG is needed", text);
        return false;
    }
    memcpy(address, text, (size_t)(equals - text));
    address[equals - text] = '\0';
    if (inet_pton(AF_INET, address, &rule.destination) != 1) {
        complain("rule %s: %s is not an IPv4 address", text, address);
        return false;
    }
    rule.tag = read_tag(text, equals + 1);
    if (rule.tag == 0)
        return false;
    for (size_t i = 0; i < settings->rule_count; i++) {
        if (settings->rules[i].source_port == 0 &&
            settings->rules[i].destination.s_addr == rule.destination.s_addr) {
            complain("rule %s: %s has a rule already", text, address);
            return false;
        }
    }
    settings->rules[settings->rule_count++] = rule;
    return true;
}

static bool read_run_seconds(struct settings *settings, const char *text) {
    char *end = NULL;
    errno = 0;
    settings->run_seconds = strtol(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || settings->run_seconds < 1 ||
        settings->run_seconds > MAX_RUN_SECONDS) {
        complain("--run-seconds %s: 1..%d is needed", text, MAX_RUN_SECONDS);
        return false;
    }
    return true;
}

static bool read_arguments(struct settings *settings, int argc, char **argv) {
    static const struct option options[] = {
        {"device", required_argument, NULL, 'd'},
        {"rule", required_argument, NULL, 'r'},
        {"source-port", required_argument, NULL, 'p'},
        {"managed", no_argument, NULL, 'm'},
        {"run-seconds", required_argument, NULL, 's'},
        {NULL, 0, NULL, 0},
    };
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (option) {
        case 'd':
            settings->device = optarg;
            break;
        case 'r':
            if (!add_rule(settings, optarg))
                return false;
            break;
        case 'p':
            if (!add_source_port(settings, optarg))
                return false;
            break;
        case 'm':
            settings->managed = true;
            break;
        case 's':
            if (!read_run_seconds(settings, optarg))
                return false;
            break;
        default:
            return false; /* getopt_long has complained */
        }
    }
    if (optind < argc) {
        complain("%s: no such argument", argv[optind]);
        return false;
    }
    if (settings->device == NULL || settings->rule_count == 0 ||
        settings->managed == (settings->run_seconds != 0)) {
        complain("--device, one --rule or more, and --managed or --run-seconds are needed");
        return false;
    }
    return true;
}

static struct ibv_context *open_device(const char *name) {
    struct ibv_context *context = NULL;
    bool found = false;
    int count = 0;
    struct ibv_device **devices = ibv_get_device_list(&count);

    if (devices == NULL) {
        complain("%s: the RDMA devices cannot be listed: %s", name, strerror(errno));
        return NULL;
    }
    for (int i = 0; i < count && !found; i++) {
        if (strcmp(ibv_get_device_name(devices[i]), name) != 0)
            continue;
        found = true;
        if (!mlx5dv_is_supported(devices[i])) {
            complain("%s: it is not an mlx5 device", name);
            break;
        }
        context = ibv_open_device(devices[i]);
        if (context == NULL)
            complain("%s: it cannot be opened: %s", name, strerror(errno));
    }
    if (!found)
        complain("%s: there is no such RDMA device", name);
    ibv_free_device_list(devices);
    return context;
}

static void set_match(struct match *match, uint16_t ethertype, in_addr_t destination) {
    uint16_t network_ethertype = htons(ethertype);
    memset(match, 0, sizeof(*match));
    match->size = MATCH_BYTES;
    memcpy(&match->bytes[MATCH_ETHERTYPE], &network_ethertype, sizeof(network_ethertype));
    memcpy(&match->bytes[MATCH_DESTINATION_IPV4], &destination, sizeof(destination));
}

static void set_port_match(struct match *match, uint16_t source_port) {
    uint16_t network_port = htons(source_port);
    memset(match, 0, sizeof(*match));
    match->size = MATCH_BYTES;
    memcpy(&match->bytes[MATCH_UDP_SOURCE_PORT], &network_port, sizeof(network_port));
}

/* The matchers of a device: destinations go before source ports. */
enum { BY_DESTINATION, BY_SOURCE_PORT, MATCHERS };

static int kind_of(const struct rule *rule) {
    return rule->source_port == 0 ? BY_DESTINATION : BY_SOURCE_PORT;
}

static struct mlx5dv_flow_matcher *create_matcher(struct ibv_context *context, int kind) {
    struct match mask;
    if (kind == BY_DESTINATION)
        set_match(&mask, 0xffff, 0xffffffff);
    else
        set_port_match(&mask, 0xffff);
    struct mlx5dv_flow_matcher_attr attributes = {
        .type = IBV_FLOW_ATTR_NORMAL,
        .priority = (uint16_t)kind,
        .match_criteria_enable = MATCH_CRITERIA_OUTER,
        .match_mask = (struct mlx5dv_flow_match_parameters *)&mask,
        .comp_mask = MLX5DV_FLOW_MATCHER_MASK_FT_TYPE,
        .ft_type = MLX5DV_FLOW_TABLE_TYPE_RDMA_TX,
    };
    return mlx5dv_create_flow_matcher(context, &attributes);
}

static bool create_matchers(struct ibv_context *context, const struct settings *settings,
                            struct mlx5dv_flow_matcher **matchers) {
    for (size_t i = 0; i < settings->rule_count; i++) {
        int kind = kind_of(&settings->rules[i]);
        if (matchers[kind] == NULL)
            matchers[kind] = create_matcher(context, kind);
        if (matchers[kind] == NULL)
            return false;
    }
    return true;
}

static bool destroy_matchers(struct mlx5dv_flow_matcher **matchers) {
    bool destroyed = true;
    for (int kind = MATCHERS; kind-- > 0;) {
        if (matchers[kind] != NULL && mlx5dv_destroy_flow_matcher(matchers[kind]) != 0)
            destroyed = false;
    }
    return destroyed;
}

static bool install_rule(struct ibv_context *context, struct mlx5dv_flow_matcher *matcher,
                         struct rule *rule) {
    uint32_t words[2] = {
        htonl((uint32_t)ACTION_SET << 28 | FIELD_OUTER_ETHERTYPE << 16 | ETHERTYPE_BITS),
        htonl(rule->tag),
    };
    uint64_t set_ethertype;
    memcpy(&set_ethertype, words, sizeof(set_ethertype));
    rule->action = mlx5dv_create_flow_action_modify_header(
        context, sizeof(set_ethertype), &set_ethertype, MLX5DV_FLOW_TABLE_TYPE_RDMA_TX);
    if (rule->action == NULL)
        return false;

    struct match value;
    if (kind_of(rule) == BY_DESTINATION)
        set_match(&value, ETHERTYPE_IPV4, rule->destination.s_addr);
    else
        set_port_match(&value, rule->source_port);
    struct mlx5dv_flow_action_attr attributes[] = {
        {.type = MLX5DV_FLOW_ACTION_IBV_FLOW_ACTION, .action = rule->action},
    };
    rule->flow =
        mlx5dv_create_flow(matcher, (struct mlx5dv_flow_match_parameters *)&value, 1, attributes);
    return rule->flow != NULL;
}

/* The name of what a rule matches, in a buffer that the next call overwrites. */
static const char *match_name(const struct rule *rule) {
    static char name[sizeof("source-port/65535")];
    if (kind_of(rule) == BY_DESTINATION)
        return inet_ntoa(rule->destination);
    snprintf(name, sizeof(name), "source-port/%hu", rule->source_port);
    return name;
}

/* Removes what is installed, the last first; false when the device refused something. */
static bool remove_rules(struct settings *settings) {
    bool removed = true;
    for (size_t i = settings->rule_count; i-- > 0;) {
        struct rule *rule = &settings->rules[i];
        if (rule->flow != NULL && ibv_destroy_flow(rule->flow) != 0)
            removed = false;
        if (rule->action != NULL && ibv_destroy_flow_action(rule->action) != 0)
            removed = false;
        rule->flow = NULL;
        rule->action = NULL;
    }
    return removed;
}

static bool install_rules(struct ibv_context *context, struct mlx5dv_flow_matcher **matchers,
                          struct settings *settings) {
    for (size_t i = 0; i < settings->rule_count; i++) {
        struct rule *rule = &settings->rules[i];
        if (!install_rule(context, matchers[kind_of(rule)], rule)) {
            complain("%s: the rule for %s was refused: %s", settings->device, match_name(rule),
                     strerror(errno));
            return false;
        }
    }
    return true;
}

static void report_installed(const struct settings *settings) {
    printf("{\"device\": \"%s\", \"rules\": {", settings->device);
    for (size_t i = 0; i < settings->rule_count; i++)
        printf("%s\"%s\": \"0x%04x\"", i == 0 ? "" : ", ", match_name(&settings->rules[i]),
               settings->rules[i].tag);
    printf("}, \"installed\": %zu}\n", settings->rule_count);
    fflush(stdout);
}

/* Tells systemd that the rules are in; without NOTIFY_SOCKET nobody waits for it. */
static void notify_ready(void) {
    static const char message[] = "READY=1";
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    if (path == NULL)
        return;
    size_t length = strlen(path);
    if (length == 0 || length >= sizeof(address.sun_path)) {
        complain("NOTIFY_SOCKET %s: it is no socket address", path);
        return;
    }
    memcpy(address.sun_path, path, length);
    if (path[0] == '@')
        address.sun_path[0] = '\0';
    int notify = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (notify < 0 || sendto(notify, message, sizeof(message) - 1, 0, (struct sockaddr *)&address,
                             (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length)) < 0)
        complain("NOTIFY_SOCKET %s: %s", path, strerror(errno));
    if (notify >= 0)
        close(notify);
}

/* Reads one waiting device event; true when it says that the device is gone. */
static bool device_is_gone(struct ibv_context *context) {
    struct ibv_async_event event;
    if (ibv_get_async_event(context, &event) != 0)
        return errno != EAGAIN && errno != EINTR;
    bool gone = event.event_type == IBV_EVENT_DEVICE_FATAL;
    ibv_ack_async_event(&event);
    return gone;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Holds the rules until told to stop; false when the device went away under them. */
static bool hold(struct ibv_context *context, const struct settings *settings) {
    struct pollfd waiting = {.fd = context->async_fd, .events = POLLIN};
    double end = now() + (double)settings->run_seconds;

    while (!stop_asked && (settings->managed || now() < end)) {
        if (poll(&waiting, 1, POLL_MILLISECONDS) > 0 && device_is_gone(context)) {
            complain("%s: the device is gone, and its rules with it", settings->device);
            return false;
        }
    }
    return true;
}

static enum exit_status mark(struct ibv_context *context, struct settings *settings) {
    struct mlx5dv_flow_matcher *matchers[MATCHERS] = {NULL};
    if (!create_matchers(context, settings, matchers)) {
        complain("%s: RDMA-TX flow rules are refused: %s", settings->device, strerror(errno));
        destroy_matchers(matchers);
        return EXIT_FAILED;
    }
    bool held = install_rules(context, matchers, settings);
    if (held) {
        report_installed(settings);
        notify_ready();
        held = hold(context, settings);
    }
    bool removed = remove_rules(settings);
    if (!destroy_matchers(matchers))
        removed = false;
    if (held && !removed)
        complain("%s: not all rules could be removed one by one", settings->device);
    return held && removed ? EXIT_OK : EXIT_FAILED;
}

int main(int argc, char **argv) {
    struct settings settings = {0};
    struct sigaction stop = {.sa_handler = ask_to_stop};

    if (!read_arguments(&settings, argc, argv))
        return EXIT_USAGE;
    sigaction(SIGTERM, &stop, NULL);
    sigaction(SIGINT, &stop, NULL);

    struct ibv_context *context = open_device(settings.device);
    if (context == NULL)
        return EXIT_FAILED;
    int flags = fcntl(context->async_fd, F_GETFL);
    enum exit_status status = EXIT_FAILED;
    if (flags < 0 || fcntl(context->async_fd, F_SETFL, flags | O_NONBLOCK) < 0)
        complain("%s: its events cannot be read: %s", settings.device, strerror(errno));
    else
        status = mark(context, &settings);
    ibv_close_device(context);
    return status;
}
