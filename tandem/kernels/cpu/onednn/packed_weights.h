#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tandem/core/array.h"
#include "tandem/core/variant.h"
#include "tandem/kernels/cpu/onednn/library.h"

namespace tandem::cpu::onednn {

/// Constant weights and what the node _PackWeights keeps of them: a copy in each order that the
/// library has asked for, made once. Thread-safe.
class PackedWeights final : public VariantValue {
 public:
  using Pack = std::function<void(const void* plain, void* packed)>;

  explicit PackedWeights(Array plain) : plain_(std::move(plain)) {}
  std::string type_name() const override { return "tandem::PackedWeights"; }
  const Array& plain() const { return plain_; }
  /// The weights, or the part of them that begins at column `part`, as `desc` describes them;
  /// `pack` makes them where they are not there yet. Valid as long as this object.
  const void* in_order(const dnnl::memory::desc& desc, std::int64_t part, const Pack& pack);

 private:
  struct Order {
    dnnl::memory::desc desc;
    std::int64_t part;
    std::shared_ptr<std::byte> data;
  };
  Array plain_;
  std::mutex mutex_;
  std::vector<Order> orders_;
};

/// The weights that an input holds: packed ones, or null for a plain array.
PackedWeights* packed_weights(const Array& input);

}  // namespace tandem::cpu::onednn
