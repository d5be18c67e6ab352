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
/// library has asked for, made once, as long as they do not become too many. Thread-safe.
class PackedWeights final : public VariantValue {
 public:
  using Pack = std::function<void(const void* plain, void* packed)>;

  explicit PackedWeights(Array plain) : plain_(std::move(plain)) {}
  std::string type_name() const override { return "tandem::PackedWeights"; }
  const Array& plain() const { return plain_; }
  /// The weights, or the part of them that begins at column `part`, as `desc` describes them;
  /// `pack` makes them where they are not there yet. Valid as long as this object. Null if so many
  /// copies are kept that this one has to be made for the call.
  const void* in_order(const dnnl::memory::desc& desc, std::int64_t part, const Pack& pack);

 private:
  // Batches of ever other sizes may ask for ever other orders.
  static constexpr std::size_t kMaxCopies = 4, kAlwaysKept = std::size_t{1} << 16;
  struct Order {
    dnnl::memory::desc desc;
    std::int64_t part;
    Ref<Buffer> data;
  };
  Array plain_;
  std::mutex mutex_;
  std::vector<Order> orders_;
  std::size_t kept_bytes_ = 0;
};

/// The weights that an input holds: packed ones, or null for a plain array.
PackedWeights* packed_weights(const Array& input);

}  // namespace tandem::cpu::onednn
