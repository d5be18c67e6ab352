#include "tandem/graph/internal/integer_values.h"

#include <algorithm>
#include <limits>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/core/never_destroyed.h"
#include "tandem/core/strided_index.h"

namespace tandem::internal {
namespace {

using Elements = std::vector<KnownInteger>;
using Maybe = std::optional<Elements>;

// Shapes and paddings are short. What is longer is a tensor like others.
constexpr std::int64_t kMaxElements = 2 * Shape::kMaxRank;

Maybe elements_of(const Array& value) {
  if (value.num_elements() > kMaxElements) return std::nullopt;
  Elements all;
  for (std::int64_t i = 0; i < value.num_elements(); ++i) {
    all.emplace_back(value.dtype() == DType::kInt32 ? value.data<std::int32_t>()[i]
                                                    : value.data<std::int64_t>()[i]);
  }
  return all;
}

Elements sizes_of(const PartialShape& shape) {
  Elements sizes;
  for (const std::int64_t d : shape.dims()) {
    sizes.push_back(d < 0 ? KnownInteger() : KnownInteger(d));
  }
  return sizes;
}

KnownInteger product(std::span<const KnownInteger> factors) {
  bool all_known = true;
  std::int64_t result = 1;
  for (const KnownInteger& f : factors) {
    if (f == 0) return 0;
    all_known = all_known && f && !__builtin_mul_overflow(result, *f, &result);
  }
  return all_known ? KnownInteger(result) : std::nullopt;
}

KnownInteger sum(KnownInteger a, KnownInteger b) {
  std::int64_t result = 0;
  if (!a || !b || __builtin_add_overflow(*a, *b, &result)) return std::nullopt;
  return result;
}
KnownInteger difference(KnownInteger a, KnownInteger b) {
  std::int64_t result = 0;
  if (!a || !b || __builtin_sub_overflow(*a, *b, &result)) return std::nullopt;
  return result;
}
KnownInteger times(KnownInteger a, KnownInteger b) {
  const KnownInteger both[] = {a, b};
  return product(both);
}
KnownInteger floor_quotient(KnownInteger a, KnownInteger b) {
  if (!a || !b || *a < 0 || *b <= 0) return std::nullopt;  // of sizes
  return *a / *b;
}
KnownInteger smaller(KnownInteger a, KnownInteger b) {
  return a && b ? KnownInteger(std::min(*a, *b)) : std::nullopt;
}
KnownInteger larger(KnownInteger a, KnownInteger b) {
  return a && b ? KnownInteger(std::max(*a, *b)) : std::nullopt;
}

class Follower {
 public:
  explicit Follower(const KnownOutputs& known) : known_(known) {}

  Maybe follow(Output output) {
    if (!output.node || !kIndexTypes.contains(output.node->output_dtype(output.index)))
      return std::nullopt;
    if (const Array* value = constant_value(output)) return elements_of(*value);
    const std::int64_t count = shape_of(output).num_elements();
    if (count > kMaxElements) return std::nullopt;
    Maybe all = budget_-- > 0 ? computed(output) : std::nullopt;
    if (!all || (count >= 0 && count != std::ssize(*all)))
      return count >= 0 ? Maybe(Elements(static_cast<std::size_t>(count))) : std::nullopt;
    if (std::ssize(*all) > kMaxElements) return std::nullopt;
    for (KnownInteger& e : *all) {
      const bool narrow = output.node->output_dtype(output.index) == DType::kInt32;
      if (narrow && e && *e != static_cast<std::int32_t>(*e)) e.reset();
    }
    return all;
  }

 private:
  using Binary = KnownInteger (*)(KnownInteger, KnownInteger);

  const KnownOutputs& known_;
  // Nodes looked at for one value: each may lead to several others, and those to the same ones.
  int budget_ = 256;

