#include "tandem/runtime/execute/varying_sizes.h"

#include <algorithm>
#include <utility>

#include "tandem/graph/internal/elementwise_program.h"
#include "tandem/runtime/execute/plan.h"

namespace tandem {
namespace {

constexpr auto kMaxSymbols = static_cast<std::size_t>(SymbolicDim::kMaxSymbols);
// Sizes to try, by symbol: prime, so that no size of a graph is taken for one of them by chance.
constexpr std::int64_t kLower[kMaxSymbols] = {101, 103, 107};
constexpr std::int64_t kUpper[kMaxSymbols] = {211, 223, 227};
constexpr std::int64_t kBetween[kMaxSymbols] = {173, 139, 191};
constexpr std::int64_t kBeyond[kMaxSymbols] = {1009, 919, 1013};
constexpr std::int64_t kFewestOfVarying = 2;

}  // namespace

std::shared_ptr<VaryingSizes> VaryingSizes::of_calls(const std::vector<Node*>& params,
                                                     const std::vector<std::vector<Shape>>& calls) {
  auto sizes = std::make_shared<VaryingSizes>();
  for (const Shape& shape : calls.front()) sizes->shapes_.emplace_back(shape);
  const auto size_in = [&](std::size_t call, const Place& place) {
    return calls[call][place.arg][place.axis];
  };
  for (std::size_t arg = 0; arg < params.size(); ++arg) {
    const PartialShape& param = params[arg]->output_shape(0);
    if (is_ref(params[arg]->output_dtype(0)) || !param.has_rank() ||
        param.rank() != sizes->shapes_[arg].rank())
      continue;
    for (int axis = 0; axis < param.rank(); ++axis) {
      const Place place{arg, axis};
      if (param.dim(axis) >= 0) continue;
      bool varies = false;
      for (std::size_t c = 1; c < calls.size(); ++c)
        varies = varies || size_in(c, place) != size_in(0, place);
      if (!varies) continue;
      if (size_in(0, place) < kFewestOfVarying) return nullptr;
      const auto together =
          std::find_if(sizes->symbols_.begin(), sizes->symbols_.end(), [&](const auto& places) {
            for (std::size_t c = 0; c < calls.size(); ++c) {
              if (size_in(c, places.front()) != size_in(c, place)) return false;
            }
            return true;
          });
      if (together != sizes->symbols_.end()) {
        together->push_back(place);
      } else {
        sizes->symbols_.push_back({place});
        sizes->of_call_.push_back(size_in(0, place));
      }
      sizes->shapes_[arg].set_dim(axis, PartialShape::kUnknown);
    }
  }
  if (sizes->symbols_.empty() || sizes->symbols_.size() > kMaxSymbols) return nullptr;
  return sizes;
}

bool VaryingSizes::fits(std::span<const Array> args) const {
  for (std::size_t i = 0; i < args.size(); ++i) {
    const Shape& shape = args[i].shape();
    if (shape.rank() != shapes_[i].rank()) return false;
    for (int axis = 0; axis < shape.rank(); ++axis) {
      const std::int64_t size = shapes_[i].dims()[static_cast<std::size_t>(axis)];
      if (size >= 0 && size != shape[axis]) return false;
    }
  }
  std::int64_t values[kMaxSymbols];
  const std::span<std::int64_t> symbols(values, symbols_.size());
  read(args, symbols);
  for (std::size_t s = 0; s < symbols_.size(); ++s) {
    if (symbols[s] < kFewestOfVarying) return false;
    for (const Place& place : symbols_[s]) {
      if (args[place.arg].shape()[place.axis] != symbols[s]) return false;
    }
  }
  return std::all_of(decisions_.begin(), decisions_.end(), [&](const Decision& decision) {
    const bool large = !decision.shape.elements_at(symbols, passes::kMinLargeElements - 1);
    return large == decision.large;
  });
}

std::vector<PartialShape> VaryingSizes::shapes_at(SymbolValues symbols) const {
  std::vector<PartialShape> shapes = shapes_;
  for (std::size_t s = 0; s < symbols_.size(); ++s) {
    for (const Place& place : symbols_[s]) shapes[place.arg].set_dim(place.axis, symbols[s]);
  }
  return shapes;
}

std::vector<PartialShape> VaryingSizes::stand_ins() const {
  return shapes_at({kBeyond, symbols_.size()});
}

void VaryingSizes::look_at(const MutableFunction& function) { looked_at_ = infer(function); }

bool VaryingSizes::is_large(const Node& node) {
  const SymbolicShape* shape = looked_at_.of(node, 0);
  if (!shape) return false;
  const bool large = passes::is_large(shape->at(of_call_));
  if (!shape->is_constant() && std::none_of(decisions_.begin(), decisions_.end(),
                                            [&](const Decision& d) { return d.shape == *shape; }))
    decisions_.push_back({*shape, large});
  return large;
}

const SymbolicShape* VaryingSizes::Inferred::of(const Node& node, int output) const {
  const auto id = static_cast<std::size_t>(node.id());
  const auto at = static_cast<std::size_t>(output);
  if (id >= shapes_.size() || at >= shapes_[id].size() || !shapes_[id][at]) return nullptr;
  return &*shapes_[id][at];
}

VaryingSizes::Inferred VaryingSizes::infer(const MutableFunction& function) const {
  const std::size_t symbols = symbols_.size(), corners = std::size_t{1} << symbols;
  const SymbolValues lower{kLower, symbols}, upper{kUpper, symbols};
  const SymbolValues between{kBetween, symbols}, beyond{kBeyond, symbols};
  std::vector<MutableFunction> samples;
  for (std::size_t corner = 0; corner < corners; ++corner) {
    std::int64_t values[kMaxSymbols];
    for (std::size_t i = 0; i < symbols; ++i) values[i] = (corner >> i) & 1 ? upper[i] : lower[i];
    samples.push_back(with_shapes(function, shapes_at({values, symbols})));
  }
  // Two more, which the polynomials have to foretell.
  samples.push_back(with_shapes(function, shapes_at(between)));
  samples.push_back(with_shapes(function, shapes_at(beyond)));

  const auto fit = [&](std::size_t node, int output) -> std::optional<SymbolicShape> {
    const auto shape_in = [&](std::size_t sample) -> const PartialShape& {
      return samples[sample].graph.nodes()[node]->output_shape(output);
    };
    const int rank = shape_in(0).rank();
    for (std::size_t s = 0; s < samples.size(); ++s) {
      if (!shape_in(s).is_fully_known() || shape_in(s).rank() != rank) return std::nullopt;
    }
    std::vector<SymbolicDim> dims;
    for (int axis = 0; axis < rank; ++axis) {
      std::vector<std::int64_t> values;
      for (std::size_t corner = 0; corner < corners; ++corner)
        values.push_back(shape_in(corner).dim(axis));
      const auto dim = SymbolicDim::through(std::move(values), lower, upper);
      if (!dim || dim->at(between) != shape_in(corners).dim(axis) ||
          dim->at(beyond) != shape_in(corners + 1).dim(axis))
        return std::nullopt;
      dims.push_back(*dim);
    }
    return SymbolicShape(std::move(dims));
  };
  Inferred inferred;
  inferred.shapes_.resize(static_cast<std::size_t>(function.graph.id_limit()));
  // Copies of a graph have its nodes in its order.
  const auto& nodes = function.graph.nodes();
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    auto& shapes = inferred.shapes_[static_cast<std::size_t>(nodes[n]->id())];
    for (int o = 0; o < nodes[n]->num_outputs(); ++o) shapes.push_back(fit(n, o));
  }
  return inferred;
}

}  // namespace tandem
