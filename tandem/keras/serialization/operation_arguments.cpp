#include "tandem/keras/internal/operation_arguments.h"

#include <limits>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/shape_ops.h"

namespace tandem::keras::internal {
namespace {

using Object = std::shared_ptr<const ConfigObject>;
using List = std::shared_ptr<const ConfigList>;
using Integers = std::vector<std::int64_t>;

constexpr const char* kInput = "__input__";

template <class T>
const T* as(const ConfigValue& value) {
  return std::get_if<T>(&value);
}

// The elements from `next` on as nested lists of `shape` from `axis` on.
template <class T, class Element>
ConfigValue nested(std::span<const T> values, const Shape& shape, int axis, std::size_t& next,
                   const Element& element) {
  if (axis == shape.rank()) return element(values[next++]);
  std::vector<ConfigValue> list;
  for (std::int64_t i = 0; i < shape.dim(axis); ++i)
    list.push_back(nested(values, shape, axis + 1, next, element));
  return config_value(std::move(list));
}
template <class T, class Element>
ConfigValue nested(const Tensor& tensor, const Element& element) {
  std::size_t next = 0;
  return nested(std::span<const T>(tensor.array().values<T>()), tensor.shape(), 0, next, element);
}

// Nested lists of numbers, row by row.
struct Numbers {
  Integers shape;
  Integers integers;  // those of flags, too
  std::vector<double> numbers;
  bool whole = true;
  bool flags = true;

  bool add(const ConfigValue& value, std::size_t depth) {
    if (const auto* list = as<List>(value)) {
      if (!enter((*list)->values.size(), depth)) return false;
      for (const ConfigValue& entry : (*list)->values)
        if (!add(entry, depth + 1)) return false;
      return true;
    }
    if (const auto* list = as<Integers>(value)) {
      if (!enter(list->size(), depth)) return false;
      for (const std::int64_t entry : *list)
        if (!add(entry, depth + 1)) return false;
      return true;
    }
    if (depth != shape.size()) return false;
    if (const auto* flag = as<bool>(value)) {
      integers.push_back(*flag ? 1 : 0);
    } else if (const auto* integer = as<std::int64_t>(value)) {
      integers.push_back(*integer);
      flags = false;
    } else if (const auto* number = as<double>(value)) {
      integers.push_back(0);
      whole = flags = false;
      numbers.push_back(*number);
      return true;
    } else {
      return false;
    }
    numbers.push_back(static_cast<double>(integers.back()));
    return true;
  }

  // The size of an axis is that of the first list of its depth.
  bool enter(std::size_t size, std::size_t depth) {
    if (depth == shape.size() && numbers.empty()) shape.push_back(static_cast<std::int64_t>(size));
    return depth < shape.size() && shape[depth] == static_cast<std::int64_t>(size);
  }

