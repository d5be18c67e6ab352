#include "tandem/runtime/tensor.h"

#include <ostream>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/core/name_argument.h"
#include "tandem/device/memory_space.h"
#include "tandem/runtime/execute/undefined_hint.h"
#include "tandem/runtime/remote_calls.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/tensor_impl.h"
#include "tandem/runtime/thread_context.h"
#include "tandem/runtime/trace.h"

namespace tandem {

Tensor::Tensor() noexcept = default;

Tensor::Tensor(TensorImpl* impl) noexcept : impl_(impl) {
  if (impl_) impl_->retain();
}
Tensor::Tensor(const Tensor& other) noexcept : Tensor(other.impl_) {}
Tensor::Tensor(Tensor&& other) noexcept : impl_(std::exchange(other.impl_, nullptr)) {}
Tensor& Tensor::operator=(const Tensor& other) noexcept {
  Tensor copy(other);
  std::swap(impl_, copy.impl_);
  return *this;
}
Tensor& Tensor::operator=(Tensor&& other) noexcept {
  std::swap(impl_, other.impl_);
  return *this;
}
Tensor::~Tensor() {
  if (impl_) impl_->release();
}

// While a function is traced, a value made here belongs to the trace: it becomes a constant, not an
// argument.
Tensor::Tensor(Array array) : Tensor(new TensorImpl(std::move(array))) {
  if (const Trace* trace = thread_context().trace) impl_->trace_id = trace->id();
}

Tensor::Tensor(bool value) : Tensor(Array::scalar(value)) {}
Tensor::Tensor(int value) : Tensor(Array::scalar<std::int32_t>(value)) {}
Tensor::Tensor(std::int64_t value) : Tensor(Array::scalar(value)) {}
Tensor::Tensor(float value) : Tensor(Array::scalar(value)) {}
Tensor::Tensor(double value) : Tensor(Array::scalar(static_cast<float>(value))) {}
Tensor::Tensor(const char* value)
    : Tensor(Array::scalar(internal::name_argument(value, "a string"))) {}
Tensor::Tensor(std::string value) : Tensor(Array::scalar(value)) {}

void TensorImpl::throw_graph_gone() {
  throw FailedPreconditionError(
      "A symbolic tensor outlived the function in which it was made. Return it from the function "
      "and "
      "use the value that a call gives.");
}

std::string& undefined_tensor_hint() {
  thread_local std::string hint;
  return hint;
}

namespace {

const TensorImpl& checked(const TensorImpl* impl) {
  if (!impl) {
    throw FailedPreconditionError(
        cat("An undefined tensor was used. Give it a value first (a default-constructed "
            "td::Tensor has none).",
            undefined_tensor_hint()));
  }
  return *impl;
}

[[noreturn]] void throw_symbolic(const TensorImpl& impl, const char* wish) {
  throw FailedPreconditionError(cat("Tensor '", impl.symbol().name(), "' has no ", wish,
                                    " while the function is being traced. Compute with it "
                                    "instead (td::cond and td::while_loop replace if and while; "
                                    "td::shape gives the shape as a tensor), or read "
                                    "the result that the function returns."));
}

const TensorImpl& concrete(const TensorImpl* impl) {
  const TensorImpl& t = checked(impl);
  if (t.symbolic()) throw_symbolic(t, "value");
  if (t.pending) t.pending->wait();
  return t;
}

}  // namespace

Tensor::operator bool() const {
  const TensorImpl& t = checked(impl_);
  if (t.symbolic()) {
    throw FailedPreconditionError(
        cat("Tensor '", t.symbol().name(),
            "' cannot decide an `if` or `while` while the function is being traced: "
            "its value is not known yet. Use td::cond or td::while_loop."));
  }
  check_one_element();
  const Array& a = array();
  switch (a.dtype()) {
    case DType::kBool: return *a.data<bool>();
    case DType::kFloat: return *a.data<float>() != 0;
    case DType::kDouble: return *a.data<double>() != 0;
    case DType::kInt32: return *a.data<std::int32_t>() != 0;
    case DType::kInt64: return *a.data<std::int64_t>() != 0;
    case DType::kUint8: return *a.data<std::uint8_t>() != 0;
    default:
      throw InvalidArgumentError(
          cat("A tensor of dtype ", a.dtype(), " cannot serve as a condition. Compare it first."));
  }
}

DType Tensor::dtype() const {
  const TensorImpl& t = checked(impl_);
  return t.symbolic() ? t.symbol().output_dtype(t.node.index) : t.array.dtype();
}

Shape Tensor::shape() const&& { return static_cast<const Tensor&>(*this).shape(); }

const Shape& Tensor::shape() const& {
  const TensorImpl& t = checked(impl_);
  if (!t.symbolic()) return t.array.shape();
  const PartialShape& partial = t.symbol().output_shape(t.node.index);
  if (!partial.is_fully_known()) throw_symbolic(t, "fully known shape");
  if (!(PartialShape(t.array.shape()) == partial)) {
    const_cast<TensorImpl&>(t).array = Array(DType::kInvalid, partial.to_shape(), nullptr, nullptr);
  }
  return t.array.shape();
}

PartialShape Tensor::partial_shape() const {
  const TensorImpl& t = checked(impl_);
  return t.symbolic() ? t.symbol().output_shape(t.node.index) : PartialShape(t.array.shape());
}

int Tensor::rank() const {
  const TensorImpl& t = checked(impl_);
  return t.symbolic() ? t.symbol().output_shape(t.node.index).rank() : t.array.rank();
}

namespace {
thread_local std::uint64_t unknown_sizes = 0;
}  // namespace

std::uint64_t unknown_dim_queries() { return unknown_sizes; }

std::int64_t Tensor::dim(int axis) const {
  const TensorImpl& t = checked(impl_);
  if (!t.symbolic()) return t.array.dim(axis);
  const std::int64_t size = t.symbol().output_shape(t.node.index).dim(axis);
  if (size < 0) ++unknown_sizes;
  return size;
}

bool Tensor::is_symbolic() const noexcept { return impl_ && impl_->symbolic(); }

const Array& Tensor::array() const& { return concrete(impl_).host_array(); }

Array Tensor::array() const&& { return concrete(impl_).host_array(); }

const Array& TensorImpl::copy_for_host() const {
  auto copy = std::make_unique<const Array>(copy_to_host(array));
  const Array* expected = nullptr;
  // Another thread may have been faster.
  if (host_copy_.compare_exchange_strong(expected, copy.get(), std::memory_order_acq_rel))
    return *copy.release();
  return *expected;
}

void Tensor::synchronize() const { concrete(impl_); }

bool Tensor::is_ready() const {
  const TensorImpl& t = checked(impl_);
  if (t.symbolic()) throw_symbolic(t, "value");
  return !t.pending || t.pending->done();
}

std::string Tensor::device() const {
  const TensorImpl& t = checked(impl_);
  if (t.symbolic()) return t.symbol().requested_device();
  if (t.device) return t.device->name();
  if (const RemoteValue* value = remote_value_of(*this)) return value->device();
  // On the host; asking makes no runtime.
  if (thread_context().runtime || Runtime::default_exists())
    return Runtime::current().default_device().name();
  return DeviceSpec::default_task().to_string() + "/device:CPU:0";
}

std::string Tensor::to_string() const {
  if (!impl_) return "<undefined>";
  if (impl_->symbolic()) {
    if (impl_->graph.expired()) return "<symbolic, of a function that is gone>";
    return cat("<symbolic ", dtype(), partial_shape(), " '", impl_->symbol().name(), ":",
               impl_->node.index, "'>");
  }
  return array().to_string();
}

void Tensor::check_one_element() const {
  if (array().num_elements() != 1) {
    throw InvalidArgumentError(
        cat("A tensor of shape ", array().shape(), " was read as a single value."));
  }
}

std::size_t Tensor::flat_index(std::initializer_list<std::int64_t> index) const {
  const Shape& shape = array().shape();
  if (index.size() != static_cast<std::size_t>(shape.rank())) {
    throw InvalidArgumentError(
        cat(index.size(), " indices were given for a tensor of shape ", shape, "."));
  }
  std::int64_t flat = 0;
  int axis = 0;
  for (std::int64_t i : index) {
    if (i < 0 || i >= shape[axis]) {
      throw InvalidArgumentError(
          cat("Index ", i, " is out of range on axis ", axis, " of shape ", shape, "."));
    }
    flat = flat * shape[axis++] + i;
  }
  return static_cast<std::size_t>(flat);
}

std::ostream& operator<<(std::ostream& out, const Tensor& tensor) {
  return out << tensor.to_string();
}

}  // namespace tandem
