// Optionals: OptionalFromValue, OptionalNone, OptionalHasValue, OptionalGetValue.

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/graph/optional_value.h"

namespace tandem::cpu {
namespace {

const OptionalValue& optional_input(const KernelContext& c) {
  const Array& handle = c.input(0);
  if (handle.rank() != 0) {
    throw InvalidArgumentError(cat("Input to ", c.op().name,
                                   " must be a scalar tensor containing an OptionalVariant "
                                   "object."));
  }
  const auto* optional = handle.data<Variant>()->as<OptionalValue>();
  if (optional == nullptr) {
    throw InvalidArgumentError(
        cat("Input to ", c.op().name, " must be an OptionalVariant object."));
  }
  return *optional;
}

void from_value(KernelContext& c) {
  std::vector<Array> components;
  // The trait that an input lives on in the result reaches as far as a mask does.
  for (int i = 0; i < c.num_inputs(); ++i)
    components.push_back(i < 32 ? c.input(i) : c.input(i).clone());
  c.set_output(0, Array::scalar(Variant(make_ref<OptionalValue>(std::move(components)))));
}

void none(KernelContext& c) { c.set_output(0, Array::scalar(Variant(make_ref<OptionalValue>()))); }

void has_value(KernelContext& c) {
  const bool has = optional_input(c).has_value();
  *c.allocate_output(0, Shape{}).data<bool>() = has;
}

void get_value(KernelContext& c) {
  const auto& types = c.attr<std::vector<DType>>("output_types");
  const auto& shapes = c.attr<std::vector<PartialShape>>("output_shapes");
  if (types.size() != shapes.size()) {
    throw InvalidArgumentError(cat(
        "output_types and output_shapes must be same length, got:\noutput_types: ", types.size(),
        "\noutput_shapes: ", shapes.size()));
  }
  const OptionalValue& optional = optional_input(c);
  if (!optional.has_value())
    throw InvalidArgumentError("The given optional does not have a value.");
  const std::vector<Array>& components = optional.components();
  if (components.size() != types.size()) {
    throw InvalidArgumentError(
        cat("The given optional has ", components.size(), " components, expected ", types.size()));
  }
  for (std::size_t i = 0; i < components.size(); ++i) {
    if (components[i].dtype() != types[i]) {
      throw InvalidArgumentError(
          cat("The given optional does not match the expected type for component ", i,
              ". Expected: ", types[i], ". Actual: ", components[i].dtype(), "."));
    }
    if (!shapes[i].is_compatible(components[i].shape())) {
      throw InvalidArgumentError(
          cat("The given optional does not match the expected shape for component ", i,
              ". Expected: ", shapes[i], ". Actual: ", components[i].shape(), "."));
    }
  }
  for (std::size_t i = 0; i < components.size(); ++i)
    c.set_output(static_cast<int>(i), components[i]);
}

const KernelRegistration kFromValue{{.op = "OptionalFromValue", .run = from_value}};
const KernelRegistration kNone{{.op = "OptionalNone", .run = none}};
const KernelRegistration kHasValue{{.op = "OptionalHasValue", .run = has_value}};
const KernelRegistration kGetValue{{.op = "OptionalGetValue", .run = get_value}};

}  // namespace
}  // namespace tandem::cpu
