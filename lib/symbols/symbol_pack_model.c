/* The prediction model that packing and unpacking share, see symbol_pack_format.h. */
#include "lib/base/mem.h"
#include "lib/symbols/symbol_pack_format.h"

void symbol_pack_model_init(struct symbol_pack_model *model, struct symbol_writer_node *nodes,
                            uint32_t node_count, const struct symbol_writer_function *functions)
{
    const size_t predicted_nodes = (size_t)1 << SYMBOL_PACK_PREDICTION_BITS;
    *model = (struct symbol_pack_model){
        .nodes = nodes, .functions = functions, .last_root = SYMBOL_NONE};
    model->last_children = mem_new(uint32_t, node_count);
    memset(model->last_children, 0xff, node_count * sizeof(uint32_t));
    model->predicted_nodes = mem_new(uint32_t, predicted_nodes);
    memset(model->predicted_nodes, 0xff, predicted_nodes * sizeof(uint32_t));
    model->lines = mem_new(uint32_t, node_count);
    model->files = mem_new(uint32_t, node_count);
}

void symbol_pack_model_fini(struct symbol_pack_model *model)
{
    mem_free(model->last_children);
    mem_free(model->predicted_nodes);
    mem_free(model->lines);
    mem_free(model->files);
}

static uint32_t prediction_slot(uint32_t function, uint32_t sibling_function, uint32_t sibling_line)
{
    uint64_t hash = function * UINT64_C(0x9e3779b97f4a7c15);
    hash = (hash ^ hash >> 29 ^ sibling_function) * UINT64_C(0xbf58476d1ce4e5b9);
    hash = (hash ^ hash >> 32 ^ sibling_line) * UINT64_C(0x94d049bb133111eb);
    return (uint32_t)(hash >> (64 - SYMBOL_PACK_PREDICTION_BITS));
}

struct symbol_pack_position symbol_pack_model_position(const struct symbol_pack_model *model,
                                                       uint32_t parent)
{
    const bool is_root = parent == SYMBOL_NONE;
    const uint32_t caller = is_root ? SYMBOL_NONE : model->nodes[parent].function;
    struct symbol_pack_position position = {
        .sibling = is_root ? model->last_root : model->last_children[parent],
        .near_function = is_root ? 0 : caller,
        .near_line = is_root ? 0 : model->functions[caller].line};
    const struct symbol_writer_node *sibling =
        position.sibling == SYMBOL_NONE ? NULL : &model->nodes[position.sibling];
    if (sibling) {
        position.near_function = sibling->function;
        position.near_line = sibling->call_line;
    }
    position.predicted_node = &model->predicted_nodes[prediction_slot(
        caller, sibling ? sibling->function : SYMBOL_NONE, sibling ? sibling->call_line : 0)];
    return position;
}

void symbol_pack_model_add(struct symbol_pack_model *model,
                           const struct symbol_pack_position *position)
{
    const uint32_t number = model->node_count++;
    const uint32_t parent = model->nodes[number].parent;
    *position->predicted_node = number;
    if (parent == SYMBOL_NONE)
        model->last_root = number;
    else
        model->last_children[parent] = number;
}

void symbol_pack_model_begin_records(struct symbol_pack_model *model)
{
    for (uint32_t i = 0; i < model->node_count; i++) {
        const struct symbol_writer_function *function = &model->functions[model->nodes[i].function];
        model->lines[i] = function->line;
        model->files[i] = function->file;
    }
}
