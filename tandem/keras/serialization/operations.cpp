#include "tandem/keras/internal/operations.h"

#include <array>
#include <iterator>
#include <map>

#include "tandem/core/error.h"
#include "tandem/keras/activations.h"
#include "tandem/keras/ops/ops.h"

// Keras' operations that Tandem has, each with the arguments of Keras' class. To add one, add it to
// operations(); where a function of Tandem has another name or other defaults, to functions(), too.

namespace tandem::keras::internal {
namespace {

using Arguments = OperationArguments;

struct Parameter {
  const char* name;
  ConfigValue initial = {};  ///< Keras' default
};

struct OperationDecl {
  const char* module;
  std::vector<const char*> called_with;
  std::vector<Parameter> made_with;  ///< stand behind those that it is called with
  std::function<Tensor(const Arguments&)> compute;
  /// Integers give another dtype than with the functions of td.
  bool floating_only = false;
};

constexpr const char* kCore = "keras.src.ops.core";
constexpr const char* kMath = "keras.src.ops.math";
constexpr const char* kNn = "keras.src.ops.nn";
constexpr const char* kNumpy = "keras.src.ops.numpy";
constexpr const char* kActivations = "keras.src.activations.activations";

OperationDecl unary(const char* module, Tensor (*function)(const Tensor&)) {
  return {module, {"x"}, {}, [function](const Arguments& a) { return function(a.tensor(0)); }};
}
OperationDecl binary(Tensor (*function)(Operand, Operand)) {
  return {kNumpy, {"x1", "x2"}, {}, [function](const Arguments& a) {
            return function(a.operand(0), a.operand(1));
          }};
}
OperationDecl reduction(Tensor (*function)(const Tensor&, Axes, bool), bool floating_only = false) {
  return {kNumpy,
          {"x"},
          {{"axis"}, {"keepdims", false}},
          [function](const Arguments& a) { return function(a.tensor(0), a.axes(1), a.flag(2)); },
          floating_only};
}
// With one number.
OperationDecl shaped(const char* name, double initial, Tensor (*function)(const Tensor&, double)) {
  return {kNn, {"x"}, {{name, initial}}, [function](const Arguments& a) {
            return function(a.tensor(0), a.number(1));
          }};
}
// Along one axis.
OperationDecl along(const char* module, ConfigValue initial,
                    Tensor (*function)(const Tensor&, std::int64_t), bool floating_only = false) {
  return {module,
          {"x"},
          {{"axis", std::move(initial)}},
          [function](const Arguments& a) { return function(a.tensor(0), a.integer(1)); },
          floating_only};
}
OperationDecl running(Tensor (*function)(const Tensor&, std::optional<std::int64_t>)) {
  return {kNumpy,
          {"x"},
          {{"axis"}},
          [function](const Arguments& a) { return function(a.tensor(0), a.optional_integer(1)); },
          true};
}

std::map<std::string, OperationDecl> elementwise() {
  return {
      {"Absolute", unary(kNumpy, ops::absolute)},
      {"Arccos", unary(kNumpy, ops::arccos)},
      {"Arcsin", unary(kNumpy, ops::arcsin)},
      {"Arctan", unary(kNumpy, ops::arctan)},
      {"Ceil", unary(kNumpy, ops::ceil)},
      {"Cos", unary(kNumpy, ops::cos)},
      {"Cosh", unary(kNumpy, ops::cosh)},
      {"Erf", unary(kMath, ops::erf)},
      {"Exp", unary(kNumpy, ops::exp)},
      {"Expm1", unary(kNumpy, ops::expm1)},
      {"Floor", unary(kNumpy, ops::floor)},
      {"Isfinite", unary(kNumpy, ops::isfinite)},
      {"Isinf", unary(kNumpy, ops::isinf)},
      {"Isnan", unary(kNumpy, ops::isnan)},
      {"Log", unary(kNumpy, ops::log)},
      {"Log10", unary(kNumpy, ops::log10)},
      {"Log1p", unary(kNumpy, ops::log1p)},
      {"Log2", unary(kNumpy, ops::log2)},
      {"LogicalNot", unary(kNumpy, ops::logical_not)},
      {"Negative", unary(kNumpy, ops::negative)},
      {"Reciprocal", unary(kNumpy, ops::reciprocal)},
      {"Rsqrt", unary(kMath, ops::rsqrt)},
      {"Sign", unary(kNumpy, ops::sign)},
      {"Sin", unary(kNumpy, ops::sin)},
      {"Sinh", unary(kNumpy, ops::sinh)},
      {"Sqrt", unary(kNumpy, ops::sqrt)},
      {"Square", unary(kNumpy, ops::square)},
      {"StopGradient", unary(kCore, ops::stop_gradient)},
      {"Tan", unary(kNumpy, ops::tan)},
      {"Tanh", unary(kNumpy, ops::tanh)},
      {"Add", binary(ops::add)},
      {"Arctan2", binary(ops::arctan2)},
      {"Divide", binary(ops::divide)},
      {"DivideNoNan", binary(ops::divide_no_nan)},
      {"Equal", binary(ops::equal)},
      {"FloorDivide", binary(ops::floor_divide)},
      {"Greater", binary(ops::greater)},
      {"GreaterEqual", binary(ops::greater_equal)},
      {"Less", binary(ops::less)},
      {"LessEqual", binary(ops::less_equal)},
      {"Logaddexp", binary(ops::logaddexp)},
      {"LogicalAnd", binary(ops::logical_and)},
      {"LogicalOr", binary(ops::logical_or)},
      {"LogicalXor", binary(ops::logical_xor)},
      {"Maximum", binary(ops::maximum)},
      {"Minimum", binary(ops::minimum)},
      {"Mod", binary(ops::mod)},
      {"Multiply", binary(ops::multiply)},
      {"NotEqual", binary(ops::not_equal)},
      {"Power", binary(ops::power)},
      {"Subtract", binary(ops::subtract)},
      {"TrueDivide", binary(ops::true_divide)},
      {"Where",
       {kNumpy,
        {"condition", "x1", "x2"},
        {},
        [](const Arguments& a) { return ops::where(a.tensor(0), a.operand(1), a.operand(2)); }}},
      {"Clip",
       {kNumpy,
        {"x"},
        {{"x_min"}, {"x_max"}},
        [](const Arguments& a) { return ops::clip(a.tensor(0), a.operand(1), a.operand(2)); }}},
      {"Cast",
       {kCore,
        {"x"},
        {{"dtype"}},
        [](const Arguments& a) { return ops::cast(a.tensor(0), a.dtype(1)); }}},
  };
}

std::map<std::string, OperationDecl> activation() {
  const auto relu = [](const Arguments& a) {
    return activations::relu(a.tensor(0), {.negative_slope = a.number(1),
                                           .max_value = a.optional_number(2),
                                           .threshold = a.number(3)});
  };
  return {
      {"Celu", shaped("alpha", 1.0, activations::celu)},
      {"Elu", shaped("alpha", 1.0, activations::elu)},
      {"Gelu",
       {kNn,
        {"x"},
        {{"approximate", true}},
        [](const Arguments& a) { return ops::gelu(a.tensor(0), a.flag(1)); }}},
      {"Glu", along(kNn, std::int64_t{-1}, activations::glu)},
      {"HardShrink", shaped("threshold", 0.5, activations::hard_shrink)},
      {"HardSigmoid", unary(kNn, activations::hard_sigmoid)},
      {"HardSilu", unary(kNn, activations::hard_silu)},
      {"HardTanh", unary(kNn, activations::hard_tanh)},
      {"LeakyRelu", shaped("negative_slope", 0.2, activations::leaky_relu)},
      {"LogSigmoid", unary(kNn, ops::log_sigmoid)},
      {"LogSoftmax", along(kNn, std::int64_t{-1}, ops::log_softmax)},
      {"ReLU",
       {kActivations, {"x"}, {{"negative_slope", 0.0}, {"max_value"}, {"threshold", 0.0}}, relu}},
      {"Relu", unary(kNn, ops::relu)},
      {"Relu6", unary(kNn, ops::relu6)},
      {"Selu", unary(kNn, ops::selu)},
      {"Sigmoid", unary(kNn, ops::sigmoid)},
      {"Silu", unary(kNn, ops::silu)},
      {"SoftShrink", shaped("threshold", 0.5, activations::soft_shrink)},
      {"Softmax", along(kNn, std::int64_t{-1}, ops::softmax)},
      {"Softplus", unary(kNn, ops::softplus)},
      {"Softsign", unary(kNn, ops::softsign)},
      {"SparsePlus", unary(kNn, activations::sparse_plus)},
      {"SparseSigmoid", unary(kNn, activations::sparse_sigmoid)},
      {"Sparsemax", along(kNn, std::int64_t{-1}, activations::sparsemax)},
      {"Squareplus", shaped("b", 4.0, activations::squareplus)},
      {"TanhShrink", unary(kNn, activations::tanh_shrink)},
  };
}

std::map<std::string, OperationDecl> reductions() {
  return {
      {"All", reduction(ops::all)},       {"Amax", reduction(ops::amax)},
      {"Amin", reduction(ops::amin)},     {"Any", reduction(ops::any)},
      {"Cumprod", running(ops::cumprod)}, {"Cumsum", running(ops::cumsum)},
      {"Max", reduction(ops::max)},       {"Mean", reduction(ops::mean, true)},
      {"Min", reduction(ops::min)},       {"Prod", reduction(ops::prod, true)},
      {"Std", reduction(ops::std)},       {"Sum", reduction(ops::sum, true)},
      {"Var", reduction(ops::var)},
  };
}

std::map<std::string, OperationDecl> arrays() {
  return {
      {"Concatenate",
       {kNumpy,
        {"xs"},
        {{"axis", std::int64_t{0}}},
        [](const Arguments& a) { return ops::concatenate(a.tensors(0), a.integer(1)); }}},
      {"ExpandDims", along(kNumpy, {}, ops::expand_dims)},
      {"GetItem",
       {kNumpy,
        {"x", "key"},
        {},
        [](const Arguments& a) { return tandem::index(a.tensor(0), a.index(1)); }}},
      {"Matmul",
       {kNumpy,
        {"x1", "x2"},
        {},
        [](const Arguments& a) { return ops::matmul(a.tensor(0), a.tensor(1)); },
        true}},
      {"Reshape",
       {kNumpy,
        {"x"},
        {{"newshape"}},
        [](const Arguments& a) { return ops::reshape(a.tensor(0), a.integers(1)); }}},
      {"Squeeze",
       {kNumpy,
        {"x"},
        {{"axis"}},
        [](const Arguments& a) { return ops::squeeze(a.tensor(0), a.optional_integer(1)); }}},
      {"Stack",
       {kNumpy,
        {"x"},
        {{"axis", std::int64_t{0}}},
        [](const Arguments& a) { return ops::stack(a.tensors(0), a.integer(1)); }}},
      {"Take",
       {kNumpy,
        {"x", "indices"},
        {{"axis"}},
        [](const Arguments& a) {
          return ops::take(a.tensor(0), a.tensor(1), a.optional_integer(2));
        }}},
      {"Transpose",
       {kNumpy,
        {"x"},
        {{"axes"}},
        [](const Arguments& a) {
          const Axes axes = a.axes(1);
          return axes.all() ? ops::transpose(a.tensor(0))
                            : ops::transpose(a.tensor(0), *axes.list());
        }}},
  };
}

const std::map<std::string, OperationDecl>& operations() {
  static const auto& table = *[] {
    auto* all = new std::map<std::string, OperationDecl>(elementwise());  // NOLINT: never freed
    all->merge(activation());
    all->merge(reductions());
    all->merge(arrays());
    return all;
  }();
  return table;
}

// Functions of Tandem whose operation of Keras has another name, or other defaults.
struct FunctionDecl {
  const char* class_name;
  std::vector<ConfigValue> initial = {};  ///< of what the operation is made with
};
const std::map<std::string, FunctionDecl>& functions() {
  static const auto& table = *new std::map<std::string, FunctionDecl>{
      // NOLINT: never freed
      {"abs", {"Absolute"}},       {"cumsum", {"Cumsum", {std::int64_t{0}}}},
      {"exponential", {"Exp"}},    {"gather", {"Take", {std::int64_t{0}}}},
      {"gelu", {"Gelu", {false}}}, {"hard_swish", {"HardSilu"}},
      {"pow", {"Power"}},          {"reduce_max", {"Max"}},
      {"reduce_mean", {"Mean"}},   {"reduce_min", {"Min"}},
      {"reduce_prod", {"Prod"}},   {"reduce_sum", {"Sum"}},
      {"swish", {"Silu"}},
  };
  return table;
}

// "leaky_relu" as Keras names classes: "LeakyRelu".
std::string camel_case(const std::string& name) {
  std::string text;
  bool upper = true;
  for (const char c : name) {
    if (c != '_') text += upper && c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    upper = c == '_';
  }
  return text;
}

}  // namespace

std::string operation_class(const std::string& name) {
  const auto function = functions().find(name);
  return function == functions().end() ? camel_case(name) : function->second.class_name;
}

std::optional<SavedOperation> saved_operation(const std::string& name,
                                              const std::vector<SavedArgument>& arguments,
                                              DType dtype) {
  const auto found = operations().find(operation_class(name));
  if (found == operations().end()) return std::nullopt;
  const OperationDecl& decl = found->second;
  const std::size_t called_with = decl.called_with.size();
  if (arguments.size() < called_with || arguments.size() > called_with + decl.made_with.size() ||
      (decl.floating_only && !is_floating(dtype)))
    return std::nullopt;
  const auto function = functions().find(name);
  SavedOperation saved{.class_name = found->first, .module = decl.module};
  for (std::size_t i = 0; i < called_with + decl.made_with.size(); ++i) {
    if (i < arguments.size() && !arguments[i]) return std::nullopt;
    if (i < called_with) {
      saved.arguments.push_back(*arguments[i]);
      continue;
    }
    const std::size_t at = i - called_with;
    const bool has_own = function != functions().end() && at < function->second.initial.size();
    const ConfigValue& initial =
        has_own ? function->second.initial[at] : decl.made_with[at].initial;
    saved.config.set(decl.made_with[at].name, i < arguments.size() ? *arguments[i] : initial);
  }
  return saved;
}

Operation operation_of(const SavedOperation& saved) {
  const auto found = operations().find(saved.class_name);
  if (found == operations().end()) {
    throw UnimplementedError(cat("it is the operation ", saved.class_name, " of ", saved.module,
                                 ", which Tandem does not read from files. Use a layer of your "
                                 "own: td::keras::register_layer."));
  }
  const OperationDecl& decl = found->second;
  if (saved.arguments.size() != decl.called_with.size()) {
    throw InvalidArgumentError(cat("it is called with ", saved.arguments.size(), " arguments, but ",
                                   saved.class_name, " takes ", decl.called_with.size(), "."));
  }
  std::vector<ConfigValue> values = saved.arguments;
  for (const Parameter& parameter : decl.made_with) {
    const ConfigValue* value = saved.config.find(parameter.name);
    values.push_back(value ? *value : parameter.initial);
  }
  return [compute = decl.compute,
          arguments = OperationArguments(std::move(values))](const std::vector<Tensor>& inputs) {
    return std::vector<Tensor>{compute(arguments.with_inputs(inputs))};
  };
}

}  // namespace tandem::keras::internal
