// Arguments that a device's kernels read in the host's memory, instead of having them copied.

#include "tandem/device/host_reads.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>

#include "tandem/core/error.h"
#include "tandem/placement/cost_model.h"
#include "tandem/placement/placement.h"
#include "tandem/runtime/execute/memory_rules.h"
#include "tandem/runtime/execute/plan.h"
#include "tandem/runtime/execute/plan_lifetimes.h"

namespace tandem {
namespace {

auto& at(auto& v, int i) { return v[static_cast<std::size_t>(i)]; }

constexpr double kNever = std::numeric_limits<double>::infinity();

// At most as many bytes as the kernel of `step` reads of its input `i`: it reads each element once,
// or once for each operation that it is part of. Without end where the value's memory would be used
// for more than reading it there.
double bytes_read(const Step& step, std::size_t i) {
  const Node& node = *step.node;
  if (node.kind() != NodeKind::kPlain || is_host_work(node) || shares_input(step, i) ||
      retains_input(step, i))
    return kNever;
  const Output value = node.inputs()[i];
  const double elements = CostModel::output_bytes(*value.node, value.index) /
                          static_cast<double>(dtype_size(value.node->output_dtype(value.index)));
  return std::max(elements, CostModel::flops(node)) *
         static_cast<double>(dtype_size(value.node->output_dtype(value.index)));
}

}  // namespace

// Results, and what state keeps, are not among them: their memory outlives the call.
void Plan::choose_host_reads(Lifetimes& life) {
  std::map<int, double> volume;  // by slot that an argument would be copied to
  for (const Step& step : steps_) {
    if (step.node->kind() == NodeKind::kCopyToDevice && slot_memory(step.inputs[0]) == 0 &&
        step.node->inputs()[0].node->kind() == NodeKind::kArg &&
        host_memory_reader(*at(devices_, slot_memory(step.outputs[0]))))
      volume[step.outputs[0]] = 0;
  }
  if (volume.empty()) return;
  for (const Step& step : steps_) {
    for (std::size_t i = 0; i < step.inputs.size(); ++i) {
      const auto found = volume.find(step.inputs[i]);
      if (found != volume.end()) found->second += bytes_read(step, i);
    }
  }
  host_read_of_.assign(steps_.size(), -1);
  for (std::size_t s = 0; s < steps_.size(); ++s) {
    const Step& step = steps_[s];
    const int slot = step.outputs.empty() ? -1 : step.outputs[0];
    const auto found = volume.find(slot);
    if (found == volume.end() || found->second == 0 || at(life.root, slot) != slot ||
        at(life.owned_outside, slot) != 0 || !step.node->output_shape(0).is_fully_known())
      continue;
    HostMemoryReader* const reader = host_memory_reader(*at(devices_, slot_memory(slot)));
    if (!reader || found->second > static_cast<double>(reader->host_read_limit())) continue;
    at(life.owned_outside, slot) = 1;
    host_read_of_[s] = static_cast<int>(host_reads_.size());
    host_reads_.push_back({reader, step.output_dtypes[0], step.node->output_shape(0).to_shape()});
  }
}

// Each call writes to the same memory, which no kernel of an earlier one reads any more.
bool Plan::Frame::write_host_read(const Plan& plan, int step, const Array& value, Array& seen) {
  const int read = plan.host_read_of_.empty() ? -1 : at(plan.host_read_of_, step);
  if (read < 0 || !value.on_host()) return false;
  const HostRead& wanted = at(plan.host_reads_, read);
  if (value.dtype() != wanted.dtype || value.shape() != wanted.shape) return false;
  Array& place = at(host_reads, read);
  if (!place.buffer()) {
    try {
      Ref<Buffer> buffer = wanted.reader->allocate_host_readable(value.num_bytes());
      buffer->mark_planned();
      void* const data = buffer->data();
      place = Array(wanted.dtype, wanted.shape, std::move(buffer), data);
    } catch (const ResourceExhaustedError&) {
      return false;
    }
  }
  std::memcpy(place.raw_data(), value.raw_data(), value.num_bytes());
  seen = place;
  return true;
}

}  // namespace tandem
