#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "tandem/core/array.h"
#include "tandem/core/attr.h"
#include "tandem/core/error.h"
#include "tandem/core/export.h"
#include "tandem/core/shape.h"
#include "tandem/graph/op_def.h"

namespace tandem {

/// What a shape function sees: the inputs' partial shapes, constant inputs' values, attributes; it
/// sets the outputs'.
///
/// Throw InvalidArgumentError (through `fail` or the helpers) when the inputs cannot fit; the graph
/// adds the node's name.
class TANDEM_EXPORT InferenceContext {
 public:
  /// `value_of(i)` gives input i's value if it is known, `shape_value_of(i)` what is known of a
  /// shape held by input i.
  InferenceContext(const OpDef& op, const AttrMap& attrs, std::vector<PartialShape> inputs,
                   std::vector<DType> input_dtypes, int num_outputs,
                   std::function<const Array*(int)> value_of,
                   std::function<std::optional<PartialShape>(int)> shape_value_of);

  const OpDef& op() const { return op_; }
  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  int num_outputs() const { return static_cast<int>(outputs_.size()); }
  const PartialShape& input(int i) const { return inputs_[static_cast<std::size_t>(i)]; }
  DType input_dtype(int i) const { return input_dtypes_[static_cast<std::size_t>(i)]; }
  void set_output(int i, PartialShape shape) {
    outputs_[static_cast<std::size_t>(i)] = std::move(shape);
  }
  std::vector<PartialShape> take_outputs() { return std::move(outputs_); }

  /// The value of input i if it is a known constant, else null.
  const Array* input_value(int i) const { return value_of_(i); }
  /// A constant integer input (int32 or int64), flattened; nothing if unknown.
  std::optional<std::vector<std::int64_t>> input_ints(int i) const;
  /// The shape that integer input i holds: its value if constant, else what is known of it (-1 for
  /// unknown sizes, unknown rank if not even its length is known).
  PartialShape input_as_shape(int i) const;

  template <class T>
  const T& attr(std::string_view name) const {
    const AttrValue* value = attrs_.find(name);
    const T* typed = value ? value->get_if<T>() : nullptr;
    if (!typed)
      throw InternalError(
          cat("op ", op_.name, " has no attribute '", name, "' of the type asked for"));
    return *typed;
  }
  const AttrMap& attrs() const { return attrs_; }

  // Helpers that throw a message naming the input, its shape and what was expected.
  void require_rank(int input, int rank) const;
  void require_rank_at_least(int input, int rank) const;
  /// The two sizes as one (either may be unknown); throws when they differ, naming `what`.
  std::int64_t merge_dim(std::int64_t a, std::int64_t b, std::string_view what) const;
  [[noreturn]] void fail(const std::string& message) const;

 private:
  const OpDef& op_;
  const AttrMap& attrs_;
  std::vector<PartialShape> inputs_;
  std::vector<DType> input_dtypes_;
  std::vector<PartialShape> outputs_;
  std::function<const Array*(int)> value_of_;
  std::function<std::optional<PartialShape>(int)> shape_value_of_;
};

// Shape functions that many ops share.
namespace shapes {
TANDEM_EXPORT void unchanged(InferenceContext& c);         ///< output 0 as input 0
TANDEM_EXPORT void broadcast_binary(InferenceContext& c);  ///< inputs 0 and 1 broadcast
TANDEM_EXPORT void scalar(InferenceContext& c);            ///< every output a scalar
TANDEM_EXPORT void none(InferenceContext& c);              ///< op without outputs
TANDEM_EXPORT void unknown(InferenceContext& c);
}  // namespace shapes

}  // namespace tandem
