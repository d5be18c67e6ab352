#include "tandem/graph/kernel_context.h"

#include <algorithm>
#include <cstring>

#include "tandem/core/error.h"
#include "tandem/device/kernel_class.h"
#include "tandem/device/memory_space.h"

namespace tandem {

FunctionRunner::~FunctionRunner() = default;

namespace {

bool host_may_copy(const Array& from, const Array& to, const Device& device) {
  return (from.on_host() && to.on_host()) || runs_host_kernels(device.kernel_class());
}

}  // namespace

Array& KernelContext::allocate_output_slow(int i, const Shape& shape) {
  const DType dtype = base_dtype(output_dtypes_[i]);
  Array& output = *outputs_[i];
  if (has_bit(planned_outputs_, i) && !has_bit(offered_outputs_, i)) {
    wrong_output_ = std::make_shared<const std::string>(
        cat("output ", i, " has shape ", shape, " but was declared as ", output.shape()));
  } else {
    mark_set(i);
  }
  forget_plan(i);  // the shape is not the one planned for: on its own from now on
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
    mark_set(i);
    return *outputs_[i];
  }
  return allocate_output_slow(i, shape);
}

void KernelContext::set_output(int i, Array value) {
  const DType declared = output_dtypes_[i];
  if (value.dtype() != declared && base_dtype(value.dtype()) != base_dtype(declared)) {
    wrong_output_ = std::make_shared<const std::string>(
        cat("output ", i,
            value.valid() ? cat(" is ", value.dtype()) : std::string(" is set to no array"),
            " but was declared as ", declared));
    *outputs_[i] = std::move(value);
    forget_plan(i);
    return;
  }
  if (has_bit(planned_outputs_, i)) {
    // The plan gave this output a place of its own, which others may count on.
    Array& planned = *outputs_[i];
    if (planned.shape() == value.shape() && planned.dtype() == value.dtype()) {
      if (!host_may_copy(value, planned, device())) {
        wrong_output_ = std::make_shared<const std::string>(
            cat("output ", i,
                " forwards an array to memory that the plan gave to the output, where host code "
                "cannot copy it: the op has to declare that the output shares that memory"));
        return;
      }
      if (planned.raw_data() != value.raw_data() && value.num_bytes() != 0) {
        std::memcpy(planned.raw_data(), value.raw_data(), value.num_bytes());
      }
      mark_set(i);
      return;
    }
    if (!has_bit(offered_outputs_, i)) {
      wrong_output_ = std::make_shared<const std::string>(cat(
          "output ", i, " has shape ", value.shape(), " but was declared as ", planned.shape()));
    }
    forget_plan(i);
  }
  // Only outputs that the op declares to share an input's memory may refer to memory that the plan
  // reuses. Bit 31 is that of all further ones.
  const bool shares = has_bit(op_->traits.shares_memory, std::min(i, 31));
  if (!shares && value.buffer() && value.buffer()->planned()) value = value.clone();
  *outputs_[i] = std::move(value);
  if (!wrong_output_) mark_set(i);
}

void KernelContext::check_outputs_slow(const char* kernel) const {
  const auto refuse = [&](const std::string& what) {
    throw InternalError(
        cat("Kernel '", kernel, "' of op ", op_->name, ": ", what,
            ". A kernel sets each output once, with the dtype and shape that its op "
            "declares: see docs/adding-an-op.md."));
  };
  if (wrong_output_) refuse(*wrong_output_);
  if (outputs_dead_) return;
  for (int i = 0; i < num_outputs_; ++i) {
    if (i < 64 ? !has_bit(set_outputs_, i) : !outputs_[i]->valid())
      refuse(cat("missing output ", i));
  }
}

void KernelContext::set_outputs_dead() {
  if (!may_be_dead_) {
    throw InternalError(cat("'", node_name_, "' (", op_->name,
                            ") got a dead value, one of a branch that was not ",
                            "taken, in a graph that was planned without such values."));
  }
  outputs_dead_ = true;
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
