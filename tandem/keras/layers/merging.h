#pragma once

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/keras/layer.h"
#include "tandem/keras/layers/reshaping.h"
#include "tandem/keras/positional.h"

namespace tandem::keras {

// Layers of several inputs: `Add()({x, y})`. All but Concatenate work element by element, with
// broadcasting, and need at least two inputs.

#define TANDEM_KERAS_MERGE(NAME)                     \
  class TANDEM_EXPORT NAME : public Layer {          \
   public:                                           \
    explicit NAME(const NamedOptions& options = {}); \
  }
TANDEM_KERAS_MERGE(Add);
/// The first minus the second; exactly two.
TANDEM_KERAS_MERGE(Subtract);
TANDEM_KERAS_MERGE(Multiply);
TANDEM_KERAS_MERGE(Average);
TANDEM_KERAS_MERGE(Maximum);
TANDEM_KERAS_MERGE(Minimum);
#undef TANDEM_KERAS_MERGE

struct ConcatenateOptions {
  int axis = -1;
  String name = {};
  DTypePolicy dtype = {};
};
/// One after the other along an axis; all other sizes must agree.
class TANDEM_EXPORT Concatenate : public Layer {
 public:
  explicit Concatenate(const ConcatenateOptions& options = {});
  template <internal::Integer T>
  explicit Concatenate(T axis, const ConcatenateOptions& options = {})
      : Concatenate(internal::with_argument(options, &ConcatenateOptions::axis, axis, "axis")) {}
};

struct DotOptions {
  bool normalize = false;  ///< both to length 1 along their axes first: cosine similarity
  String name = {};
  DTypePolicy dtype = {};
};
/// The product of two inputs, summed over an axis of each, example by example: [batch, a, n] and
/// [batch, b, n] with axes 2 give [batch, a, b]; two vectors [batch, n] give [batch, 1].
class TANDEM_EXPORT Dot : public Layer {
 public:
  explicit Dot(int axes, const DotOptions& options = {});
  Dot(int axis_of_first, int axis_of_second, const DotOptions& options = {});
};

}  // namespace tandem::keras
