#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tandem/core/array.h"
#include "tandem/graph/passes.h"
#include "tandem/runtime/execute/symbolic_shape.h"

namespace tandem {

/// Which sizes of a function's arguments vary from call to call, and which of them vary together:
/// those that were equal in all calls seen share a symbol. Immutable but for `look_at` and
/// `is_large`, which the optimizer calls before anybody else sees it; then thread-safe.
class VaryingSizes final : public SizesOfCalls {
 public:
  /// `params`: the function's arguments; sizes that they leave unknown may vary. `calls`: the
  /// shapes of calls seen, the one to be served first. Null if no size varies, too many do on their
  /// own, or the first call has one of 0 or 1, which broadcasting treats in another way.
  static std::shared_ptr<VaryingSizes> of_calls(const std::vector<Node*>& params,
                                                const std::vector<std::vector<Shape>>& calls);

  /// The shapes of the arguments; unknown where they vary.
  const std::vector<PartialShape>& shapes() const { return shapes_; }
  int num_symbols() const { return static_cast<int>(symbols_.size()); }
  /// Whether a plan made for these sizes serves a call.
  bool fits(std::span<const Array> args) const;
  /// The symbols' values in a call that fits.
  void read(std::span<const Array> args, std::span<std::int64_t> symbols) const {
    for (std::size_t s = 0; s < symbols_.size(); ++s) {
      const Place first = symbols_[s].front();
      symbols[s] = args[first.arg].shape()[first.axis];
    }
  }

  std::vector<PartialShape> stand_ins() const override;
  void look_at(const MutableFunction& function) override;
  bool is_large(const Node& node) override;

  /// What shape inference says of each output of a graph whose arguments have these sizes; nothing
  /// where it depends on values, or is no polynomial.
  class Inferred {
   public:
    const SymbolicShape* of(const Node& node, int output) const;

   private:
    friend class VaryingSizes;
    std::vector<std::vector<std::optional<SymbolicShape>>> shapes_;  // by node id
  };
  Inferred infer(const MutableFunction& function) const;

 private:
  struct Place {
    std::size_t arg;
    int axis;
  };
  // What the optimizer asked, and what it was answered.
  struct Decision {
    SymbolicShape shape;
    bool large;
  };
  std::vector<PartialShape> shapes_at(SymbolValues symbols) const;

  std::vector<PartialShape> shapes_;
  std::vector<std::vector<Place>> symbols_;
  std::vector<std::int64_t> of_call_;  // the symbols' values in the call to be served
  Inferred looked_at_;
  std::vector<Decision> decisions_;
};

}  // namespace tandem
