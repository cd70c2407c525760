/* SPDX-License-Identifier: Apache-2.0 */

#include "recording.h"

#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <stdlib.h>
#include <string.h>

struct mlx5dv_flow_matcher {
    struct ibv_context *context;
};

struct recorded_action {
    struct ibv_flow_action action;
    char words[2 * 64 + 1];
};

static unsigned flows;

bool mlx5dv_is_supported(struct ibv_device *device) {
    return strcmp(device->dev_name, "mlx5") == 0;
}

struct mlx5dv_flow_matcher *
mlx5dv_create_flow_matcher(struct ibv_context *context,
                           struct mlx5dv_flow_matcher_attr *attributes) {
    const struct mlx5dv_flow_match_parameters *mask = attributes->match_mask;
    struct mlx5dv_flow_matcher *matcher;

    record("{\"call\": \"create_matcher\", \"type\": %d, \"flags\": %u, \"priority\": %u, "
           "\"criteria\": %u, "
           "\"comp_mask\": %llu, \"ft_type\": %d, \"size\": %zu, \"mask\": \"%s\"}",
           attributes->type, attributes->flags, attributes->priority,
           attributes->match_criteria_enable, (unsigned long long)attributes->comp_mask,
           attributes->ft_type, mask->match_sz, hexadecimal(mask->match_buf, mask->match_sz));
    if (refused("create_matcher"))
        return NULL;
    matcher = calloc(1, sizeof(*matcher));
    matcher->context = context;
    return matcher;
}

int mlx5dv_destroy_flow_matcher(struct mlx5dv_flow_matcher *matcher) {
    record("{\"call\": \"destroy_matcher\"}");
    free(matcher);
    return refused("destroy_matcher") ? EPERM : 0;
}

struct ibv_flow_action *mlx5dv_create_flow_action_modify_header(struct ibv_context *context,
                                                                size_t size, uint64_t *actions,
                                                                enum mlx5dv_flow_table_type table) {
    struct recorded_action *recorded;
    record("{\"call\": \"create_action\", \"size\": %zu, \"words\": \"%s\", \"ft_type\": %d}", size,
           hexadecimal(actions, size), table);
    if (refused("create_action"))
        return NULL;
    recorded = calloc(1, sizeof(*recorded));
    recorded->action.context = context;
    strcpy(recorded->words, hexadecimal(actions, size));
    return &recorded->action;
}

struct ibv_flow *mlx5dv_create_flow(struct mlx5dv_flow_matcher *matcher,
                                    struct mlx5dv_flow_match_parameters *value, size_t count,
                                    struct mlx5dv_flow_action_attr *attributes) {
    struct ibv_flow *flow;
    const char *words = count == 1 && attributes[0].type == MLX5DV_FLOW_ACTION_IBV_FLOW_ACTION
                            ? ((struct recorded_action *)attributes[0].action)->words
                            : "";
    record("{\"call\": \"create_flow\", \"flow\": %u, \"size\": %zu, \"value\": \"%s\", "
           "\"actions\": %zu, "
           "\"words\": \"%s\"}",
           flows + 1, value->match_sz, hexadecimal(value->match_buf, value->match_sz), count,
           words);
    if (refused("create_flow"))
        return NULL;
    flow = calloc(1, sizeof(*flow));
    flow->context = matcher->context;
    flow->handle = ++flows;
    return flow;
}