  Tensor tensor(DType dtype) const {
    const Tensor flat = whole ? Tensor(integers) : Tensor(numbers);
    return cast(reshape(flat, shape), dtype);
  }
};

Slice slice_of(const Config& config) {
  const auto end = [&](const char* name) {
    const ConfigValue* value = config.find(name);
    const auto* integer = value ? as<std::int64_t>(*value) : nullptr;
    return integer ? std::optional(*integer) : std::nullopt;
  };
  return Slice(end("start"), end("stop"), end("step").value_or(1));
}

}  // namespace

ConfigValue input_argument(std::size_t index) {
  return config_value(ConfigObject{
      .class_name = kInput, .config = Config().set("index", static_cast<std::int64_t>(index))});
}

std::optional<std::size_t> input_index(const ConfigValue& value) {
  const Object* object = as<Object>(value);
  if (!object || (*object)->class_name != kInput) return std::nullopt;
  const ConfigValue* index = (*object)->config.find("index");
  const auto* integer = index ? as<std::int64_t>(*index) : nullptr;
  return integer ? std::optional(static_cast<std::size_t>(*integer)) : std::nullopt;
}

ConfigValue dtype_value(DType dtype) {
  switch (dtype) {
    case DType::kFloat: return "float32";
    case DType::kDouble: return "float64";
    case DType::kHalf: return "float16";
    default: return dtype_name(dtype);
  }
}

ConfigValue tensor_value(const Tensor& tensor) {
  const DType dtype = tensor.dtype();
  Config config;
  if (dtype == DType::kBool) {
    config.set("value", nested<bool>(tensor, [](bool x) { return ConfigValue(x); }));
  } else if (is_integer(dtype)) {
    config.set("value", nested<std::int64_t>(cast(tensor, DType::kInt64),
                                             [](std::int64_t x) { return ConfigValue(x); }));
  } else {
    config.set("value", nested<double>(cast(tensor, DType::kDouble),
                                       [](double x) { return ConfigValue(x); }));
  }
  config.set("dtype", dtype_value(dtype));
  return config_value(ConfigObject{.class_name = "__tensor__", .config = std::move(config)});
}

std::optional<Tensor> tensor_of_value(const ConfigValue& value) {
  Numbers numbers;
  const Object* object = as<Object>(value);
  if (!object) {
    if (!as<List>(value) && !as<Integers>(value)) return std::nullopt;
    if (!numbers.add(value, 0)) return std::nullopt;  // of inputs, or of entries of an index
    return numbers.tensor(numbers.flags   ? DType::kBool
                          : numbers.whole ? DType::kInt32
                                          : DType::kFloat);
  }
  if ((*object)->class_name != "__tensor__" && (*object)->class_name != "__numpy__")
    return std::nullopt;
  const std::string* name = as<std::string>((*object)->config.at("dtype"));
  const std::optional<DType> dtype = name ? parse_dtype(*name) : std::nullopt;
  if (!dtype || !numbers.add((*object)->config.at("value"), 0))
    throw InvalidArgumentError("a constant among its arguments has no dtype, or unequal rows.");
  return numbers.tensor(*dtype);
}

std::optional<ConfigValue> index_value(const std::vector<Index>& entries) {
  std::vector<ConfigValue> list;
  const auto end = [](std::optional<std::int64_t> at) {
    return at ? ConfigValue(*at) : ConfigValue();
  };
  for (const Index& entry : entries) {
    switch (entry.kind()) {
      case Index::Kind::kInteger: list.emplace_back(entry.integer()); break;
      case Index::Kind::kNewAxis: list.emplace_back(); break;
      case Index::Kind::kEllipsis:
        list.push_back(config_value(ConfigObject{.class_name = "__ellipsis__"}));
        break;
      case Index::Kind::kSlice: {
        Config config;
        config.set("start", end(entry.slice().begin)).set("stop", end(entry.slice().end));
        config.set("step", entry.slice().step == 1 ? ConfigValue() : entry.slice().step);
        list.push_back(
            config_value(ConfigObject{.class_name = "__slice__", .config = std::move(config)}));
        break;
      }
      case Index::Kind::kTensor: return std::nullopt;
    }
  }
  return config_value(std::move(list));
}

OperationArguments::OperationArguments(std::vector<ConfigValue> values)
    : values_(std::move(values)) {
  for (const ConfigValue& value : values_) constants_.push_back(tensor_of_value(value));
}

void OperationArguments::wrong(std::size_t i, const char* wanted) const {
  throw InvalidArgumentError(cat("its argument ", i + 1, " is no ", wanted, "."));
}

const Tensor& OperationArguments::input(std::size_t index) const {
  if (!inputs_ || index >= inputs_->size())
    throw InvalidArgumentError(cat("it lacks input ", index + 1, "."));
  return (*inputs_)[index];
}

Operand OperationArguments::operand(std::size_t i) const {
  const ConfigValue& value = values_.at(i);
  if (constants_[i]) return *constants_[i];
  if (const auto index = input_index(value)) return input(*index);
  if (const auto* flag = as<bool>(value)) return *flag;
  if (const auto* number = as<double>(value)) return *number;
  if (const auto* text = as<std::string>(value)) return Tensor(*text);
  const auto* integer = as<std::int64_t>(value);
  if (!integer) wrong(i, "tensor and no number");
  using Small = std::numeric_limits<std::int32_t>;
  if (*integer >= Small::min() && *integer <= Small::max())
    return static_cast<std::int32_t>(*integer);
  return *integer;
}
Tensor OperationArguments::tensor(std::size_t i) const { return operand(i).take(); }

std::vector<Tensor> OperationArguments::tensors(std::size_t i) const {
  const List* list = as<List>(values_.at(i));
  if (!list) wrong(i, "list of tensors");
  std::vector<Tensor> tensors;
  for (const ConfigValue& entry : (*list)->values)
    tensors.push_back(OperationArguments({entry}).with_inputs(*inputs_).tensor(0));
  return tensors;
}

Axes OperationArguments::axes(std::size_t i) const {
  if (std::holds_alternative<std::monostate>(values_.at(i))) return {};
  return integers(i);
}

std::optional<std::int64_t> OperationArguments::optional_integer(std::size_t i) const {
  if (std::holds_alternative<std::monostate>(values_.at(i))) return std::nullopt;
  return integer(i);
}
std::int64_t OperationArguments::integer(std::size_t i) const {
  const auto* integer = as<std::int64_t>(values_.at(i));
  if (!integer) wrong(i, "integer");
  return *integer;
}

std::optional<double> OperationArguments::optional_number(std::size_t i) const {
  if (std::holds_alternative<std::monostate>(values_.at(i))) return std::nullopt;
  return number(i);
}
double OperationArguments::number(std::size_t i) const {
  if (const auto* integer = as<std::int64_t>(values_.at(i))) return static_cast<double>(*integer);
  const auto* number = as<double>(values_[i]);
  if (!number) wrong(i, "number");
  return *number;
}

bool OperationArguments::flag(std::size_t i) const {
  const auto* flag = as<bool>(values_.at(i));
  if (!flag) wrong(i, "bool");
  return *flag;
}

std::vector<std::int64_t> OperationArguments::integers(std::size_t i) const {
  if (const auto* integer = as<std::int64_t>(values_.at(i))) return {*integer};
  const auto* list = as<Integers>(values_[i]);
  if (!list) wrong(i, "list of integers");
  return *list;
}

DType OperationArguments::dtype(std::size_t i) const {
  const auto* name = as<std::string>(values_.at(i));
  const std::optional<DType> dtype = name ? parse_dtype(*name) : std::nullopt;
  if (!dtype) wrong(i, "dtype");
  return *dtype;
}

std::vector<Index> OperationArguments::index(std::size_t i) const {
  std::vector<ConfigValue> entries{values_.at(i)};
  if (const auto* list = as<List>(values_[i])) entries = (*list)->values;
  std::vector<Index> index;
  if (const auto* list = as<Integers>(values_[i])) {
    for (const std::int64_t entry : *list) index.emplace_back(entry);
    return index;
  }
  for (const ConfigValue& entry : entries) {
    const Object* object = as<Object>(entry);
    if (const auto* integer = as<std::int64_t>(entry)) {
      index.emplace_back(*integer);
    } else if (std::holds_alternative<std::monostate>(entry)) {
      index.emplace_back(newaxis);
    } else if (object && (*object)->class_name == "__ellipsis__") {
      index.emplace_back(ellipsis);
    } else if (object && (*object)->class_name == "__slice__") {
      index.emplace_back(slice_of((*object)->config));
    } else {
      throw UnimplementedError("it is indexed with more than integers, slices and new axes.");
    }
  }
  return index;
}

}  // namespace tandem::keras::internal