  Maybe computed(Output output) {
    const Node& node = *output.node;
    const auto& in = node.inputs();
    if (node.kind() == NodeKind::kArg) {
      const std::optional<PartialShape> held = known_.held(node);
      return held && held->has_rank() ? Maybe(sizes_of(*held)) : std::nullopt;
    }
    switch (node.op().traits.value) {
      case ShapeValue::kShapeOfInput: {
        const PartialShape& shape = shape_of(in[static_cast<std::size_t>(output.index)]);
        return shape.has_rank() ? Maybe(sizes_of(shape)) : std::nullopt;
      }
      case ShapeValue::kSameAsInput: return follow(in[0]);
      case ShapeValue::kPackOfInputs: {
        const PartialShape& one = shape_of(in[0]);
        if (!one.has_rank()) return std::nullopt;
        const AttrValue* at = node.attrs().find("axis");
        const std::int64_t axis = at ? *at->get_if<std::int64_t>() : 0;
        return joined(in, static_cast<int>(axis < 0 ? axis + one.rank() + 1 : axis));
      }
      case ShapeValue::kSliceOfShape: return in.size() == 4 ? strided_slice(node) : element(node);
      case ShapeValue::kNone: break;
    }
    using Binaries = std::unordered_map<std::string_view, Binary>;
    static const NeverDestroyed<Binaries> binaries([] {
      return Binaries{
          {"Add", sum},         {"AddV2", sum},      {"Sub", difference},         {"Mul", times},
          {"Minimum", smaller}, {"Maximum", larger}, {"FloorDiv", floor_quotient}};
    });
    const std::string& op = node.op().name;
    if (const auto found = binaries->find(op); found != binaries->end()) {
      return elementwise(output, found->second);
    }
    if (op == "Reshape" || op == "ExpandDims" || op == "Squeeze") return follow(in[0]);
    if (op == "ConcatV2") {
      const PartialShape& one = shape_of(in[0]);
      const Maybe axis = follow(in.back());
      if (!one.has_rank() || !axis || axis->size() != 1 || !axis->front()) return std::nullopt;
      const std::int64_t at = *axis->front();
      return joined(std::span(in).first(in.size() - 1),
                    static_cast<int>(at < 0 ? at + one.rank() : at));
    }
    if (op == "Slice") return slice(node);
    if (op == "Unpack") return unpacked(output);
    if (op == "Size") return shape_of(in[0]).has_rank() ? size_of(in[0]) : std::nullopt;
    if (op == "Rank" && shape_of(in[0]).has_rank()) return Elements{shape_of(in[0]).rank()};
    if (op == "Prod") {
      const Maybe factors = follow(in[0]);
      const bool of_all =
          shape_of({output.node, 0}).num_elements() == 1 && shape_of(in[0]).rank() == 1;
      return factors && of_all ? Maybe(Elements{product(*factors)}) : std::nullopt;
    }
    return std::nullopt;
  }

  const PartialShape& shape_of(Output output) const { return known_.shape(output); }

  Maybe size_of(Output output) const { return Elements{product(sizes_of(shape_of(output)))}; }

  // One after the other along an axis: of each the elements behind it, for each index before it.
  Maybe joined(std::span<const Output> values, int axis) {
    std::vector<Elements> parts;
    std::int64_t before = -1;
    for (const Output& value : values) {
      const PartialShape& shape = shape_of(value);
      Maybe part = follow(value);
      if (!part || axis < 0) return std::nullopt;
      if (axis > 0 && (!shape.is_fully_known() || axis > shape.rank())) return std::nullopt;
      std::int64_t mine = 1;
      for (int i = 0; i < axis; ++i) mine *= shape.dim(i);
      if (mine == 0 || (before >= 0 && before != mine)) return std::nullopt;
      before = mine;
      parts.push_back(std::move(*part));
    }
    Elements all;
    for (std::int64_t i = 0; i < before; ++i) {
      for (const Elements& part : parts) {
        const auto size = static_cast<std::ptrdiff_t>(part.size()) / before;
        all.insert(all.end(), part.begin() + i * size, part.begin() + (i + 1) * size);
      }
    }
    return all;
  }

  Maybe elementwise(Output output, Binary function) {
    const auto& in = output.node->inputs();
    const Maybe a = follow(in[0]);
    const Maybe b = follow(in[1]);
    if (!a || !b) return std::nullopt;
    const bool fits = a->size() == b->size() || a->size() == 1 || b->size() == 1;
    if (!fits || !shape_of(output).is_fully_known()) return std::nullopt;
    Elements all;
    for (std::size_t i = 0; i < (a->size() == 1 ? b : a)->size(); ++i)
      all.push_back(function((*a)[a->size() == 1 ? 0 : i], (*b)[b->size() == 1 ? 0 : i]));
    return all;
  }

  std::optional<std::vector<std::int64_t>> all_of(Output output) {
    const Maybe some = follow(output);
    if (!some) return std::nullopt;
    std::vector<std::int64_t> all;
    for (const KnownInteger& e : *some) {
      if (!e) return std::nullopt;
      all.push_back(*e);
    }
    return all;
  }

