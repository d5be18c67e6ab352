// A plugin whose device runs trees of elementwise ops as one kernel: of additions, products and
// Relu alone, with values of any size and at most three ops. The rest of it is the example plugin.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <vector>

#include "tandem/device/plugin.h"

extern "C" void toy_plugin_init(const TandemHostApi* host, TandemPluginApi* plugin,
                                TandemStatus* status);

namespace {

constexpr std::size_t kMaxOps = 3;
constexpr std::int32_t kFloat = 1;  // TensorFlow's number

const TandemHostApi* tandem_host;

void fail(TandemStatus* status, std::int32_t code, const char* text) {
  status->code = code;
  std::strncpy(status->message, text, sizeof(status->message) - 1);
  status->message[sizeof(status->message) - 1] = '\0';
}

bool is(const char* op, const char* name) { return std::strcmp(op, name) == 0; }

// One op of the tree for all elements. Its operands are as many as the attribute says.
void apply(const char* op, const std::vector<const float*>& operands, std::vector<float>& result) {
  for (std::size_t i = 0; i < result.size(); ++i) {
    float value = operands[0][i];
    for (std::size_t k = 1; k < operands.size(); ++k) {
      value = is(op, "Mul") ? value * operands[k][i] : value + operands[k][i];
    }
    result[i] = is(op, "Relu") ? std::max(value, 0.0f) : value;
  }
}

void fused_elementwise(TandemKernelContext* context, TandemStatus* status) {
  const std::int32_t num_inputs = tandem_host->kernel_num_inputs(context);
  std::vector<TandemTensor> inputs(static_cast<std::size_t>(num_inputs));
  for (std::int32_t i = 0; i < num_inputs; ++i) {
    TandemTensor& input = inputs[static_cast<std::size_t>(i)];
    input.size = sizeof(input);
    tandem_host->kernel_input(context, i, &input, status);
    if (status->code != TANDEM_OK) return;
    if (input.bytes != inputs[0].bytes)
      return fail(status, TANDEM_UNIMPLEMENTED, "the toy fuses values of equal shapes alone");
  }
  const std::int64_t* operands = nullptr;
  std::size_t num_operands = 0, num_ops = 1;
  tandem_host->kernel_attr_int_list(context, "operands", &operands, &num_operands, status);
  std::vector<std::vector<float>> results;
  const std::int64_t* next = operands;
  for (std::size_t k = 0; k < num_ops && status->code == TANDEM_OK; ++k) {
    const char* op = nullptr;
    std::size_t length = 0;
    tandem_host->kernel_attr_string_list(context, "ops", k, &op, &length, &num_ops, status);
    if (status->code != TANDEM_OK) return;
    std::vector<const float*> values;
    for (std::int64_t count = *next++; count > 0; --count, ++next) {
      values.push_back(*next >= 0
                           ? static_cast<const float*>(inputs[static_cast<std::size_t>(*next)].data)
                           : results[static_cast<std::size_t>(-1 - *next)].data());
    }
    results.emplace_back(inputs[0].bytes / sizeof(float));
    apply(op, values, results.back());
  }
  TandemTensor out = {};
  out.size = sizeof(out);
  tandem_host->kernel_allocate_output(context, 0, inputs[0].rank, inputs[0].dims, &out, status);
  if (status->code != TANDEM_OK || results.empty()) return;
  std::copy(results.back().begin(), results.back().end(), static_cast<float*>(out.data));
}

void check_fused_tree(const TandemFusedTree* tree, TandemStatus* status) {
  if (tree->num_ops > kMaxOps)
    return fail(status, TANDEM_UNIMPLEMENTED, "the toy fuses at most three ops");
  if (tree->output_type != kFloat ||
      std::any_of(tree->input_types, tree->input_types + tree->num_inputs,
                  [](std::int32_t type) { return type != kFloat; }))
    return fail(status, TANDEM_UNIMPLEMENTED, "the toy fuses floats alone");
}

constexpr std::int32_t kTypes[] = {kFloat};
TandemKernel kernel;
const TandemKernel* kernels[8];

constexpr TandemFusibleOp kFusible[] = {{sizeof(TandemFusibleOp), "AddV2", 1},
                                        {sizeof(TandemFusibleOp), "Mul", 1},
                                        {sizeof(TandemFusibleOp), "Relu", 1}};
constexpr const TandemFusibleOp* kFusibleOps[] = {&kFusible[0], &kFusible[1], &kFusible[2]};

}  // namespace

extern "C" TANDEM_EXPORT_PLUGIN void tandem_plugin_init(const TandemHostApi* host,
                                                        TandemPluginApi* plugin,
                                                        TandemStatus* status) {
  tandem_host = host;
  toy_plugin_init(host, plugin, status);
  if (status->code != TANDEM_OK) return;
  plugin->name = "fusing";
  plugin->device_type = "FUSING";
  plugin->kernel_class = "fusing";
  kernel.size = sizeof(kernel);
  kernel.op = "_FusedElementwise";
  kernel.name = "fusing";
  kernel.type_attr = "T";
  kernel.types = kTypes;
  kernel.num_types = std::size(kTypes);
  kernel.run = fused_elementwise;
  const std::size_t own = std::min(plugin->num_kernels, std::size(kernels) - 1);
  std::copy_n(plugin->kernels, own, kernels);
  kernels[own] = &kernel;
  plugin->kernels = kernels;
  plugin->num_kernels = own + 1;
  plugin->fusible_ops = kFusibleOps;
  plugin->num_fusible_ops = std::size(kFusibleOps);
  plugin->check_fused_tree = check_fused_tree;
}
