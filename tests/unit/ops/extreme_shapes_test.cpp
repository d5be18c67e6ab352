// Every op's shape function for attributes and constant inputs that no one means: an error of ours,
// or shapes, and never a crash.

#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/graph/graph.h"
#include "tandem/graph/op_registry.h"
#include "tandem/runtime/runtime.h"

namespace tandem {
namespace {

constexpr std::int64_t kNumbers[] = {0,
                                     1,
                                     -1,
                                     2,
                                     3,
                                     7,
                                     -2,
                                     std::int64_t{1} << 31,
                                     std::int64_t{1} << 32,
                                     std::int64_t{1} << 33,
                                     std::int64_t{1} << 62,
                                     INT64_MAX,
                                     INT64_MAX - 1,
                                     INT64_MIN,
                                     INT64_MIN + 1};

class Cases {
 public:
  explicit Cases(const OpRegistry& ops, unsigned seed) : ops_(ops), random_(seed) {}

  // A node with random attributes and inputs; true if it could be made.
  bool try_one(const OpDef& op) {
    Graph graph;
    Graph::NodeSpec spec;
    spec.op = &op;
    spec.name = "n";
    for (const AttrDef& attr : op.attrs) {
      if (attr.inferred && !one_in(8)) continue;
      if (AttrValue value = value_of(attr); !value.empty()) spec.attrs.set(attr.name, value);
    }
    try {
      for (const ArgDef& arg : op.inputs) {
        const int count = arg.is_list() ? pick(4) : 1;
        const DType own = type_of(op, arg, spec.attrs);
        for (int i = 0; i < count; ++i) {
          const DType dtype = arg.type_list_attr.empty() ? own : any_type();
          spec.inputs.push_back(input(graph, arg.is_ref ? ref_dtype(dtype) : dtype));
        }
      }
      graph.add(std::move(spec));
      return true;
    } catch (const Error&) {
      return false;
    }
  }

 private:
  int pick(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  bool one_in(int n) { return pick(n) == 0; }
  std::int64_t number() { return kNumbers[pick(static_cast<int>(std::size(kNumbers)))]; }

  DType any_type() {
    constexpr DType kTypes[] = {DType::kFloat, DType::kInt32, DType::kInt64, DType::kBool,
                                DType::kString};
    return kTypes[pick(5)];
  }
  DType type_among(const DTypeSet& allowed) {
    if (allowed.empty()) return any_type();
    for (int i = 0; i < 200; ++i) {
      const auto type = static_cast<DType>(1 + pick(kDTypeCount - 1));
      if (allowed.contains(type)) return type;
    }
    return DType::kFloat;
  }
  DType type_of(const OpDef& op, const ArgDef& arg, AttrMap& attrs) {
    if (arg.type_attr.empty()) return arg.dtype == DType::kInvalid ? DType::kFloat : arg.dtype;
    if (const AttrValue* given = attrs.find(arg.type_attr); given && given->get_if<DType>())
      return *given->get_if<DType>();
    const AttrDef* def = op.find_attr(arg.type_attr);
    const DType type = def ? type_among(def->allowed_types) : DType::kFloat;
    attrs.set(arg.type_attr, type);
    return type;
  }

  AttrValue value_of(const AttrDef& attr) {
    if (!attr.default_value.empty() && one_in(3)) return {};
    if (attr.kind == "int") {
      // Most ops refuse what is below their minimum at once.
      std::int64_t value = one_in(2) ? 1 + pick(5) : number();
      if (attr.has_minimum && !one_in(10)) value = std::max(value, attr.minimum);
      return value;
    }
    if (attr.kind == "float") return one_in(2) ? 0.5f : std::numeric_limits<float>::infinity();
    if (attr.kind == "bool") return one_in(2);
    if (attr.kind == "type") return type_among(attr.allowed_types);
    if (attr.kind == "shape") return shape();
    if (attr.kind == "string") {
      if (attr.allowed_strings.empty()) return attr.default_value.empty() ? "x" : AttrValue();
      return attr.allowed_strings[static_cast<std::size_t>(
          pick(static_cast<int>(attr.allowed_strings.size())))];
    }
    if (attr.kind == "list(int)") {
      std::vector<std::int64_t> list;
      for (int i = pick(9); i > 0; --i) list.push_back(one_in(2) ? 1 + pick(4) : number());
      return list;
    }
    if (attr.kind == "list(shape)") {
      std::vector<PartialShape> list;
      for (int i = pick(3); i > 0; --i) list.push_back(shape());
      return list;
    }
    return {};
  }

  PartialShape shape() {
    if (one_in(8)) return PartialShape::unknown();
    std::vector<std::int64_t> dims;
    for (int i = pick(6); i > 0; --i) {
      const std::int64_t large = std::int64_t{1} << (10 + pick(52));
      dims.push_back(one_in(6) ? large : one_in(6) ? -1 : pick(5));
    }
    return PartialShape(dims);
  }

  // A value of unknown content, or a constant of a few integers.
  Output input(Graph& graph, DType dtype) {
    Graph::NodeSpec spec;
    const bool whole = dtype == DType::kInt32 || dtype == DType::kInt64;
    if (whole && !one_in(4)) {
      const int rank = pick(3), count = rank == 0 ? 1 : pick(6);
      const Shape own = rank == 0   ? Shape{}
                        : rank == 1 ? Shape{count}
                                    : Shape{one_in(2) ? count : 1, one_in(2) ? 2 : 1};
      Array value(dtype, own);
      for (std::int64_t i = 0; i < value.num_elements(); ++i) {
        const std::int64_t n = one_in(2) ? pick(4) : number();
        if (dtype == DType::kInt32) {
          value.data<std::int32_t>()[i] = static_cast<std::int32_t>(n);
        } else {
          value.data<std::int64_t>()[i] = n;
        }
      }
      spec.op = &ops_.of_kind(NodeKind::kConst);
      spec.attrs = AttrMap{{"dtype", dtype}, {"value", std::move(value)}};
    } else {
      spec.op = &ops_.of_kind(NodeKind::kArg);
      spec.attrs = AttrMap{{"T", dtype}, {"index", std::int64_t{0}}};
    }
    Node* node = graph.add(std::move(spec));
    if (node->kind() == NodeKind::kArg) graph.set_output_shape(node, 0, shape());
    return {node, 0};
  }

  const OpRegistry& ops_;
  std::mt19937 random_;
};

TEST(ShapeFunctions, TakeExtremeNumbers) {
  const OpRegistry& ops = Runtime::current().ops();
  int made = 0, tried = 0;
  unsigned seed = 1;
  for (const OpDef* op : ops.all()) {
    SCOPED_TRACE(op->name);
    Cases cases(ops, seed++);
    for (int i = 0; i < 150; ++i) {
      ++tried;
      try {
        made += cases.try_one(*op) ? 1 : 0;
      } catch (const std::exception& error) {
        ADD_FAILURE() << op->name << ": " << error.what();
        break;
      }
    }
  }
  EXPECT_GT(made, tried / 20) << "most were refused before their shapes were looked at";
}

}  // namespace
}  // namespace tandem