  Maybe slice(const Node& node) {
    const auto& in = node.inputs();
    const Maybe whole = shape_of(in[0]).rank() == 1 ? follow(in[0]) : std::nullopt;
    const auto begin = all_of(in[1]);
    const auto size = all_of(in[2]);
    if (!whole || !begin || begin->size() != 1 || !size || size->size() != 1) return std::nullopt;
    const auto have = static_cast<std::int64_t>(whole->size());
    const std::int64_t from = begin->front();
    if (from < 0 || from > have) return std::nullopt;
    const std::int64_t count = size->front() == -1 ? have - from : size->front();
    if (count < 0 || count > have - from) return std::nullopt;
    return Elements(whole->begin() + from, whole->begin() + from + count);
  }

  Maybe element(const Node& node) {
    const Maybe whole = follow(node.inputs()[0]);
    const auto at = all_of(node.inputs()[1]);
    if (!whole || !at || at->size() != 1) return std::nullopt;
    const auto size = std::ssize(*whole);
    const std::int64_t i = at->front() < 0 ? at->front() + size : at->front();
    return i >= 0 && i < size ? Maybe(Elements{(*whole)[static_cast<std::size_t>(i)]})
                              : std::nullopt;
  }

  Maybe strided_slice(const Node& node) {
    const auto& in = node.inputs();
    const Maybe whole = shape_of(in[0]).rank() == 1 ? follow(in[0]) : std::nullopt;
    const auto begin = all_of(in[1]);
    const auto end = all_of(in[2]);
    const auto strides = all_of(in[3]);
    if (!whole || !begin || !end || !strides) return std::nullopt;
    StridedIndexSpec spec;
    spec.begin = *begin;
    spec.end = *end;
    spec.strides = *strides;
    spec.entries = static_cast<int>(begin->size());
    spec.begin_mask = node.attr<std::int64_t>("begin_mask");
    spec.end_mask = node.attr<std::int64_t>("end_mask");
    spec.ellipsis_mask = node.attr<std::int64_t>("ellipsis_mask");
    spec.new_axis_mask = node.attr<std::int64_t>("new_axis_mask");
    spec.shrink_axis_mask = node.attr<std::int64_t>("shrink_axis_mask");
    if (end->size() != begin->size() || strides->size() != begin->size()) return std::nullopt;
    try {
      const std::int64_t dims[] = {static_cast<std::int64_t>(whole->size())};
      const StridedIndex index(dims, spec);
      Elements picked;
      for (std::int64_t i = 0; i < index.size[0]; ++i) {
        picked.push_back((*whole)[static_cast<std::size_t>(index.begin[0] + i * index.stride[0])]);
      }
      return picked;
    } catch (const InvalidArgumentError&) {
      return std::nullopt;  // the op itself says what is wrong
    }
  }

  Maybe unpacked(Output output) {
    const Output whole = output.node->inputs()[0];
    const Maybe all = shape_of(whole).rank() == 1 ? follow(whole) : std::nullopt;
    const auto at = static_cast<std::size_t>(output.index);
    return all && at < all->size() ? Maybe(Elements{(*all)[at]}) : std::nullopt;
  }
};

}  // namespace

const Array* constant_value(Output output) {
  if (!output.node) return nullptr;
  const NodeKind kind = output.node->kind();
  if (kind != NodeKind::kConst && kind != NodeKind::kArg) return nullptr;
  const AttrValue* value =
      output.node->attrs().find(kind == NodeKind::kConst ? "value" : "_handle");
  const auto* tensor = value ? value->get_if<std::shared_ptr<const Array>>() : nullptr;
  return tensor ? tensor->get() : nullptr;
}

std::optional<std::vector<KnownInteger>> known_elements(Output output, const KnownOutputs& known) {
  return Follower(known).follow(output);
}

std::optional<Array> known_integers(Output output, const KnownOutputs& known) {
  const Maybe elements = known_elements(output, known);
  const PartialShape& shape = known.shape(output);
  if (!elements || !shape.is_fully_known()) return std::nullopt;
  Array value(output.node->output_dtype(output.index), Shape(shape.dims()));
  for (std::size_t i = 0; i < elements->size(); ++i) {
    const KnownInteger& e = (*elements)[i];
    if (!e) return std::nullopt;
    if (value.dtype() == DType::kInt32) {
      value.data<std::int32_t>()[i] = static_cast<std::int32_t>(*e);
    } else {
      value.data<std::int64_t>()[i] = *e;
    }
  }
  return value;
}

}  // namespace tandem::internal
