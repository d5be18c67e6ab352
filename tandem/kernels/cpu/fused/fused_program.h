#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/core/array.h"
#include "tandem/core/ref.h"
#include "tandem/graph/kernel.h"
#include "tandem/graph/kernel_context.h"
#include "tandem/kernels/cpu/support/scratch.h"

// Several elementwise ops computed in one pass: block by block, so that what is between them stays
// in the nearest cache. Everything is computed in float.

namespace tandem::cpu {

/// The attributes `ops`, `operands` and, where there is one, `results` of _FusedElementwise or
/// alike, read and checked. Immutable.
class FusedProgram final : public RefCounted {
 public:
  /// Throws InvalidArgumentError for operands that are not there, UnimplementedError for ops that
  /// cannot be fused.
  /// `results` are numbered like operands; without any there is one, the last op's.
  FusedProgram(const std::vector<std::string>& ops, const std::vector<std::int64_t>& operands,
               int inputs, std::vector<std::int64_t> results = {});
  /// The program of this node, read once.
  static Ref<FusedProgram> of(KernelContext& c);

  struct Step {
    ElementLoops loops;
    std::vector<int> operands;  ///< i is input i, inputs() + k the result of step k
    int buffer = 0;             ///< where its result stays until its last reader is over
  };
  const std::vector<Step>& steps() const { return steps_; }
  /// The values that are results, numbered like operands. Without an attribute `results` there is
  /// one, that of the last step, or an input.
  const std::vector<int>& results() const { return results_; }
  int inputs() const { return inputs_; }
  int buffers() const { return buffers_; }
  /// ns an element, roughly.
  double cost() const { return cost_; }

 private:
  int inputs_ = 0;
  int buffers_ = 0;
  double cost_ = 0;
  std::vector<int> results_;
  std::vector<Step> steps_;
};

/// How the elements of an input are found for those of the result, a row-major block of which it
/// gives at a time.
class BlockSource {
 public:
  /// `input` broadcasts to `shape`.
  BlockSource(const Array& input, const Shape& shape);
  /// A source whose elements are given for each block as it is computed.
  static BlockSource given();
  bool is_given() const { return kind_ == Kind::kGiven; }
  /// After how many elements it repeats, if that is so soon that `prepare` lays it out: 1 for a
  /// scalar. Else 0.
  std::int64_t period(std::int64_t size) const;
  /// Floats of scratch memory that `prepare` fills and `block` uses, for blocks of `size`.
  std::int64_t scratch(std::int64_t size) const;
  void prepare(float* scratch, std::int64_t size) const;
  /// The floats for elements [begin, begin + n), or the one float of a scalar.
  const float* block(float* scratch, std::int64_t size, std::int64_t begin, std::int64_t n) const;

 private:
  BlockSource() = default;
  enum class Kind { kFull, kScalar, kRow, kColumn, kGiven };
  void load(std::int64_t begin, std::int64_t n, float* to) const;
  void fetch(std::int64_t begin, std::int64_t n) const;
  float element(std::int64_t i) const;
  bool is_short(std::int64_t size) const { return period_ <= 4 * size; }

  Kind kind_ = Kind::kFull;
  Array values_;
  std::int64_t period_ = 1;  ///< kRow: elements until it repeats; kColumn: repetitions of each
};

/// Runs a program over blocks of a result; one for each thread at work. Steps whose operands all
/// repeat are done once.
class FusedRun {
 public:
  /// Blocks have at most `size` elements.
  FusedRun(const FusedProgram& program, const std::vector<BlockSource>& sources, std::int64_t size);
  /// The result's elements [begin, begin + n), written to `out`, which may be where an input lies.
  /// `given` has the elements of inputs that are given.
  void block(std::int64_t begin, std::int64_t n, float* out, const float* given = nullptr);
  /// The same, but a result that lies somewhere already stays there: where it is, until the next
  /// call.
  const float* compute(std::int64_t begin, std::int64_t n, float* out,
                       const float* given = nullptr);

  /// Computes all that the program has for elements [begin, begin + n), for `result`.
  void compute(std::int64_t begin, std::int64_t n);
  /// The program's i-th result for the n elements of the last `compute`: where it is, until the
  /// next one, or in `scratch`.
  const float* result(std::size_t i, std::int64_t n, float* scratch) const;

 private:
  // An input or a step's result.
  struct Value {
    std::int64_t period = 0;      ///< 0: differs from block to block
    float* memory = nullptr;      ///< scratch, or a period and a block more
    const float* data = nullptr;  ///< for the block at hand
  };
  void find_inputs(std::int64_t begin, std::int64_t n, const float* given);
  void run_step(const FusedProgram::Step& step, std::int64_t n, float* buffer, float* out) const;
  const Value& value(int number) const { return values_[static_cast<std::size_t>(number)]; }

  const FusedProgram& program_;
  const std::vector<BlockSource>& sources_;
  std::int64_t size_;
  std::optional<Scratch> memory_;
  std::vector<Value> values_;
};

/// The loops by which the best kernel of an op takes part in fused ops. Throws UnimplementedError
/// if none does.
ElementLoops float_loops_of(std::string_view op);

}  // namespace tandem::cpu
