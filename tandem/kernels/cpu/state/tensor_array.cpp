#include "tandem/kernels/cpu/state/tensor_array.h"

#include <algorithm>

#include "tandem/core/error.h"
#include "tandem/kernels/cpu/norm/rows.h"
#include "tandem/kernels/cpu/support/arithmetic.h"
#include "tandem/kernels/cpu/support/elements.h"
#include "tandem/kernels/cpu/support/number_types.h"

namespace tandem::cpu {
namespace {

constexpr std::int64_t kLongest = 100'000'000;

Array sum(const Array& a, const Array& b) {
  Array out(a.dtype(), a.shape());
  with_number(a.dtype(), [&]<class T>() {
    std::copy_n(a.data<T>(), a.num_elements(), out.data<T>());
    combine_rows(out.data<T>(), b.data<T>(), a.num_elements(), [](T x, T y) { return add(x, y); });
  });
  return out;
}

}  // namespace

TensorArray::TensorArray(std::string name, std::int64_t size, Options options)
    : name_(std::move(name)), options_(std::move(options)) {
  if (size < 0) throw InvalidArgumentError("Size should be >= 0.");
  if (size > kLongest) {
    throw ResourceExhaustedError(cat("A TensorArray of ", size, " elements is too long: at most ",
                                     kLongest, " are possible."));
  }
  elements_.resize(static_cast<std::size_t>(size));
}

bool TensorArray::dynamic_size() const {
  std::lock_guard lock(mutex_);
  return options_.dynamic_size;
}

std::int64_t TensorArray::size() const {
  std::lock_guard lock(mutex_);
  check_open();
  return static_cast<std::int64_t>(elements_.size());
}

void TensorArray::write(std::int64_t index, const Array& value) {
  std::lock_guard lock(mutex_);
  check_open();
  const auto size = static_cast<std::int64_t>(elements_.size());
  if (index < 0 || (index >= size && !options_.dynamic_size)) {
    fail(
        cat("Tried to write to index ", index, " but array is not resizeable and size is: ", size));
  }
  if (value.dtype() != options_.dtype) {
    throw InvalidArgumentError(cat("TensorArray dtype is ", options_.dtype,
                                   " but Op is trying to write dtype ", value.dtype(), "."));
  }
  if (index >= size) {
    if (index >= kLongest)
      throw ResourceExhaustedError(cat("TensorArray ", name_, ": index ", index, " is too large."));
    elements_.resize(static_cast<std::size_t>(index + 1));
  }
  if (!options_.element_shape.is_compatible(value.shape())) {
    fail(cat("Could not write to TensorArray index ", index, " because the value shape is ",
             value.shape(),
             " which is incompatible with the TensorArray's inferred element shape: ",
             options_.element_shape, " (consider setting infer_shape=False)."));
  }
  if (options_.identical_element_shapes) options_.element_shape = value.shape();
  Element& element = elements_[static_cast<std::size_t>(index)];
  const auto refuse = [&](const char* why) {
    fail(cat("Could not write to TensorArray index ", index, " because it has already been ", why,
             "."));
  };
  if (element.read) refuse("read");
  if (!element.written) {
    element.value = value;
    element.written = true;
    return;
  }
  if (!options_.sums_writes) refuse("written to");
  if (!(element.value.shape() == value.shape())) {
    fail(cat("Could not aggregate to TensorArray index ", index, " because the existing shape is ",
             element.value.shape(), " but the new input shape is ", value.shape(), "."));
  }
  element.value = sum(element.value, value);
}

Array TensorArray::read(std::int64_t index) {
  std::lock_guard lock(mutex_);
  check_open();
  const auto size = static_cast<std::int64_t>(elements_.size());
  if (index < 0 || index >= size) {
    throw InvalidArgumentError(
        cat("Tried to read from index ", index, " but array size is: ", size));
  }
  Element& element = elements_[static_cast<std::size_t>(index)];
  if (element.cleared) {
    fail(cat("Could not read index ", index,
             " twice because it was cleared after a previous read (perhaps try setting "
             "clear_after_read = false?)."));
  }
  if (!element.written) {
    const PartialShape& shape =
        element.shape.is_fully_known() ? element.shape : options_.element_shape;
    if (!shape.is_fully_known()) {
      fail(cat("Could not read from TensorArray index ", index,
               ".  Furthermore, the element shape is not fully defined: ", shape,
               ". It was never written: give the array its element_shape if zeros are meant."));
    }
    element.value = Array::zeros(options_.dtype, shape.to_shape());
    element.written = true;
  }
  element.read = true;
  if (!options_.clear_after_read) return element.value;
  element.cleared = true;
  return std::move(element.value);
}

void TensorArray::close() {
  std::lock_guard lock(mutex_);
  closed_ = true;
  elements_.clear();
  gradients_.clear();
}

Ref<TensorArray> TensorArray::gradient(const std::string& source,
                                       const std::vector<std::int64_t>& prepend) {
  std::lock_guard lock(mutex_);
  check_open();
  options_.dynamic_size = false;
  Ref<TensorArray>& found = gradients_[source];
  if (found) return found;
  const auto prepended = [&](const PartialShape& shape) {
    if (!shape.has_rank()) return shape;
    std::vector<std::int64_t> dims = prepend;
    dims.insert(dims.end(), shape.dims().begin(), shape.dims().end());
    return PartialShape(std::move(dims));
  };
  Options options;
  options.dtype = options_.dtype;
  options.element_shape = prepended(options_.element_shape);
  options.identical_element_shapes = options_.identical_element_shapes;
  options.sums_writes = true;
  found = make_ref<TensorArray>(name_ + "@" + source, static_cast<std::int64_t>(elements_.size()),
                                std::move(options));
  for (std::size_t i = 0; i < elements_.size(); ++i) {
    const Element& from = elements_[i];
    if (from.written && !from.cleared) {
      found->elements_[i].shape = prepended(from.value.shape());
    } else {
      found->elements_[i].shape = prepended(from.shape);
    }
  }
  return found;
}

std::string TensorArray::debug_string() const { return cat("TensorArray ", name_); }

void TensorArray::check_open() const {
  if (closed_) throw InvalidArgumentError(cat("TensorArray ", name_, " has already been closed."));
}

void TensorArray::fail(const std::string& what) const {
  throw InvalidArgumentError(cat("TensorArray ", name_, ": ", what));
}

Array make_handle(const KernelContext& c, Ref<Resource> resource, const std::string& name,
                  const char* type, DType dtype) {
  auto info = std::make_shared<ResourceInfo>();
  info->device = c.device().name();
  info->container = "step";
  info->name = name;
  info->type = type;
  info->dtype = dtype;
  Array handle(DType::kResource, Shape{});
  *handle.data<ResourceHandle>() = ResourceHandle(std::move(info), std::move(resource));
  return handle;
}

}  // namespace tandem::cpu
