#include "tandem/graph/kernel_context.h"

#include <cstring>

#include "tandem/core/error.h"
#include "tandem/device/memory_space.h"

namespace tandem {

FunctionRunner::~FunctionRunner() = default;

Array& KernelContext::allocate_output_slow(int i, const Shape& shape) {
  forget_plan(i);  // the shape is not the one planned for: on its own from now on
  const DType dtype = base_dtype(output_dtypes_[i]);
  Array& output = *outputs_[i];
  if (is_object(dtype) || (i < 32 && ((host_outputs_ >> i) & 1) != 0)) {
    output = Array(dtype, shape);
    return output;
  }
  // Like allocate_on_device, but in its place: every output of an eager call comes from here.
  const std::int64_t bytes =
      checked_multiply(shape.num_elements(), static_cast<std::int64_t>(dtype_size(dtype)));
  Ref<Buffer> buffer = services_->allocator->allocate(static_cast<std::size_t>(bytes));
  void* data = buffer->data();
  output = Array(dtype, shape, std::move(buffer), data);
  if (!output.on_host()) output = kernel_view(std::move(output));
  return output;
}

Array KernelContext::allocate_on_device(DType dtype, const Shape& shape) const {
  const std::int64_t bytes =
      checked_multiply(shape.num_elements(), static_cast<std::int64_t>(dtype_size(dtype)));
  Ref<Buffer> buffer = services_->allocator->allocate(static_cast<std::size_t>(bytes));
  void* data = buffer->data();
  Array array(dtype, shape, std::move(buffer), data);
  if (!array.on_host()) array = kernel_view(std::move(array));
  return array;
}

Array KernelContext::allocate_temp(DType dtype, const Shape& shape) const {
  if (is_object(dtype)) return Array(dtype, shape);
  return allocate_on_device(base_dtype(dtype), shape);
}

Array& KernelContext::reuse_or_allocate_output(int in, int i, const Shape& shape) {
  if (has_bit(planned_outputs_, i)) return allocate_output(i, shape);
  const Array& source = *inputs_[in];
  const DType dtype = base_dtype(output_dtypes_[i]);
  if (may_overwrite_input(in) && source.num_elements() == shape.num_elements() &&
      dtype_size(source.dtype()) == dtype_size(dtype) && !is_object(dtype)) {
    *outputs_[i] = Array(dtype, shape, source.buffer(), source.raw_data());
    return *outputs_[i];
  }
  return allocate_output_slow(i, shape);
}

void KernelContext::set_output(int i, Array value) {
  if (has_bit(planned_outputs_, i)) {
    // The plan gave this output a place of its own, which others may count on.
    Array& planned = *outputs_[i];
    if (planned.shape() == value.shape() && planned.dtype() == value.dtype()) {
      if (planned.raw_data() != value.raw_data() && value.num_bytes() != 0) {
        std::memcpy(planned.raw_data(), value.raw_data(), value.num_bytes());
      }
      return;
    }
    forget_plan(i);
  }
  // Only outputs that the op declares to share an input's memory may refer to memory that the plan
  // reuses.
  const bool shares = i == 0 && op_->traits.shares_memory != 0;
  if (!shares && value.buffer() && value.buffer()->planned()) value = value.clone();
  *outputs_[i] = std::move(value);
}

const AttrValue* KernelContext::default_attr(std::string_view name) const {
  const AttrDef* def = op_->find_attr(name);
  return def && !def->default_value.empty() ? &def->default_value : nullptr;
}

DType KernelContext::type_attr(std::string_view name) const {
  if (const AttrValue* value = attrs_->find(name)) {
    if (const DType* t = value->get_if<DType>()) return *t;
  }
  if (op_->plain_arguments) {
    for (std::size_t i = 0; i < op_->inputs.size(); ++i) {
      if (op_->inputs[i].type_attr == name) return base_dtype(inputs_[i]->dtype());
    }
  } else if (!op_->inputs.empty() && num_inputs_ > 0) {
    const AttrMap complete = complete_attrs(
        *op_,
        [&] {
          std::vector<DType> types;
          for (int i = 0; i < num_inputs_; ++i) types.push_back(inputs_[i]->dtype());
          return types;
        }(),
        *attrs_);
    if (const AttrValue* value = complete.find(name)) return *value->get_if<DType>();
  }
  return attr<DType>(name);
}

void KernelContext::throw_missing_attr(std::string_view name) const {
  throw InternalError(cat("kernel of ", op_->name, " reads attribute '", name,
                          "', which is absent or of another type"));
}

}  // namespace tandem
