#include "tandem/kernels/cpu/onednn/packed_weights.h"

#include <algorithm>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"

namespace tandem::cpu::onednn {

const void* PackedWeights::in_order(const dnnl::memory::desc& desc, std::int64_t part,
                                    const Pack& pack) {
  std::lock_guard lock(mutex_);
  for (const Order& order : orders_)
    if (order.part == part && order.desc == desc) return order.data->data();
  const std::size_t bytes = desc.get_size();
  if (kept_bytes_ + bytes > std::max(kMaxCopies * plain_.num_bytes(), kAlwaysKept)) return nullptr;
  Ref<Buffer> data = allocate_host_buffer(bytes);
  pack(plain_.raw_data(), data->data());
  kept_bytes_ += bytes;
  orders_.push_back({desc, part, std::move(data)});
  return orders_.back().data->data();
}

PackedWeights* packed_weights(const Array& input) {
  if (input.dtype() != DType::kVariant) return nullptr;
  auto* packed = input.num_elements() == 1 ? input.data<Variant>()->as<PackedWeights>() : nullptr;
  if (!packed) throw InvalidArgumentError("The weights must be an array, or made by _PackWeights.");
  return packed;
}

namespace {

// One object for all runs of the node, as long as its input stays the same memory.
void pack_weights(KernelContext& c) {
  const Array& plain = c.input(0);
  NodeState& state = c.state();
  std::lock_guard lock(state.mutex);
  auto* known = static_cast<PackedWeights*>(state.object.get());
  if (!known || known->plain().raw_data() != plain.raw_data()) {
    state.object = Ref<RefCounted>(make_ref<PackedWeights>(plain));
    known = static_cast<PackedWeights*>(state.object.get());
  }
  *c.allocate_output(0, Shape{}).data<Variant>() = Variant(Ref<VariantValue>(known));
}

const KernelRegistration kPackWeights{{.op = "_PackWeights",
                                       .name = "oneDNN",
                                       .types = {{"T", {DType::kFloat, DType::kBFloat16}}},
                                       .run = pack_weights}};

}  // namespace
}  // namespace tandem::cpu::onednn
