#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tandem/core/dtype.h"
#include "tandem/core/dtype_like.h"
#include "tandem/core/export.h"
#include "tandem/core/shape.h"
#include "tandem/core/string.h"

namespace tandem {
class Index;
}

namespace tandem::keras {

namespace internal {
struct CallNode;
}

/// A value in a model under construction: shape and dtype are known, the batch size usually not.
///
/// Made by Input and by calling layers with KerasTensors; Model(inputs, outputs) makes a model of
/// what lies between. Keeps the layers alive that lead to it.
class TANDEM_EXPORT KerasTensor {
 public:
  /// Sizes of -1 are unknown, the first one (the batch) usually is.
  const PartialShape& shape() const { return shape_; }
  DType dtype() const { return dtype_; }
  /// The name of the layer that made it.
  const std::string& name() const;

  /// A part, as Tensor's brackets pick it; entries are those of tandem/ops/slice_ops.h. The first
  /// is that of the batch.
  KerasTensor operator[](const Index& entry) const;
  KerasTensor operator[](std::initializer_list<Index> entries) const;

  // ---- For layers and models. ----
  KerasTensor(std::shared_ptr<internal::CallNode> node, int index, PartialShape shape, DType dtype);
  // Copies only: there is none that refers to nothing.
  KerasTensor(const KerasTensor&) = default;
  KerasTensor& operator=(const KerasTensor&) = default;
  const std::shared_ptr<internal::CallNode>& node() const { return node_; }
  int index() const { return index_; }
  bool is_same(const KerasTensor& other) const {
    return node_ == other.node_ && index_ == other.index_;
  }

 private:
  std::shared_ptr<internal::CallNode> node_;
  int index_;
  PartialShape shape_;
  DType dtype_;
};

struct InputOptions {
  std::int64_t batch_size = -1;  ///< -1: any
  DTypeLike dtype = float32;
  String name = {};  ///< "input_layer", "input_layer_1", … by default
};

/// The beginning of a model: what will be fed, without the batch axis. Sizes may be -1 or td::none,
/// Keras' None; `{}` is one value for each example.
///
///     auto image = td::keras::Input({28, 28, 1});
///     auto tokens = td::keras::Input({td::none}, {.dtype = td::int32, .name = "tokens"});
TANDEM_EXPORT KerasTensor Input(const PartialShape& shape, const InputOptions& options = {});
inline KerasTensor Input(std::initializer_list<std::optional<std::int64_t>> shape,
                         const InputOptions& options = {}) {
  std::vector<std::int64_t> sizes;
  for (const std::optional<std::int64_t>& size : shape)
    sizes.push_back(size.value_or(PartialShape::kUnknown));
  return Input(PartialShape(std::move(sizes)), options);
}

}  // namespace tandem::keras
