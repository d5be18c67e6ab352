#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/core/array.h"
#include "tandem/graph/internal/attention_axes.h"
#include "tandem/kernels/cpu/elementwise/elementwise.h"
#include "tandem/kernels/shared/attention_per_axis.h"

// What _FusedAttention does to a row of scores, those of one query with all keys.

namespace tandem::cpu {

/// How many elements lie between neighbours along each axis; 0 where there is only one.
struct AttentionStrides : AttentionPerAxis {
  /// The strides of an array with these axes, the last ones if it has fewer.
  AttentionStrides(std::string_view axes, const Shape& shape) {
    std::int64_t step = 1;
    for (int i = 0; i < shape.rank(); ++i) {
      const std::int64_t size = shape.dim(-1 - i);
      if (size != 1) of(axes[axes.size() - 1 - static_cast<std::size_t>(i)]) = step;
      step *= size;
    }
  }
};

/// One of the attribute `fused_ops`, with its arguments. Reads inputs and attributes of the kernel
/// for which it was made; used by any threads.
class AttentionStep {
 public:
  /// The softmax of the scores times `scale`, or, without `softmax`, those alone.
  explicit AttentionStep(float scale, bool softmax = true)
      : kind_(softmax ? Kind::kSoftmax : Kind::kScale), scale_(scale) {}
  /// Mul, RealDiv, AddV2 or Sub of scores and `with`.
  AttentionStep(const std::string& op, const Array& with, AttentionStrides strides);
  /// SelectV2: scores where `keep` is true, `other` elsewhere.
  AttentionStep(const Array& keep, AttentionStrides keep_strides, const Array& other,
                AttentionStrides other_strides)
      : kind_(Kind::kSelect),
        values_(other.data<float>()),
        strides_(other_strides),
        keep_(keep.data<bool>()),
        keep_strides_(keep_strides) {}
  /// SelectV2 where `other`, which is static, is one number.
  AttentionStep(const Array& keep, AttentionStrides keep_strides, const float* other)
      : kind_(Kind::kSelect),
        values_(other),
        keep_(keep.data<bool>()),
        keep_strides_(keep_strides) {}

  /// The row of `size` scores of query t in matrix [b, n].
  void run(float* row, std::int64_t size, std::int64_t b, std::int64_t n, std::int64_t t) const;
  bool is_softmax() const { return kind_ == Kind::kSoftmax; }
  /// Several rows at once, of a step that is a softmax.
  void softmax(float* x, std::int64_t rows, std::int64_t size) const;
  /// The one number that all rows are multiplied by; null if the step is anything else.
  const float* factor() const {
    const AttentionStrides& s = strides_;
    return op_ == "Mul" && s.b == 0 && s.n == 0 && s.t == 0 && s.s == 0 ? values_ : nullptr;
  }

 private:
  enum class Kind { kSoftmax, kScale, kBinary, kSelect };

  Kind kind_;
  float scale_ = 1;
  std::string_view op_;  // of kBinary
  BinaryLoop loop_ = nullptr;
  const float* values_ = nullptr;
  AttentionStrides strides_{"", Shape{}};
  const bool* keep_ = nullptr;
  AttentionStrides keep_strides_{"", Shape{}};
};

/// What is done to scores by `ops`, as the attribute `fused_ops` lists them, after they have been
/// multiplied by `scale`. `args` are the ops' arguments, floats and masks, which must live as long
/// as the steps. Throws InvalidArgumentError for ops that cannot take part, and arguments that are
/// too few, too many or do not broadcast to the scores.
std::vector<AttentionStep> attention_steps(const std::vector<std::string>& ops, float scale,
                                           std::span<const Array> args, const AttentionAxes& axes,
                                           const AttentionSizes& sizes);

}  // namespace tandem::cpu
