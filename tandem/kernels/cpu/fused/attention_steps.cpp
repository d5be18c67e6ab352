#include "tandem/kernels/cpu/fused/attention_steps.h"

#include <limits>

#include "tandem/core/error.h"
#include "tandem/kernels/cpu/fused/fused_program.h"
#include "tandem/kernels/cpu/norm/softmax_rows.h"

namespace tandem::cpu {
namespace {

// What a mask puts in place of scores and of probabilities.
constexpr float kLowest = std::numeric_limits<float>::lowest(), kZero = 0;

BinaryLoop loop_of(std::string_view op) {
  static const BinaryLoop mul = float_loops_of("Mul").binary,
                          div = float_loops_of("RealDiv").binary,
                          add = float_loops_of("AddV2").binary, sub = float_loops_of("Sub").binary;
  return op == "Mul"       ? mul
         : op == "RealDiv" ? div
         : op == "AddV2"   ? add
         : op == "Sub"     ? sub
                           : nullptr;
}

}  // namespace

AttentionStep::AttentionStep(const std::string& op, const Array& with, AttentionStrides strides)
    : kind_(Kind::kBinary),
      op_(op),
      loop_(loop_of(op)),
      values_(with.data<float>()),
      strides_(strides) {}

void AttentionStep::softmax(float* x, std::int64_t rows, std::int64_t size) const {
  if (scale_ == 1)
    softmax_rows(x, x, rows, size);
  else
    scaled_softmax_rows(x, rows, size, scale_);
}

void AttentionStep::run(float* row, std::int64_t size, std::int64_t b, std::int64_t n,
                        std::int64_t t) const {
  const std::int64_t at = b * strides_.b + n * strides_.n + t * strides_.t;
  switch (kind_) {
    case Kind::kSoftmax: return softmax(row, 1, size);
    case Kind::kScale:
      for (std::int64_t i = 0; i < size; ++i) row[i] *= scale_;
      return;
    case Kind::kBinary: return loop_(row, values_ + at, row, size, false, strides_.s == 0, 0);
    case Kind::kSelect: break;
  }
  const float* const other = values_ + at;
  const bool* const keep = keep_ + b * keep_strides_.b + n * keep_strides_.n + t * keep_strides_.t;
  if (keep_strides_.s == 0) {
    if (*keep) return;
    for (std::int64_t i = 0; i < size; ++i) row[i] = other[i * strides_.s];
  } else if (strides_.s == 0) {
    keep_of_row(keep, row, size, *other);
  } else {
    for (std::int64_t i = 0; i < size; ++i) row[i] = keep[i] ? row[i] : other[i];
  }
}

std::vector<AttentionStep> attention_steps(const std::vector<std::string>& ops, float scale,
                                           std::span<const Array> args, const AttentionAxes& axes,
                                           const AttentionSizes& sizes) {
  const std::string& letters = axes.of[AttentionAxes::kScores];
  const PartialShape scores = sizes.shape(letters);
  std::size_t next = 0;
  const auto take = [&](bool is_mask) -> const Array& {
    if (next == args.size())
      throw InvalidArgumentError("`args` has too few values for `fused_ops`.");
    const Array& arg = args[next++];
    if ((arg.dtype() == DType::kBool) != is_mask ||
        !(broadcast(scores, PartialShape(arg.shape())) == scores)) {
      throw InvalidArgumentError(cat("Argument ", next - 1, " of shape ", arg.shape(), " must be ",
                                     is_mask ? "a mask" : "numbers",
                                     " and broadcast to the scores, ", scores, "."));
    }
    return arg;
  };
  std::vector<AttentionStep> steps;
  int softmaxes = 0;
  // Factors before the softmax are its own.
  if (scale != 1 && !(!ops.empty() && ops[0] == "Softmax")) steps.emplace_back(scale, false);
  for (const std::string& op : ops) {
    if (op == "Softmax") {
      ++softmaxes;
      const float* const factor = steps.empty() ? nullptr : steps.back().factor();
      if (factor) steps.pop_back();
      steps.emplace_back((factor ? *factor : 1.0f) * (&op == &ops.front() ? scale : 1.0f));
    } else if (op == "SelectV2") {
      const Array& keep = take(true);
      const Array& other = take(false);
      steps.emplace_back(keep, AttentionStrides(letters, keep.shape()), other,
                         AttentionStrides(letters, other.shape()));
    } else if (op == "Mask") {
      const Array& keep = take(true);
      steps.emplace_back(keep, AttentionStrides(letters, keep.shape()),
                         softmaxes == 0 ? &kLowest : &kZero);
    } else if (loop_of(op) != nullptr) {
      const Array& with = take(false);
      steps.emplace_back(op, with, AttentionStrides(letters, with.shape()));
    } else {
      throw InvalidArgumentError(cat("Op ", op, " cannot be part of an attention."));
    }
  }
  if (softmaxes != 1 || next != args.size())
    throw InvalidArgumentError("`fused_ops` must have one Softmax, and a use for all of `args`.");
  return steps;
}

}  // namespace tandem::cpu
